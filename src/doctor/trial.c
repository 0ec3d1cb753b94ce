#include "doctor/trial.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/frame.h"
#include "codec/json.h"
#include "doctor/planted.h"
#include "plan/plan.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { LIMIT_MS = 120000, REPORT_MAX_BYTES = 1 << 20 };

// ---- The report

int trial_write(struct buf *out, const struct trial_seat *seat, const struct selftest_item *items)
{
    buf_printf(out, "{\"rung\":%u,\"downgrades\":%u,\"landlock_abi\":%u,\"items\":", seat->rung,
               seat->downgrades, seat->landlock_abi);
    selftest_write(out, items);
    buf_putc(out, '}');
    return out->error;
}

static bool read_number(yyjson_val *root, const char *key, uint32_t *ret)
{
    int64_t n = -1;
    if (json_int(yyjson_obj_get(root, key), &n) || n < 0 || n > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)n;
    return true;
}

static int read_report(const char *data, size_t len, struct trial *ret)
{
    struct json_error why;
    struct trial_seat seat;
    yyjson_doc *doc = json_parse_envelope(data, len, &why);
    yyjson_val *root = yyjson_doc_get_root(doc);
    bool good = read_number(root, "rung", &seat.rung) &&
                read_number(root, "downgrades", &seat.downgrades) &&
                read_number(root, "landlock_abi", &seat.landlock_abi);
    AUTO_BUF struct buf list = BUF_INIT(REPORT_MAX_BYTES);
    good = good && json_write(&list, yyjson_obj_get(root, "items")) == 0 &&
           selftest_read(buf_text(&list), list.len, ret->items) == 0;
    yyjson_doc_free(doc);
    if (!good) {
        return -EBADMSG;
    }
    ret->seat = seat;
    ret->started = true;
    return 0;
}

// ---- The talk

// Up to the FINAL frame. 0; -EPIPE: the service ended before; -ETIMEDOUT; -EINTR: a signal.
static int wait_report(int service, int signals, struct trial *ret)
{
    char chunk[8192];
    struct frame_decoder in;
    struct frame f = {};
    int e = 0, got = 0;
    uint64_t end = clock_now_ns() + LIMIT_MS * NS_PER_MS;
    frame_decoder_init(&in, FRAME_TO_FRONT);
    while (!e && !got) {
        uint64_t now = clock_now_ns();
        struct pollfd p[2] = {{service, POLLIN, 0}, {signals, POLLIN, 0}};
        int n = poll(p, 2, now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0);
        if (n <= 0 || p[1].revents) {
            e = n < 0 ? -errno : n ? -EINTR : -ETIMEDOUT;
            break;
        }
        ssize_t bytes = recv(service, chunk, sizeof chunk, MSG_DONTWAIT);
        e = bytes <= 0 ? -EPIPE : frame_feed(&in, chunk, (size_t)bytes);
        got = e ? 0 : frame_next(&in, &f);
        e = got < 0 ? got : e;
    }
    if (!e) {
        e = f.type == FRAME_FINAL ? read_report(f.payload, f.length, ret) : -EBADMSG;
    }
    frame_decoder_done(&in);
    return e;
}

static int send_planted(int service, const struct planted *planted)
{
    AUTO_BUF struct buf json = BUF_INIT(4096), frame = BUF_INIT(8192);
    int e = planted_write(&json, planted);
    e = e ? e : frame_encode(&frame, FRAME_FROM_FRONT, FRAME_JOB, 1, 1, buf_text(&json), json.len);
    return e ? e : fd_write_all(service, buf_text(&frame), frame.len);
}

static int start_and_wait(const struct start_config *config, char *const *environment,
                          const struct planted *planted, int signals, struct trial *ret)
{
    char word[] = TRIAL_WORD, *argv[] = {word, NULL};
    struct start_error left;
    struct front front;
    int status, e;
    uint64_t begin = clock_now_ns();
    if (start_front(config, argv, environment, &front, &ret->why)) {
        return 0; // ret->why has it
    }
    ret->start_ms = (clock_now_ns() - begin) / NS_PER_MS;
    e = send_planted(front.service, planted);
    e = e ? e : wait_report(front.service, signals, ret);
    start_finish(&front, &status, &left);
    ret->total_ms = (clock_now_ns() - begin) / NS_PER_MS;
    if (e && e != -EINTR) {
        snprintf(ret->why.step, sizeof ret->why.step, "self-test");
        snprintf(ret->why.text, sizeof ret->why.text, "no report of the service: %s", strerror(-e));
        return 0;
    }
    return e;
}

// What came to be outside, whatever the programs said.
static void look_outside(const struct planted *planted, const char *runtime_root, struct trial *ret)
{
    const bool unisolated = ret->seat.downgrades & PLAN_NO_ISOLATION;
    for (size_t i = 0; ret->started && i < SELFTEST_N; i++) {
        struct selftest_item *item = &ret->items[i];
        char found[SELFTEST_DETAIL_MAX] = "";
        if (strcmp(item->name, "network") == 0) {
            planted_look_network(planted, found, sizeof found);
        } else if (strcmp(item->name, "writes") == 0) {
            planted_look_marker(planted, runtime_root, found, sizeof found);
        }
        if (found[0]) {
            item->verdict = unisolated ? SELFTEST_UNENFORCED : SELFTEST_ESCAPED;
            memcpy(item->detail, found, sizeof item->detail);
        }
    }
}

int trial_run(const struct start_config *config, char *const *environment, int signals,
              struct trial *ret)
{
    struct planted planted;
    *ret = (struct trial){.start_ms = 0};
    selftest_items_init(ret->items);
    int e = planted_put(&planted);
    if (!e) {
        e = start_and_wait(config, environment, &planted, signals, ret);
        look_outside(&planted, config->runtime_root, ret);
        planted_remove(&planted);
    }
    return e;
}
