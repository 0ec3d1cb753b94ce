// mkpolicy: build-time program. mkpolicy ARCH POLICY filters|names > FILE.c
//
// Reads a policy (job.policy says how it is written) and writes C tables: the filters of both
// stages, or the names of all system calls. Rules without arguments become libseccomp's binary
// tree. Rules with arguments are assembled here, in front of it: libseccomp compares 64 bits,
// cannot say "not these bits", and takes an argument once per rule only. The architecture and x32
// tests are ours too: libseccomp's own would kill x32 instead of answering ENOSYS.
#include <ctype.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 4, MAX_RULES = 1024, MAX_CODE = 4096 };
enum { FOLDER_VARIANT = 1, N_VARIANTS = 2 }; // as enum plan_filter

struct term {
    unsigned arg;
    bool upper; // its upper half instead of its lower
    uint32_t mask, value;
    bool equal;
};
enum when { ALWAYS, SETUP, FOLDER }; // SETUP, FOLDER: allowed in stage 1, `action` in stage 2
struct rule {
    char name[40];
    int nr;
    enum when when;
    uint32_t action; // SECCOMP_RET_*
    struct term term[MAX_TERMS];
    unsigned n_terms;
};
struct code {
    struct sock_filter f[MAX_CODE];
    size_t n;
};

static struct rule rules[MAX_RULES];
static size_t n_rules;
static uint32_t arch_token, audit_arch;
static unsigned line_no;

static _Noreturn void die(const char *what, const char *detail)
{
    fprintf(stderr, "mkpolicy: line %u: %s: %s\n", line_no, what, detail);
    exit(1);
}

// What a policy may call by name. Values of the kernel's headers, the same on x86_64 and aarch64.
static const struct {
    const char *name;
    uint32_t value;
} constants[] = {
    {"AF_UNIX", 1},
    {"AF_INET", 2},
    {"AF_INET6", 10},
    {"SOCK_STREAM", 1},
    {"SOCK_DGRAM", 2},
    {"SOCK_SEQPACKET", 5},
    {"IPPROTO_TCP", 6},
    {"IPPROTO_UDP", 17},
    {"SOL_SOCKET", 1},
    {"SO_ATTACH_FILTER", 26},
    {"SO_ATTACH_BPF", 50},
    {"SO_ATTACH_REUSEPORT_CBPF", 51},
    {"SO_ATTACH_REUSEPORT_EBPF", 52},
    {"IPPROTO_IPV6", 41},
    {"TCP_MD5SIG", 14},
    {"TCP_ULP", 31},
    {"TCP_MD5SIG_EXT", 32},
    {"TCP_AO_ADD_KEY", 38},
    {"UDP_ENCAP", 100},
    {"IPV6_FLOWLABEL_MGR", 32},
    // NEWNS, CGROUP, UTS, IPC, USER, PID, NET. NEWTIME (0x80) is the exit signal's byte in clone().
    {"CLONE_NEW_ANY", 0x7E020000},
    {"O_CREAT", 0100},
    {"O_TMPFILE_BIT", 020000000},
    {"S_IFMT", 0170000},
    {"S_IFCHR", 0020000},
    {"S_IFBLK", 0060000},
    {"PR_SET_MM", 35},
    {"PR_SET_PTRACER", 0x59616d61},
    {"PR_SET_SECCOMP", 22},
    {"PR_SET_MDWE", 65},
    {"PR_GET_MDWE", 66},
    {"PR_SET_VMA", 0x53564d41},
    {"MADV_MERGEABLE", 12},
    {"RWF_OTHER", 0xffffffc8}, // not HIPRI, DSYNC, SYNC, APPEND, NOAPPEND
    {"POSIX_FADV_DONTNEED", 4},
    {"F_SETLEASE", 1024},
    {"F_OFD_SETLK", 37},
    {"F_OFD_SETLKW", 38},
    {"TIOCSTI", 0x5412},
    {"TIOCLINUX", 0x541C},
    {"TIOCSETD", 0x5423},
    {"FS_IOC_SETFLAGS", 0x40086602},
    {"FS_IOC_FSSETXATTR", 0x401C5820},
    {"RLIMIT_CORE", 4},
    {"MSG_OOB", 1},
    {"SO_LINGER", 13},
    {"F_NOTIFY", 1026},
    {"IN_READING", 0x31}, // IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN
    {"PR_SCHED_CORE", 62},
    {"IOC_TYPE", 0xff00},
    {"TTY_TYPE", 0x5400},
    {"SIOC_FIRST", 0x8900}, // to 0x893f
    {"SIOCETHTOOL", 0x8946},
    {"FS_IOC_FSGETXATTR", 0x801C581F},
    {"FS_IOC_GETFLAGS", 0x80086601},
    {"FS_IOC_FIEMAP", 0xC020660B},
    {"FICLONE", 0x40049409},
    {"FICLONERANGE", 0x4020940D},
    {"FIDEDUPERANGE", 0xC0189436},
    {"MAP_HUGETLB", 0x40000},
    {"MFD_HUGETLB", 4},
    {"SHM_HUGETLB", 0x800},
};

static const struct {
    const char *name;
    uint32_t value;
} errnos[] = {{"NOTHING", 0}, {"EPERM", 1},       {"EINVAL", 22},      {"ENOTTY", 25},
              {"ENOSYS", 38}, {"EOPNOTSUPP", 95}, {"EAFNOSUPPORT", 97}};

// ---- reading --------------------------------------------------------------------------------

static uint32_t number(const char *word)
{
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (!strcmp(word, constants[i].name)) {
            return constants[i].value;
        }
    }
    char *end;
    unsigned long v = strtoul(word, &end, 0);
    if (*end || end == word || v > UINT32_MAX) {
        die("not a number or a known constant", word);
    }
    return (uint32_t)v;
}

static bool action_of(const char *word, uint32_t *ret)
{
    if (!strcmp(word, "allow")) {
        *ret = SECCOMP_RET_ALLOW;
        return true;
    }
    for (size_t i = 0; i < sizeof errnos / sizeof *errnos; i++) {
        if (!strcmp(word, errnos[i].name)) {
            *ret = SECCOMP_RET_ERRNO | errnos[i].value;
            return true;
        }
    }
    return false;
}

// TERM [and TERM ...]: aN|hN [& MASK] ==|!= VALUE
static void read_terms(char **save, struct rule *r)
{
    for (const char *w = strtok_r(NULL, " ", save); w; w = strtok_r(NULL, " ", save)) {
        if (r->n_terms == MAX_TERMS) {
            die("too many terms", r->name);
        }
        struct term *t = &r->term[r->n_terms++];
        if ((w[0] != 'a' && w[0] != 'h') || w[1] < '0' || w[1] > '5' || w[2]) {
            die("expected an argument, a0 to a5, or its upper half, h0 to h5", w);
        }
        *t = (struct term){.arg = (unsigned)(w[1] - '0'), .upper = w[0] == 'h', .mask = UINT32_MAX};
        const char *op = strtok_r(NULL, " ", save);
        if (op && !strcmp(op, "&")) {
            const char *mask = strtok_r(NULL, " ", save);
            t->mask = number(mask ? mask : "");
            op = strtok_r(NULL, " ", save);
        }
        if (!op || (strcmp(op, "==") && strcmp(op, "!="))) {
            die("expected == or !=", op ? op : "the end");
        }
        t->equal = op[0] == '=';
        const char *value = strtok_r(NULL, " ", save);
        t->value = number(value ? value : "");
        const char *and = strtok_r(NULL, " ", save);
        if (!and) {
            return;
        }
        if (strcmp(and, "and")) {
            die("expected `and`", and);
        }
    }
    die("expected a term", r->name);
}

static void add_name(const char *name, enum when when, uint32_t action)
{
    if (n_rules == MAX_RULES || strlen(name) >= sizeof rules->name) {
        die("too many or too long", name);
    }
    struct rule *r = &rules[n_rules];
    *r = (struct rule){.when = when, .action = action};
    memcpy(r->name, name, strlen(name) + 1);
    r->nr = seccomp_syscall_resolve_name_arch(arch_token, name);
    if (r->nr == __NR_SCMP_ERROR && action != (SECCOMP_RET_ERRNO | 38U)) {
        die("no such system call", name); // ENOSYS is what an unknown call gets anyway
    }
    n_rules++;
}

static void read_line(char *line)
{
    line[strcspn(line, "#\n")] = '\0';
    char *save = NULL;
    const char *word = strtok_r(line, " ", &save);
    enum when when = ALWAYS;
    uint32_t action;
    if (!word) {
        return;
    }
    if (!strcmp(word, "setup") || !strcmp(word, "folder")) {
        when = word[0] == 's' ? SETUP : FOLDER;
        word = strtok_r(NULL, " ", &save);
    }
    if (!word || !action_of(word, &action)) {
        die("unknown action", word ? word : "none");
    }
    size_t first = n_rules;
    while ((word = strtok_r(NULL, " ", &save)) && strcmp(word, "if")) {
        add_name(word, when, action);
    }
    if (n_rules == first) {
        die("no name", "");
    }
    if (word) {
        if (when != ALWAYS || n_rules != first + 1) {
            die("a condition goes with one name and one action", rules[first].name);
        }
        read_terms(&save, &rules[first]);
    }
}

// ---- writing BPF ----------------------------------------------------------------------------

static void put(struct code *c, unsigned op, unsigned jt, unsigned jf, uint32_t k)
{
    if (c->n == MAX_CODE || jt > 255 || jf > 255) {
        die("filter too long", "");
    }
    c->f[c->n++] = (struct sock_filter){(uint16_t)op, (uint8_t)jt, (uint8_t)jf, k};
}

static void put_load(struct code *c, size_t offset)
{
    put(c, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void put_head(struct code *c)
{
    put_load(c, offsetof(struct seccomp_data, arch));
    put(c, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit_arch);
    put(c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    put_load(c, offsetof(struct seccomp_data, nr));
    if (audit_arch == AUDIT_ARCH_X86_64) { // x32 shares the architecture and sets bit 30
        put(c, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000);
        put(c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 38U);
    }
}

static unsigned term_length(const struct term *t) { return t->mask == UINT32_MAX ? 2 : 3; }

// Instructions of one conditional rule: load, mask, compare for each term; the first that does not
// hold jumps behind the rule.
static unsigned rule_length(const struct rule *r)
{
    unsigned n = 1;
    for (unsigned i = 0; i < r->n_terms; i++) {
        n += term_length(&r->term[i]);
    }
    return n;
}

static void put_rule(struct code *c, const struct rule *r)
{
    unsigned left = rule_length(r);
    for (unsigned i = 0; i < r->n_terms; i++) {
        const struct term *t = &r->term[i];
        put_load(c, offsetof(struct seccomp_data, args) + 8 * (size_t)t->arg +
                        (t->upper ? 4 : 0)); // little-endian
        if (t->mask != UINT32_MAX) {
            put(c, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
        }
        left -= term_length(t);
        put(c, BPF_JMP | BPF_JEQ | BPF_K, t->equal ? 0 : left, t->equal ? left : 0, t->value);
    }
    put(c, BPF_RET | BPF_K, 0, 0, r->action);
}

// All conditional rules of one call: skipped as a whole when it is another call; when none holds,
// the number is loaded again and the tree decides.
static void put_conditions(struct code *c, size_t first)
{
    unsigned length = 1;
    for (size_t i = first; i < n_rules; i++) {
        if (rules[i].n_terms && rules[i].nr == rules[first].nr) {
            length += rule_length(&rules[i]);
        }
    }
    put(c, BPF_JMP | BPF_JEQ | BPF_K, 0, length, (uint32_t)rules[first].nr);
    for (size_t i = first; i < n_rules; i++) {
        if (rules[i].n_terms && rules[i].nr == rules[first].nr) {
            put_rule(c, &rules[i]);
        }
    }
    put_load(c, offsetof(struct seccomp_data, nr));
}

static bool first_of_call(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (rules[k].n_terms && rules[k].nr == rules[i].nr) {
            return false;
        }
    }
    return true;
}

static uint32_t scmp_action(uint32_t action)
{
    return action == SECCOMP_RET_ALLOW ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(action & 0xffff);
}

static void put_tree(struct code *c)
{
    scmp_filter_ctx s = seccomp_init(SCMP_ACT_ERRNO(38));
    if (!s || (seccomp_arch_remove(s, SCMP_ARCH_NATIVE), seccomp_arch_add(s, arch_token)) ||
        seccomp_attr_set(s, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) ||
        seccomp_attr_set(s, SCMP_FLTATR_CTL_OPTIMIZE, 2)) {
        die("libseccomp", "cannot begin");
    }
    for (size_t i = 0; i < n_rules; i++) {
        const struct rule *r = &rules[i];
        uint32_t action = r->when == ALWAYS ? r->action : SECCOMP_RET_ALLOW;
        if (r->nr < 0 || r->n_terms || scmp_action(action) == SCMP_ACT_ERRNO(38)) {
            continue;
        }
        int e = seccomp_rule_add(s, scmp_action(action), r->nr, 0);
        if (e) {
            die(strerror(-e), r->name);
        }
    }
    FILE *f = tmpfile();
    if (!f || seccomp_export_bpf(s, fileno(f))) {
        die("libseccomp", "cannot export");
    }
    rewind(f);
    c->n += fread(c->f + c->n, sizeof *c->f, MAX_CODE - c->n, f);
    fclose(f);
    seccomp_release(s);
}

// A call without conditions must not be named twice with different answers, and one with conditions
// must have a line without: else the reader would be misled.
static void check_rules(void)
{
    for (size_t i = 0; i < n_rules; i++) {
        bool plain = rules[i].n_terms == 0, found = plain;
        for (size_t k = 0; k < n_rules; k++) {
            bool same = k != i && !strcmp(rules[k].name, rules[i].name) && !rules[k].n_terms;
            if (plain && same) {
                die("named twice", rules[i].name);
            }
            found |= same;
        }
        if (!found) {
            die("only conditions, no general answer", rules[i].name);
        }
    }
}

static void print_code(const struct code *c, const char *name)
{
    printf("// %zu instructions\nstatic const struct sock_filter %s[] = {\n", c->n, name);
    for (size_t i = 0; i < c->n; i++) {
        printf("{0x%x,%u,%u,0x%x},%s", c->f[i].code, c->f[i].jt, c->f[i].jf, c->f[i].k,
               i % 6 == 5 ? "\n" : "");
    }
    printf("};\n");
}

static void write_stage1(void)
{
    static struct code c;
    put_head(&c);
    for (size_t i = 0; i < n_rules; i++) {
        if (rules[i].n_terms && rules[i].nr >= 0 && first_of_call(i)) {
            put_conditions(&c, i);
        }
    }
    put_tree(&c);
    print_code(&c, "stage1");
}

static void write_stage2(unsigned variant)
{
    static struct code all[N_VARIANTS];
    struct code *c = &all[variant];
    char name[16];
    put_load(c, offsetof(struct seccomp_data, nr)); // stage 1 has seen to architecture and x32
    for (size_t i = 0; i < n_rules; i++) {
        const struct rule *r = &rules[i];
        bool taken = r->when == SETUP || (r->when == FOLDER && variant == FOLDER_VARIANT);
        if (taken && r->nr >= 0) {
            put(c, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)r->nr);
            put(c, BPF_RET | BPF_K, 0, 0, r->action);
        }
    }
    put(c, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    snprintf(name, sizeof name, "stage2_%u", variant);
    print_code(c, name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void write_names(void)
{
    static char *names[1024];
    size_t n = 0;
    for (int nr = 0; nr < 1024; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(arch_token, nr);
        if (name) {
            names[n++] = name;
        }
    }
    qsort(names, n, sizeof *names, by_name);
    printf("const struct policy_name policy_names[] = {\n");
    for (size_t i = 0; i < n; i++) {
        printf("{\"%s\", %d},\n", names[i],
               seccomp_syscall_resolve_name_arch(arch_token, names[i]));
        free(names[i]);
    }
    printf("};\nconst size_t policy_n_names = %zu;\n", n);
}

int main(int argc, char **argv)
{
    char line[512];
    FILE *f = argc == 4 ? fopen(argv[2], "re") : NULL;
    if (!f) {
        fprintf(stderr, "usage: mkpolicy x86_64|aarch64 POLICY filters|names\n");
        return 2;
    }
    bool x86 = !strcmp(argv[1], "x86_64");
    arch_token = x86 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
    audit_arch = x86 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
    while (fgets(line, sizeof line, f)) {
        line_no++;
        read_line(line);
    }
    fclose(f);
    check_rules();
    printf("// made by mkpolicy\n#include \"guest/policy/policy.h\"\n");
    if (!strcmp(argv[3], "names")) {
        write_names();
        return 0;
    }
    write_stage1();
    for (unsigned i = 0; i < N_VARIANTS; i++) {
        write_stage2(i);
    }
    printf("#define FILTER(x) {x, sizeof x / sizeof *x}\n"
           "const struct policy_filter policy_stage1 = FILTER(stage1);\n"
           "const struct policy_filter policy_stage2[PLAN_N_FILTERS] = {"
           "[PLAN_FILTER_TMPFS] = FILTER(stage2_0), [PLAN_FILTER_FOLDER] = FILTER(stage2_1)};\n");
    return 0;
}
