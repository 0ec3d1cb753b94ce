// The compiled policy, answer by answer: the filters run here in an interpreter of classic BPF, on
// calls that a job may try. (That the kernel answers so too is tested from inside a sandbox.)
#include "base/fd.h"
#include "guest/policy/policy.h"
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t load(const struct seccomp_data *d, uint32_t offset)
{
    uint32_t word;
    assert_true(offset % 4 == 0 && offset + 4 <= sizeof *d);
    memcpy(&word, (const char *)d + offset, 4);
    return word;
}

// The filter's answer. Whatever it reads or jumps to must exist.
static uint32_t run(const struct policy_filter *f, const struct seccomp_data *d)
{
    uint32_t a = 0;
    for (size_t pc = 0; pc < f->count; pc++) {
        const struct sock_filter *i = &f->code[pc];
        bool yes = false;
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            a = load(d, i->k);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            continue;
        case BPF_RET | BPF_K:
            return i->k;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == i->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= i->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            yes = a > i->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & i->k) != 0;
            break;
        default:
            fail_msg("unknown instruction %x", i->code);
        }
        pc += yes ? i->jt : i->jf;
    }
    fail_msg("the filter has no end");
    return 0;
}

static int number(const char *name)
{
    for (size_t i = 0; i < policy_n_names; i++) {
        if (!strcmp(policy_names[i].name, name)) {
            return policy_names[i].number;
        }
    }
    return -1;
}

enum { ALLOW = 0, KILL = -1, NOTHING = -2 };

static int meaning(uint32_t action)
{
    switch (action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        return ALLOW;
    case SECCOMP_RET_ERRNO:
        return action & SECCOMP_RET_DATA ? (int)(action & SECCOMP_RET_DATA) : NOTHING;
    case SECCOMP_RET_KILL_PROCESS:
        return KILL;
    default:
        fail_msg("unexpected action %x", action);
        return KILL;
    }
}

// As the kernel combines them: the stricter answer counts.
static int both(enum plan_filter variant, const struct seccomp_data *d)
{
    int one = meaning(run(&policy_stage1, d)), two = meaning(run(&policy_stage2[variant], d));
    return one == KILL ? KILL : two ? two : one; // of equal ones the later
}

static const struct {
    const char *name;
    uint64_t args[4];
    int setup, job; // stage 1 alone; both
} table[] = {
    {"read", {0}, ALLOW, ALLOW},
    {"mount", {0}, ALLOW, EPERM},
    {"unshare", {CLONE_NEWUSER}, ALLOW, EPERM},
    {"keyctl", {0}, ALLOW, EPERM},
    {"clone3", {0}, ALLOW, ENOSYS},
    {"openat2", {0}, ALLOW, ENOSYS},
    {"setns", {0}, ALLOW, EPERM},
    {"ptrace", {0}, EPERM, EPERM},
    {"bpf", {0}, EPERM, EPERM},
    {"io_uring_setup", {0}, ENOSYS, ENOSYS},
    {"clone", {0x11}, ALLOW, ALLOW},
    {"clone", {CLONE_VM | CLONE_THREAD | 0x11}, ALLOW, ALLOW},
    {"clone", {CLONE_NEWUSER | 0x11}, EPERM, EPERM},
    {"clone", {CLONE_NEWNS}, EPERM, EPERM},
    {"clone", {CLONE_NEWNET | CLONE_VM}, EPERM, EPERM},
    {"clone", {CLONE_NEWCGROUP}, EPERM, EPERM},
    {"socket", {1, 1, 0}, ALLOW, ALLOW},
    {"socket", {1, 5 | 02004000, 0}, ALLOW, ALLOW},
    {"socket", {2, 1 | 02004000, 6}, ALLOW, ALLOW},
    {"socket", {10, 2, 17}, ALLOW, ALLOW},
    {"socket", {2, 1, 262}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socket", {2, 3, 1}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socket", {2, 5, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socket", {16, 3, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socket", {40, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socket", {(UINT64_C(1) << 32) | 40, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"socketpair", {1, 1, 0}, ALLOW, ALLOW},
    {"socketpair", {30, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
    {"ioctl", {0, 0x5401}, ALLOW, ALLOW},
    {"ioctl", {0, 0x5412}, EPERM, EPERM},
    {"ioctl", {0, (UINT64_C(0xdead) << 32) | 0x5412}, EPERM, EPERM},
    {"ioctl", {0, 0x541C}, EPERM, EPERM},
    {"ioctl", {0, 0x5423}, EPERM, EPERM},
    {"ioctl", {0, 0x80045430}, ALLOW, ALLOW}, // TIOCGPTN
    {"ioctl", {0, 0x8912}, ALLOW, ALLOW},
    {"ioctl", {0, 0x8940}, ENOTTY, ENOTTY},
    {"ioctl", {0, 0x89a0}, ENOTTY, ENOTTY},
    {"ioctl", {0, 0x8983}, ENOTTY, ENOTTY},
    {"ioctl", {0, 0x80111500}, ENOTTY, ENOTTY},
    {"ioctl", {0, 0x40049409}, ALLOW, ALLOW},
    {"ioctl", {0, 0x40086602}, EPERM, EPERM},
    {"ioctl", {0, (UINT64_C(1) << 63) | 0x401C5820}, EPERM, EPERM},
    {"fcntl", {0, F_SETLEASE}, EPERM, EPERM},
    {"fcntl", {0, F_SETFL}, ALLOW, ALLOW},
    {"personality", {0}, ALLOW, ALLOW},
    {"personality", {0xffffffff}, ALLOW, ALLOW},
    {"personality", {UINT64_MAX}, ALLOW, ALLOW},
    {"personality", {0x40000}, EPERM, EPERM},
    {"personality", {(UINT64_C(1) << 32) | 8}, EPERM, EPERM},
    {"prctl", {35}, EPERM, EPERM},
    {"prctl", {0x59616d61}, EPERM, EPERM},
    {"prctl", {15}, ALLOW, ALLOW},
    {"prctl", {22, 2}, EINVAL, EINVAL},
    {"prctl", {67, 1}, EINVAL, EINVAL},
    {"prctl", {(UINT64_C(1) << 32) | 67, 1}, EINVAL, EINVAL},
    {"prctl", {1000}, EINVAL, EINVAL},
    {"prctl", {0x53564d41}, ALLOW, ALLOW},
    {"seccomp", {1, 0}, ALLOW, ENOSYS},
    {"madvise", {0, 0, 12}, EINVAL, EINVAL},
    {"madvise", {0, 0, 4}, ALLOW, ALLOW},
    {"setsockopt", {3, 17, 100}, EPERM, EPERM},
    {"setsockopt", {3, 41, 32}, EPERM, EPERM},
    {"fadvise64", {3, 0, 0, 3}, ALLOW, ALLOW},
    {"sync", {0}, NOTHING, NOTHING},
    {"setsockopt", {3, 1, 26}, EPERM, EPERM},
    {"setsockopt", {3, 1, 50}, EPERM, EPERM},
    {"setsockopt", {3, 1, 51}, EPERM, EPERM},
    {"setsockopt", {3, 1, 52}, EPERM, EPERM},
    {"setsockopt", {3, 6, 31}, EPERM, EPERM},
    {"setsockopt", {3, 6, 26}, ALLOW, ALLOW},
    {"setsockopt", {3, 1, 2}, ALLOW, ALLOW},
    {"fchmod", {3, 0644}, ALLOW, ALLOW},
    {"fchmod", {3, 04644}, EPERM, EPERM},
    {"fchmodat", {3, 0, 02755}, EPERM, EPERM},
    {"fchmodat", {3, 0, 01777}, ALLOW, ALLOW},
    {"mkdirat", {3, 0, 02755}, EPERM, EPERM},
    {"mkdirat", {3, 0, 0755}, ALLOW, ALLOW},
    {"openat", {3, 0, O_RDONLY, 06777}, ALLOW, ALLOW}, // no file is made: the mode is garbage
    {"openat", {3, 0, O_CREAT, 06777}, EPERM, EPERM},
    {"openat", {3, 0, O_TMPFILE, 04700}, EPERM, EPERM},
    {"openat", {3, 0, O_CREAT, 0777}, ALLOW, ALLOW},
    {"openat", {3, 0, O_DIRECTORY, 04000}, ALLOW, ALLOW},
    {"mknodat", {3, 0, 0010644, 0}, ALLOW, ALLOW},
    {"mknodat", {3, 0, 0020644, 0}, EPERM, EPERM},
    {"mknodat", {3, 0, 0060644, 0}, EPERM, EPERM},
    {"mknodat", {3, 0, 0104755, 0}, EPERM, EPERM},
    {"chmod", {0, 04755}, EPERM, EPERM}, // these are x86_64's alone
    {"creat", {0, 02755}, EPERM, EPERM},
    {"mkdir", {0, 04755}, EPERM, EPERM},
    {"open", {0, O_CREAT | O_WRONLY, 04755}, EPERM, EPERM},
    {"open", {0, O_WRONLY, 04755}, ALLOW, ALLOW},
    {"mknod", {0, 0020666}, EPERM, EPERM},
};

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int nr = number(table[i].name);
        if (nr < 0) {
            continue; // not on this architecture
        }
        struct seccomp_data d = {.nr = nr, .arch = SECCOMP_ARCH};
        for (int k = 0; k < 4; k++) {
            d.args[k] = table[i].args[k];
        }
        int setup = meaning(run(&policy_stage1, &d)), job = both(PLAN_FILTER_FOLDER, &d);
        if (setup != table[i].setup || job != table[i].job) {
            fail_msg("%s(%llx, %llx, %llx, %llx): %d in set-up, %d for a job", table[i].name,
                     (unsigned long long)d.args[0], (unsigned long long)d.args[1],
                     (unsigned long long)d.args[2], (unsigned long long)d.args[3], setup, job);
        }
    }
}

static void test_fallocate(void **state)
{
    (void)state;
    struct seccomp_data d = {.nr = number("fallocate"), .arch = SECCOMP_ARCH};
    assert_int_equal(both(PLAN_FILTER_TMPFS, &d), ALLOW);
    assert_int_equal(both(PLAN_FILTER_FOLDER, &d), EOPNOTSUPP);
}

static void test_unknown(void **state)
{
    (void)state;
    struct seccomp_data d = {.arch = SECCOMP_ARCH};
    for (int nr = 453; nr < 1024; nr++) { // newer than the policy, statmount and the like included
        d.nr = nr;
        assert_int_equal(both(PLAN_FILTER_TMPFS, &d), ENOSYS);
    }
    d.nr = -1;
    assert_int_equal(both(PLAN_FILTER_TMPFS, &d), ENOSYS);
    d.nr = 0x40000000 + 1; // x32
    assert_int_equal(both(PLAN_FILTER_TMPFS, &d), ENOSYS);
}

static void test_architecture(void **state)
{
    (void)state;
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, 0};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        for (int nr = 0; nr < 600; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = foreign[i]};
            assert_int_equal(meaning(run(&policy_stage1, &d)), KILL);
        }
    }
}

// Stage 2 only takes away: nothing becomes possible by it. And it stays short: it is installed per
// job.
static void test_stages(void **state)
{
    (void)state;
    assert_true(policy_stage2[PLAN_FILTER_TMPFS].count < 50);
    assert_true(policy_stage2[PLAN_FILTER_FOLDER].count < 50);
    for (int nr = 0; nr < 600; nr++) {
        struct seccomp_data d = {.nr = nr, .arch = SECCOMP_ARCH};
        if (meaning(run(&policy_stage1, &d)) != ALLOW) {
            assert_int_not_equal(both(PLAN_FILTER_TMPFS, &d), ALLOW);
        }
    }
}

// An operator's additions are allowed with any arguments; nothing else changes, neither another
// call's answer nor what becomes of another architecture or of x32.
static void test_additions(void **state)
{
    (void)state;
    const uint32_t calls[] = {(uint32_t)number("kcmp"), (uint32_t)number("clone")};
    const struct policy_filter *plain[] = {&policy_stage1, &policy_stage2[PLAN_FILTER_FOLDER]};
    static struct sock_filter code[SECCOMP_MAX_CODE];
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        int n = seccomp_allow_first(code, plain[i]->code, plain[i]->count, calls, 2);
        assert_true(n > plain[i]->count);
        const struct policy_filter more = {code, (unsigned short)n};
        for (int nr = 0; nr < 600; nr++) {
            struct seccomp_data d = {.nr = nr, .arch = SECCOMP_ARCH, .args = {CLONE_NEWUSER}};
            bool added = (uint32_t)nr == calls[0] || (uint32_t)nr == calls[1];
            assert_int_equal(run(&more, &d), added ? SECCOMP_RET_ALLOW : run(plain[i], &d));
            d.nr |= 0x40000000;
            assert_int_equal(run(&more, &d), run(plain[i], &d));
            d = (struct seccomp_data){.nr = nr, .arch = AUDIT_ARCH_I386};
            assert_int_equal(run(&more, &d), run(plain[i], &d));
        }
    }
    const uint32_t many[SECCOMP_MAX_CALLS + 1] = {0};
    assert_int_equal(seccomp_allow_first(code, policy_stage1.code, policy_stage1.count, many,
                                         SECCOMP_MAX_CALLS + 1),
                     -E2BIG);
}

static void test_names(void **state)
{
    (void)state;
    assert_true(policy_n_names > 250);
    for (size_t i = 1; i < policy_n_names; i++) {
        assert_true(strcmp(policy_names[i - 1].name, policy_names[i].name) < 0);
    }
    assert_int_equal(number("no_such_call"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_fallocate),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_architecture),
        cmocka_unit_test(test_stages),  cmocka_unit_test(test_additions),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
