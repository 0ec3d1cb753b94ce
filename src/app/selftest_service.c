#include "app/selftest_service.h"

#include "base/fd.h"
#include "codec/frame.h"
#include "doctor/trial.h"
#include "io/loop.h"
#include "job/runner.h"

#include <string.h>

// What the front planted, as text; NULL when the front is gone or is another build's.
static char *take_planted(int front)
{
    struct frame_decoder in;
    struct frame f;
    char chunk[4096];
    int got = 0;
    frame_decoder_init(&in, FRAME_FROM_FRONT);
    while (got == 0) {
        ssize_t n = read(front, chunk, sizeof chunk);
        got = n <= 0 || frame_feed(&in, chunk, (size_t)n) ? -1 : frame_next(&in, &f);
    }
    char *text = got > 0 && f.type == FRAME_JOB ? strndup(f.payload, f.length) : NULL;
    frame_decoder_done(&in);
    return text;
}

static void stop_loop(void *ctx) { loop_stop(ctx); }

static int run_all(const struct seat *seat, const struct pipeline_config *config,
                   const char *planted, struct buf *ret_report)
{
    struct trial_seat facts = {seat->rung, seat->downgrades, seat->landlock_abi};
    struct loop *loop = NULL;
    struct runner *runner = NULL;
    struct selftest *test = NULL;
    int e = loop_new(&loop);
    e = e ? e : runner_new(loop, seat->launcher, seat->launcher_pidfd, NULL, NULL, &runner);
    if (!e && seat->ahead_tag) {
        runner_expect_parked(runner, seat->ahead_tag);
    }
    e = e ? e : selftest_start(loop, runner, config, planted, stop_loop, loop, &test);
    e = e ? e : loop_run(loop);
    facts.downgrades |= e ? 0 : selftest_downgrades(test);
    e = e ? e : trial_write(ret_report, &facts, selftest_items(test));
    selftest_free(test);
    if (runner) {
        runner_finish(runner);
    }
    runner_free(runner);
    loop_free(loop);
    return e;
}

int selftest_service_run(const struct seat *seat, struct conf *conf,
                         const struct pipeline_config *config)
{
    (void)conf;
    AUTO_FREE char *planted = take_planted(seat->front);
    AUTO_BUF struct buf report = BUF_INIT(1 << 18), frame = BUF_INIT(1 << 19);
    if (!planted) {
        return 1;
    }
    int e = run_all(seat, config, planted, &report);
    e = e ? e
          : frame_encode(&frame, FRAME_TO_FRONT, FRAME_FINAL, 1, 1, buf_text(&report), report.len);
    e = e ? e : fd_write_all(seat->front, buf_text(&frame), frame.len);
    return e != 0;
}
