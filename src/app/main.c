// isle: what a user starts. The same image, executed again inside the outer user namespace, is the
// service (start/start.h).
#include "app/bench_service.h"
#include "app/inner.h"
#include "app/places.h"
#include "app/selftest_service.h"
#include "app/service.h"
#include "base/fd.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "doctor/trial.h"

static const struct inner_service services[] = {
    {"", service_run}, // `isle run`
    {BENCH_SERVICE, bench_service_run},
    {TRIAL_WORD, selftest_service_run},
};

int main(int argc, char **argv)
{
    inner_raise_stack_limit();
    if (start_is_inner(argc, argv)) {
        return inner_main(argc, argv, services, ARRAY_LEN(services));
    }
    struct places places;
    int found = places_find(&places);
    return cli_main(argc, argv, &(struct cli_places){places.libexec, places.guest, found == 0});
}
