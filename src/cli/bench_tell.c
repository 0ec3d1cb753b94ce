// What `isle bench` found, for people and for programs.
#include "base/buf.h"
#include "base/fd.h"
#include "cli/bench.h"
#include "cli/verb.h"
#include "codec/json_out.h"
#include "model/result.h"

#include <stdio.h>

const char *const bench_kind_names[BENCH_N_KINDS] = {"bare", "bwrap",    "isle",
                                                     "run",  "launcher", "parked"};
const char *const bench_program_names[BENCH_N_PROGRAMS] = {"true", "python", "node"};

static const char *const kind_titles[BENCH_N_KINDS] = {
    "bare: fork, chroot, exec", "bwrap",
    "isle, resident service",   "isle run, whole program",
    "isle-launcher alone",      "parked sandbox"};
static const char *const program_titles[BENCH_N_PROGRAMS] = {"/bin/true", "Python, print(1)",
                                                             "Node.js, console.log(1)"};
static const char *const mark_names[PLAN_N_MARKS] = {
    "request_read", "groups_made", "cloned", "parked",        "phase_two",
    "exec",         "report_read", "reaped", "groups_removed"};

static const struct {
    const char *name;
    double q;
} quantiles[] = {{"p10", .10}, {"p50", .50}, {"p90", .90}, {"p99", .99}};
enum { MEDIAN = 1 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The nearest rank: always one of the samples. Sorts them.
static double quantile(double *values, int n, double q)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    int rank = (int)(q * n);
    rank += rank < q * n;
    return values[rank > 0 ? rank - 1 : 0];
}

// Median over median; 0 when one of them was not measured.
static double ratio(const struct bench_report *r, enum bench_kind kind, enum bench_kind base,
                    enum bench_program program)
{
    const struct bench_row *a = &r->row[kind][program], *b = &r->row[base][program];
    return a->n && b->n ? quantile(a->ms, a->n, quantiles[MEDIAN].q) /
                              quantile(b->ms, b->n, quantiles[MEDIAN].q)
                        : 0;
}

// ---- For people

static void tell_ratio(double value, bool itself)
{
    char text[32] = "";
    if (value > 0 && !itself) {
        snprintf(text, sizeof text, "%.2f x", value);
    }
    printf("  %8s", text);
}

static void tell_row(const struct bench_report *r, enum bench_kind kind, enum bench_program program)
{
    const struct bench_row *row = &r->row[kind][program];
    printf("  %-24s", kind_titles[kind]);
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        printf(" %8.2f", quantile(row->ms, row->n, quantiles[i].q));
    }
    if (row->jobs_s > 0) {
        printf("  %8.1f", row->jobs_s);
    } else {
        printf("  %8s", "");
    }
    tell_ratio(ratio(r, kind, BENCH_BWRAP, program), kind == BENCH_BWRAP);
    tell_ratio(ratio(r, kind, BENCH_BARE, program), kind == BENCH_BARE);
    putchar('\n');
}

static void tell_program(const struct bench_report *r, enum bench_program program, bool colour)
{
    int n = 0;
    for (int k = 0; k < BENCH_N_KINDS; k++) {
        if (r->row[k][program].n && n++ == 0) {
            printf("%s%-26s%s", colour ? "\033[1m" : "", program_titles[program],
                   colour ? "\033[0m" : "");
            printf(" %8s %8s %8s %8s  %8s  %8s  %8s\n", "p10", "p50", "p90", "p99 ms", "jobs/s",
                   "/ bwrap", "/ bare");
        }
        if (r->row[k][program].n) {
            tell_row(r, (enum bench_kind)k, program);
        }
    }
    fputs(n ? "\n" : "", stdout);
}

static void tell_marks(const struct bench_report *r)
{
    printf("Where the time goes, us from the request, p50%14s %8s\n", "launcher", "parked");
    for (int i = 0; i < PLAN_N_MARKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", mark_names[i]);
        for (char *p = name; *p; p++) {
            *p = *p == '_' ? ' ' : *p;
        }
        printf("  %-47s %9.0f %8.0f\n", name,
               quantile(r->marks_us[0][i], r->n_marks, quantiles[MEDIAN].q),
               quantile(r->marks_us[1][i], r->n_marks, quantiles[MEDIAN].q));
    }
    putchar('\n');
}

static void tell_downgrades(const struct bench_report *r)
{
    const char *separator = "isle lacks something here, and is not comparable: ";
    for (size_t i = 0; i < n_downgrades; i++) {
        if (r->downgrades & downgrades[i].bit) {
            printf("%s%s", separator, downgrades[i].name);
            separator = ", ";
        }
    }
    fputs(separator[0] == ',' ? " (isle doctor says more).\n" : "", stdout);
}

static void tell_people(const struct bench_report *r)
{
    bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
        tell_program(r, (enum bench_program)p, colour);
    }
    if (r->n_marks) {
        tell_marks(r);
    }
    if (r->detail && r->pss_kb != PLAN_UNKNOWN) {
        printf("isle-launcher's proportional set size: %llu kB\n", (unsigned long long)r->pss_kb);
    }
    printf("%d rounds, one after another and interleaved; ratios are of medians.", r->rounds);
    if (r->jobs) {
        printf(" jobs/s: %d jobs, %d at once, %u CPUs.", r->jobs, r->in_flight, r->cpus);
    }
    putchar('\n');
    if (r->launcher == SEAT_BWRAP) {
        printf("isle's sandboxes were made by Bubblewrap, which isle then locks further.\n");
    }
    if (r->load > 0.5 * r->cpus) {
        printf("The machine was busy before (load %.1f on %u CPUs): do not trust this run.\n",
               r->load, r->cpus);
    }
    if (r->bwrap[0]) {
        printf("bwrap is %s, without limits, filter or Landlock%s.\n", r->bwrap,
               r->downgrades ? "" : "; isle has them all");
    } else if (r->bwrap_missing[0]) {
        printf("Without bwrap: %s.\n", r->bwrap_missing);
    }
    tell_downgrades(r);
}

// ---- For programs

// "" is null.
static void put_text(struct buf *b, const char *key, const char *text)
{
    json_put_text(b, key, *text ? text : NULL);
}

// null: not measured.
static void put_number(struct buf *b, const char *key, double value)
{
    if (value > 0) {
        json_put_number(b, key, value, 3);
    } else {
        json_put_text(b, key, NULL);
    }
}

static void put_row(struct buf *b, const struct bench_report *r, enum bench_kind kind,
                    enum bench_program program)
{
    const struct bench_row *row = &r->row[kind][program];
    json_begin(b, NULL, '{');
    json_put_text(b, "kind", bench_kind_names[kind]);
    json_put_text(b, "program", bench_program_names[program]);
    json_put_int(b, "rounds", row->n);
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        char key[16];
        snprintf(key, sizeof key, "%s_ms", quantiles[i].name);
        put_number(b, key, quantile(row->ms, row->n, quantiles[i].q));
    }
    put_number(b, "jobs_per_second", row->jobs_s);
    put_number(b, "to_bwrap", ratio(r, kind, BENCH_BWRAP, program));
    put_number(b, "to_bare", ratio(r, kind, BENCH_BARE, program));
    json_end(b, '}');
}

static void put_marks(struct buf *b, const struct bench_report *r)
{
    static const char *const of[] = {"launcher", "parked"};
    json_begin(b, "marks_us", '{');
    for (size_t k = 0; k < ARRAY_LEN(of); k++) {
        json_begin(b, of[k], '{');
        for (int i = 0; i < PLAN_N_MARKS; i++) {
            double us = quantile(r->marks_us[k][i], r->n_marks, quantiles[MEDIAN].q);
            json_put_number(b, mark_names[i], us, 1);
        }
        json_end(b, '}');
    }
    json_end(b, '}');
}

static void tell_programs(const struct bench_report *r)
{
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    json_begin(&b, NULL, '{');
    json_put_int(&b, "rounds", r->rounds);
    json_put_int(&b, "jobs", r->jobs);
    json_put_int(&b, "in_flight", r->in_flight);
    json_put_int(&b, "cpus", r->cpus);
    json_put_number(&b, "load", r->load, 2);
    put_text(&b, "launcher", seat_launcher_names[r->launcher]);
    put_text(&b, "bwrap", r->bwrap);
    put_text(&b, "bwrap_missing", r->bwrap_missing);
    downgrades_write(&b, "downgrades", r->downgrades);
    json_begin(&b, "rows", '[');
    for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
        for (int k = 0; k < BENCH_N_KINDS; k++) {
            if (r->row[k][p].n) {
                put_row(&b, r, (enum bench_kind)k, (enum bench_program)p);
            }
        }
    }
    json_end(&b, ']');
    if (r->n_marks) {
        put_marks(&b, r);
    }
    if (r->detail) {
        put_number(&b, "launcher_pss_kb", r->pss_kb == PLAN_UNKNOWN ? 0 : (double)r->pss_kb);
    }
    json_end(&b, '}');
    puts(buf_text(&b));
}

void bench_tell(const struct bench_report *r, bool json)
{
    if (json) {
        tell_programs(r);
    } else {
        tell_people(r);
    }
}
