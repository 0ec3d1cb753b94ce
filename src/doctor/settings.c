// Settings of the kernel that isle does not need, but that narrow what a job's bug in the kernel,
// or another user of the host, could reach; and those that isle's own work depends on.
#include "doctor/doctor.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>

enum rule { AT_LEAST, EXACTLY };

static const struct knob {
    const char *name; // its file lies below proc/sys, with / for .
    enum rule rule;
    int64_t wanted;
    const char *why;
} settings[] = {
    {"kernel.unprivileged_bpf_disabled", AT_LEAST, 1,
     "programs of the host's users may load BPF into the kernel (jobs may not)"},
    {"kernel.perf_event_paranoid", AT_LEAST, 2, "perf events of the kernel are open to users"},
    {"kernel.kptr_restrict", AT_LEAST, 1, "addresses of the kernel are readable"},
    {"kernel.dmesg_restrict", AT_LEAST, 1, "the kernel's log is readable for users"},
    {"kernel.yama.ptrace_scope", AT_LEAST, 1, "users may trace any process of theirs"},
    {"kernel.io_uring_disabled", AT_LEAST, 2,
     "io_uring is open to the host's users (the filter keeps jobs from it)"},
    {"kernel.randomize_va_space", AT_LEAST, 2, "addresses of programs are not random"},
    {"kernel.print-fatal-signals", EXACTLY, 0, "jobs fill the kernel's log by crashing"},
    {"debug.exception-trace", EXACTLY, 0, "jobs fill the kernel's log by crashing"},
    {"vm.unprivileged_userfaultfd", EXACTLY, 0, "userfaultfd is open to users (jobs may not)"},
    {"dev.tty.legacy_tiocsti", EXACTLY, 0, "a program may type into its terminal"},
    {"fs.protected_symlinks", AT_LEAST, 1, "links in sticky folders are followed"},
    {"fs.protected_hardlinks", AT_LEAST, 1, "users may link to files of others"},
    {"fs.protected_fifos", AT_LEAST, 1, "pipes in sticky folders are opened for writing"},
    {"fs.protected_regular", AT_LEAST, 1, "files in sticky folders are opened for writing"},
    {"fs.suid_dumpable", EXACTLY, 0, "set-id programs leave core files"},
};

static void see_setting(struct doctor *d, const struct knob *s)
{
    char path[96];
    int at = snprintf(path, sizeof path, "proc/sys/");
    snprintf(path + at, sizeof path - (size_t)at, "%s", s->name);
    for (char *p = path + at; (p = strchr(p, '.'));) {
        *p = '/';
    }
    int64_t value = host_number(d->root, path);
    if (value == HOST_NO_VALUE) {
        return; // this kernel has no such thing
    }
    struct doctor_row *r = doctor_add(d, "settings", s->name);
    bool good = s->rule == AT_LEAST ? value >= s->wanted : value == s->wanted;
    r->state = good ? DOCTOR_FINE : DOCTOR_ADVICE;
    DOCTOR_FOUND(r, "%lld", (long long)value);
    if (!good) {
        DOCTOR_COST(r, "%s", s->why);
        DOCTOR_FIX(r, "%ssysctl -w %s=%lld; for good: a line in /etc/sysctl.d/60-isle.conf",
                   d->host.place == HOST_MACHINE ? "" : "outside, where the setting is: ", s->name,
                   (long long)s->wanted);
    }
}

static void see_core_pattern(struct doctor *d)
{
    char text[256];
    if (fd_read_at(d->root, "proc/sys/kernel/core_pattern", text, sizeof text) < 0) {
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    struct doctor_row *r = doctor_add(d, "settings", "kernel.core_pattern");
    r->state = DOCTOR_FINE;
    DOCTOR_FOUND(r, "%.120s%s", text,
                 text[0] == '|' ? " (a program run by host root; isle's jobs never reach it)" : "");
}

void doctor_settings(struct doctor *d)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        see_setting(d, &settings[i]);
    }
    see_core_pattern(d);
}
