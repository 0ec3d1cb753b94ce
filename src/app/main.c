// isle: what a user starts. The same image, executed again inside the outer user namespace, is the
// service (start/start.h).
#include "app/bench_service.h"
#include "app/places.h"
#include "app/selftest_service.h"
#include "app/service.h"
#include "base/fd.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "conf/conf.h"
#include "doctor/trial.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MB (UINT64_C(1) << 20)

// Which service: the first word that start_front() was given. `isle run` gives none.
static const struct {
    const char *word;
    int (*run)(const struct seat *seat, const struct pipeline_config *config);
} services[] = {
    {"", service_run}, {BENCH_SERVICE, bench_service_run}, {TRIAL_WORD, selftest_service_run}};

static int dispatch(const char *word, const struct seat *seat, const struct pipeline_config *config)
{
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        if (strcmp(word, services[i].word) == 0) {
            return services[i].run(seat, config);
        }
    }
    return 1;
}

// What a pipeline needs: of the settings, of the seat, of this process.
static int run_service(const char *word, const struct seat *seat, const struct conf *conf)
{
    AUTO_FREE struct uids *uids = calloc(1, sizeof *uids);
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (!uids || null < 0) {
        return 1;
    }
    uids->count = seat->n_uids;
    uids->next = seat->first_uid;
    struct pipeline_config config = {
        .workspace_root = seat->workspace_root,
        .cache_root = seat->cache_root,
        .ready_workspace = "once/" CLI_READY_WORKSPACE,
        .null = null,
        .uids = uids,
        .artifact_max_bytes = (uint64_t)conf->number[SETTING_ARTIFACT_MAX_FILE_SIZE_MB] * MB,
        .artifacts_max_bytes = (uint64_t)conf->number[SETTING_ARTIFACT_MAX_TOTAL_SIZE_MB] * MB,
        .ahead_network = seat->ahead_network,
        .downgrades = seat->downgrades,
        .tz = "UTC",
        .launcher = seat_launcher_names[seat->made_by],
        .bwrap = seat->made_by == SEAT_BWRAP ? seat->bwrap : NULL,
    };
    lower_host_read(conf, &config.host);
    return dispatch(word, seat, &config);
}

static int be_service(int argc, char **argv)
{
    struct seat seat;
    struct start_error start_error;
    struct conf conf;
    struct conf_error conf_error;
    if (start_inner(argc, argv, &seat, &start_error)) {
        return 125; // the front was told why
    }
    signal(SIGPIPE, SIG_IGN);
    if (conf_load_passed(environ, &conf, &conf_error)) { // the front has loaded the same settings
        fprintf(stderr, "isle: %s\n", conf_error.text);
        start_seat_done(&seat);
        return 125;
    }
    int status = run_service(argc > 1 ? argv[1] : "", &seat, &conf);
    if (status) {
        start_seat_done(&seat);
    } else { // the front waits for both of us, which end side by side
        start_seat_leave(&seat);
    }
    return status;
}

// A caller's small stack limit ends us in the middle of something. The stack grows as far as the
// limit says when it grows, so raising it now helps; above its hard limit only root can.
static void raise_stack_limit(void)
{
    const rlim_t wanted = 8 << 20;
    struct rlimit l;
    if (getrlimit(RLIMIT_STACK, &l) || l.rlim_cur >= wanted) {
        return;
    }
    l.rlim_cur = wanted;
    l.rlim_max = l.rlim_max < wanted ? wanted : l.rlim_max;
    if (setrlimit(RLIMIT_STACK, &l) && getrlimit(RLIMIT_STACK, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_STACK, &l);
    }
}

int main(int argc, char **argv)
{
    raise_stack_limit();
    if (start_is_inner(argc, argv)) {
        return be_service(argc, argv);
    }
    struct places places;
    int found = places_find(&places);
    return cli_main(argc, argv, &(struct cli_places){places.libexec, places.guest, found == 0});
}
