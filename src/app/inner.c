#include "app/inner.h"

#include "base/fd.h"
#include "cli/cli.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define MB (UINT64_C(1) << 20)

enum { FAILED = 125 };

void inner_use_settings(struct pipeline_config *c, const struct conf *conf)
{
    c->artifact_max_bytes = (uint64_t)conf->number[SETTING_ARTIFACT_MAX_FILE_SIZE_MB] * MB;
    c->artifacts_max_bytes = (uint64_t)conf->number[SETTING_ARTIFACT_MAX_TOTAL_SIZE_MB] * MB;
    lower_host_read(conf, &c->host);
}

// What a pipeline needs: of the settings, of the seat, of this process.
static int run_service(const struct inner_service *service, const struct seat *seat,
                       struct conf *conf)
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
        .ahead_network = seat->ahead_network,
        .downgrades = seat->downgrades,
        .tz = "UTC",
        .python = seat->python,
        .launcher = seat_launcher_names[seat->made_by],
        .bwrap = seat->made_by == SEAT_BWRAP ? seat->bwrap : NULL,
        .fallback = conf_bool(conf, SETTING_LEGACY_FALLBACK_ENABLED),
    };
    inner_use_settings(&config, conf);
    return service->run(seat, conf, &config);
}

int inner_main(int argc, char **argv, const struct inner_service *services, size_t n)
{
    struct seat seat;
    struct start_error start_error;
    struct conf conf;
    struct conf_error conf_error;
    if (start_inner(argc, argv, &seat, &start_error)) {
        return FAILED; // the front was told why
    }
    signal(SIGPIPE, SIG_IGN);
    if (conf_load_passed(environ, &conf, &conf_error)) { // the front has loaded the same settings
        fprintf(stderr, "isle: %s\n", conf_error.text);
        start_seat_done(&seat);
        return FAILED;
    }
    const char *word = argc > 1 ? argv[1] : "";
    size_t i = 0;
    while (i < n && strcmp(services[i].word, word) != 0) {
        i++;
    }
    int status = i < n ? run_service(&services[i], &seat, &conf) : 1;
    conf_done(&conf);
    if (status) {
        start_seat_done(&seat);
    } else { // the front waits for both of us, which end side by side
        start_seat_leave(&seat);
    }
    return status;
}

// The stack grows as far as the limit says when it grows, so raising it now helps; above its hard
// limit only root can.
void inner_raise_stack_limit(void)
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
