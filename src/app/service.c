#include "app/service.h"

#include "base/fd.h"
#include "base/msg.h"
#include "codec/frame.h"
#include "codec/utf8.h"
#include "io/loop.h"
#include "io/outbox.h"
#include "job/runner.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

enum {
    MAX_FDS = JOB_MAX_FILES + 1, // input files and standard input
    READ_BYTES = 64 * 1024,
    HIGH_WATER_BYTES = 256 * 1024, // towards a front that does not read: from here on the job waits
    OUT_BYTES = 208 << 20,         // the largest FINAL, and what waits before it
    EXECUTION = 1,
};

struct service {
    const struct pipeline_config *config;
    struct loop *loop;
    struct runner *runner;
    struct pipeline *pipeline;
    struct job_sink sink;
    int front;
    struct loop_watch watch;
    struct frame_decoder in;
    struct outbox out;
    uint32_t sent_frames;
    int fds[MAX_FDS]; // as they came; the job's from FRAME_JOB on
    int n_fds, announced_fds;
    bool done;   // FINAL is in `out`
    bool failed; // nobody is there to read it
};

static void give_up(struct service *s)
{
    s->failed = true;
    loop_stop(s->loop);
}

// ---- To the front -------------------------------------------------------------------------------

static void flush(struct service *s)
{
    int e = outbox_flush(&s->out, s->front);
    if (e < 0) {
        give_up(s);
        return;
    }
    if (e == 1 && s->done) {
        loop_stop(s->loop);
        return;
    }
    loop_change(s->loop, &s->watch, e == 1 ? EPOLLIN : EPOLLIN | EPOLLOUT);
    if (s->pipeline) {
        pipeline_hold(s->pipeline, outbox_left(&s->out) > HIGH_WATER_BYTES);
    }
}

static int post(struct service *s, enum frame_type type, const void *data, size_t len)
{
    int e =
        frame_encode(&s->out.data, FRAME_TO_FRONT, type, EXECUTION, ++s->sent_frames, data, len);
    if (e) {
        give_up(s);
    }
    return e;
}

static void job_output(void *ctx, bool is_stderr, const char *data, size_t len)
{
    struct service *s = ctx;
    if (!post(s, is_stderr ? FRAME_STDERR : FRAME_STDOUT, data, len)) {
        flush(s);
    }
}

static int job_artifact(void *ctx, const struct result_artifact *a, uint32_t mode)
{
    struct service *s = ctx;
    AUTO_BUF struct buf json = BUF_INIT(8 * JOB_MAX_PATH);
    buf_puts(&json, "{\"name\":");
    utf8_json_string(&json, a->path, strlen(a->path));
    buf_printf(&json, ",\"size\":%llu,\"mode\":%u}", (unsigned long long)a->size_bytes, mode);
    return json.error ? json.error : post(s, FRAME_ARTIFACT, buf_text(&json), json.len);
}

static int job_artifact_data(void *ctx, const char *data, size_t len)
{
    struct service *s = ctx;
    int e = post(s, FRAME_ARTIFACT_DATA, data, len);
    if (!e) {
        flush(s);
    }
    return e;
}

static void send_final(struct service *s, const struct result *r)
{
    AUTO_BUF struct buf json = BUF_INIT(frame_bound(FRAME_TO_FRONT, FRAME_FINAL));
    s->done = true;
    if (result_write(&json, r) || post(s, FRAME_FINAL, buf_text(&json), json.len)) {
        give_up(s);
        return;
    }
    buf_free(&json); // before the frame is sent: it may be large twice
    flush(s);
}

// One job is all there is: the launcher may begin to end while its result is told.
static bool job_collected(void *ctx)
{
    runner_finish(((struct service *)ctx)->runner);
    return true;
}

static void job_finished(void *ctx, struct result *r) { send_final(ctx, r); }

// ---- From the front -----------------------------------------------------------------------------

// The front has checked the job already: a refusal here is one of a front of another build.
static void refuse_job(struct service *s, const char *why)
{
    struct result r;
    result_init(&r, "", 0, 0);
    result_fail(&r, REASON_INTERNAL, STAGE_PREPARATION, "the service refused the job: %s", why);
    send_final(s, &r);
    result_done(&r);
}

static void take_job(struct service *s, const struct frame *f)
{
    struct job job;
    struct job_error error;
    int e = job_parse(f->payload, f->length, s->n_fds, &job, &error);
    if (!e) {
        job_bind(&job, s->fds, s->n_fds);
        s->n_fds = 0;
        e = lower_check_host(&job, &s->config->host, &error);
    }
    if (e) {
        refuse_job(s, error.text);
        job_done(&job);
        return;
    }
    e = pipeline_start(s->loop, s->runner, s->config, &job, &s->sink, &s->pipeline);
    if (e) {
        refuse_job(s, strerror(-e));
    }
}

// A frame of descriptors says how many came with it: every one announced must be here by then.
static bool count_fds(struct service *s, const struct frame *f)
{
    const unsigned char *p = (const unsigned char *)f->payload;
    if (f->length != 4) {
        return false;
    }
    uint32_t n = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (n > FRAME_MAX_FDS || s->announced_fds + (int)n > s->n_fds) {
        return false;
    }
    s->announced_fds += (int)n;
    return true;
}

static void take_frame(struct service *s, const struct frame *f)
{
    bool ok = true;
    switch (f->type) {
    case FRAME_FDS:
        ok = !s->pipeline && count_fds(s, f);
        break;
    case FRAME_JOB:
        ok = !s->pipeline && !s->done && s->announced_fds == s->n_fds;
        if (ok) {
            take_job(s, f);
        }
        break;
    case FRAME_CANCEL:
        if (s->pipeline) {
            pipeline_cancel(s->pipeline);
        }
        break;
    default:
        ok = false;
        break;
    }
    if (!ok) {
        give_up(s);
    }
}

static void keep_fds(struct service *s, const int *fds)
{
    for (int i = 0; i < FRAME_MAX_FDS && fds[i] >= 0; i++) {
        if (s->n_fds < MAX_FDS && !s->pipeline) {
            s->fds[s->n_fds++] = fds[i];
        } else {
            close(fds[i]);
            give_up(s);
        }
    }
}

static void receive(struct service *s)
{
    AUTO_FREE char *data = malloc(READ_BYTES);
    int fds[FRAME_MAX_FDS];
    ssize_t n = data ? msg_recv(s->front, data, READ_BYTES, fds, FRAME_MAX_FDS, NULL, MSG_DONTWAIT)
                     : -ENOMEM;
    if (n == -EAGAIN) {
        return;
    }
    if (n <= 0 || fds[0] == -EMFILE) { // the front is gone, and with it whoever wanted the job
        give_up(s);
        return;
    }
    keep_fds(s, fds);
    struct frame f;
    int e = frame_feed(&s->in, data, (size_t)n);
    while (!e && !s->failed && (e = frame_next(&s->in, &f)) == 1) {
        take_frame(s, &f);
        e = 0;
    }
    if (e < 0) {
        give_up(s);
    }
}

static void front_ready(struct loop_watch *w, uint32_t events)
{
    struct service *s = w->ctx;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(s);
    }
    if (!s->failed && (events & EPOLLOUT)) {
        flush(s);
    }
}

// ---- Begin and end ------------------------------------------------------------------------------

static int begin(struct service *s, const struct seat *seat)
{
    s->sink = (struct job_sink){.ctx = s,
                                .output = job_output,
                                .artifact = job_artifact,
                                .artifact_data = job_artifact_data,
                                .collected = job_collected,
                                .done = job_finished};
    s->front = seat->front;
    s->watch = LOOP_WATCH_INIT(front_ready, s);
    s->out = OUTBOX_INIT(OUT_BYTES);
    frame_decoder_init(&s->in, FRAME_FROM_FRONT);
    int e = loop_new(&s->loop);
    // A launcher that is lost ends the job as `internal`: that result is still the front's.
    e = e ? e : runner_new(s->loop, seat->launcher, seat->launcher_pidfd, NULL, NULL, &s->runner);
    if (!e && seat->ahead_tag) {
        runner_expect_parked(s->runner, seat->ahead_tag);
    }
    return e ? e : loop_add(s->loop, &s->watch, seat->front, EPOLLIN);
}

static void end(struct service *s)
{
    pipeline_free(s->pipeline);
    for (int i = 0; i < s->n_fds; i++) {
        close(s->fds[i]);
    }
    frame_decoder_done(&s->in);
    outbox_free(&s->out);
    runner_free(s->runner);
    loop_free(s->loop);
}

int service_run(const struct seat *seat, struct conf *conf, const struct pipeline_config *config)
{
    (void)conf;
    struct service s = {.config = config};
    int e = begin(&s, seat);
    e = e ? e : loop_run(s.loop);
    bool failed = e || s.failed;
    end(&s);
    return failed;
}
