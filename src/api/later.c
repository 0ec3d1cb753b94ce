// later.c: the work of a handler that would hold the loop: a long answer is written, a long record
// read, on a thread.
#include "api/envelope.h"
#include "api/internal.h"

#include "base/shared.h"

#include <errno.h>

enum {
    HERE_BYTES = 128 << 10, // up to so many on the loop: less than a millisecond, most often
    ANSWER_MAX_BYTES = 256 << 20,
    ENVELOPE_BYTES = 256,
};

static void on_thread(struct work *w)
{
    struct api_call *c = w->ctx;
    c->run(c);
}

static void was_run(struct work *w)
{
    struct api_call *c = w->ctx;
    if (c->over) {
        api_call_drop(c);
    } else {
        c->run_then(c);
    }
}

void api_work(struct api_call *c, size_t bytes, void (*run)(struct api_call *c),
              void (*then)(struct api_call *c))
{
    if (c->over) {
        return;
    }
    c->run = run;
    c->run_then = then;
    c->work =
        (struct work){.run = on_thread, .done = was_run, .ctx = c, .owner = work_owner(c->team)};
    if (bytes <= HERE_BYTES || work_queue(c->with->pool, &c->work)) {
        run(c);
        then(c);
    }
}

bool api_call_grow(struct api_call *c, size_t bytes)
{
    if (c->over || (bytes > c->grown && http_hold(c->r, bytes - c->grown))) {
        return false;
    }
    c->grown = bytes > c->grown ? bytes : c->grown;
    return true;
}

void api_call_grown(struct api_call *c)
{
    http_unhold(c->r, c->grown);
    c->grown = 0;
}

static void put_envelope(struct api_call *c, const struct buf *data)
{
    c->answer = BUF_INIT(data->len + ENVELOPE_BYTES);
    c->answer.error = data->error ? data->error : data->len ? 0 : -ENODATA;
    buf_reserve(&c->answer, data->len + ENVELOPE_BYTES);
    api_envelope_write(&c->answer, API_OK, data, "success");
}

static void write_answer(struct api_call *c)
{
    AUTO_BUF struct buf data = BUF_INIT(ANSWER_MAX_BYTES);
    c->write(c, &data);
    put_envelope(c, &data);
}

static void write_data(struct api_call *c)
{
    put_envelope(c, &c->data);
    buf_free(&c->data);
}

static void write_shared(struct api_call *c)
{
    const struct buf data = {.data = (char *)(uintptr_t)c->shared, .len = c->shared_len};
    put_envelope(c, &data);
}

static void answer_written(struct api_call *c)
{
    if (c->written) {
        c->written(c);
    }
    if (c->answer.error) {
        buf_free(&c->answer);
        api_fail(c, API_INTERNAL, "the answer could not be written");
        return;
    }
    c->status = c->answer_status;
    api_call_grown(c);
    http_reply_buf(c->r, c->status, "application/json", &c->answer);
}

// The envelope has a copy: whoever does not read the answer holds it once, not twice.
static void shared_written(struct api_call *c)
{
    api_call_unshare(c);
    answer_written(c);
}

bool api_reply_later(struct api_call *c, int status, struct buf *data)
{
    if (data->len <= HERE_BYTES) {
        return false;
    }
    c->data = *data;
    *data = BUF_INIT(0);
    c->answer_status = status;
    api_work(c, c->data.len, write_data, answer_written);
    return true;
}

void api_reply_written(struct api_call *c, int status, size_t bytes,
                       void (*write)(struct api_call *c, struct buf *data))
{
    c->write = write;
    c->answer_status = status;
    api_work(c, bytes, write_answer, answer_written);
}

bool api_call_share(struct api_call *c, const char *json, size_t len)
{
    if (c->over || http_hold(c->r, len)) {
        return false;
    }
    shared_hold(json);
    c->shared = json;
    c->shared_len = len;
    return true;
}

void api_call_unshare(struct api_call *c)
{
    if (!c->over) { // what a request holds goes with it
        http_unhold(c->r, c->shared_len);
    }
    shared_release(c->shared);
    c->shared = NULL;
    c->shared_len = 0;
}

void api_reply_shared(struct api_call *c, int status, const char *json, size_t len)
{
    if (!api_call_share(c, json, len)) {
        api_fail_busy(c);
        return;
    }
    c->answer_status = status;
    api_work(c, len, write_shared, shared_written);
}
