// inject_request.c: the launcher's part of inject.h: a plan of failures by request, and what is
// there.
#include "base/fd.h"
#include "launcher/inject.h"
#include "launcher/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

static uint64_t count_lines(int proc, const char *path)
{
    static char text[1 << 16];
    uint64_t n = 0;
    if (fd_read_at(proc, path, text, sizeof text) > 0) {
        for (const char *p = text; (p = strchr(p, '\n')); p++) {
            n++;
        }
    }
    return n;
}

static uint64_t count_fds(void)
{
    uint64_t n = 0;
    for (int fd = 0; fd < 4096; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static uint64_t count_groups(int folder)
{
    uint64_t n = 0;
    int fd = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        // those made ahead ("a1") belong to no sandbox
        n += e->d_type == DT_DIR && e->d_name[0] == 'j';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

bool inject_request(struct launcher *l, const struct plan_request *q)
{
    if (q->op != INJECT_OP) {
        return false;
    }
    struct inject_page *page = inject_page_now();
    uint64_t before = inject_as(0, PLAN_STEP_end); // nothing of this counts
    struct plan_record r = {.op = q->op,
                            .tag = q->tag,
                            .id = page->count,
                            .status = (int32_t)page->fired,
                            .step = page->step,
                            .cpu_ns = count_lines(l->proc, "self/mountinfo"),
                            .memory_peak_bytes = count_fds(),
                            .pids_peak = count_groups(l->groups.v2)};
    for (int i = 0; i < SEAT_N_V1; i++) {
        r.pids_peak += count_groups(l->groups.v1[i]);
    }
    memcpy(r.marks_ns, page->name, sizeof page->name);
    page->now = (struct inject_plan){0}; // while the rest of it changes
    page->count = page->fired = page->step = page->who = 0;
    memset(page->name, 0, sizeof page->name);
    page->now = page->next;
    page->next = (struct inject_plan){0};
    if (q->signal) {
        l->last_id = UINT32_MAX - 2;
    }
    inject_back(before);
    request_answer(l, &r, NULL, 0);
    return true;
}
