#include "client/progress.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdio.h>
#include <unistd.h>

#define FIRST_NS NS_PER_S
#define EVERY_NS (NS_PER_S / 5)

void progress_begin(struct progress *p, const char *name, int64_t total)
{
    bool terminal = isatty(STDERR_FILENO);
    *p = (struct progress){terminal ? name : NULL, total, clock_now_ns() + FIRST_NS, false};
}

void progress_move(struct progress *p, int64_t bytes)
{
    char name[64], of[48] = "";
    if (!p->name || clock_now_ns() < p->next_ns) {
        return;
    }
    p->next_ns = clock_now_ns() + EVERY_NS;
    p->shown = true;
    snprintf(name, sizeof name, "%s", p->name);
    text_no_controls(name);
    if (p->total > 0) {
        snprintf(of, sizeof of, " of %.1f MB, %d %%", (double)p->total / 1e6,
                 (int)(100 * (double)bytes / (double)p->total));
    }
    fprintf(stderr, "\r\033[K%s: %.1f MB%s", name, (double)bytes / 1e6, of);
}

void progress_end(struct progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        p->shown = false;
    }
}
