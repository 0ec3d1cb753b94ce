#include "cli/signals.h"

#include "base/fd.h"

#include <sys/signalfd.h>

int signals_hold(sigset_t *ret_before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct sigaction now;
        // nohup and the like: what the caller ignores stays ignored
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
            sigaddset(&set, numbers[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
