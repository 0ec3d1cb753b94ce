#include "cli/run_end.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/report.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define complain(...) verb_complain("run", __VA_ARGS__)

int run_end_own(const struct run_end *r, enum reason reason, const char *text)
{
    struct result result;
    AUTO_BUF struct buf json = BUF_INIT(1 << 20);
    result_init(&result, r->job->id, 0, 0);
    result_fail(&result, reason, STAGE_PREPARATION, "%s", text);
    result.isolation.launcher = r->launcher;
    if (r->options->json && result_write(&json, &result) == 0) {
        puts(buf_text(&json));
    } else if (!r->options->json) {
        fprintf(stderr, "isle: %s: %s\n", reason_names[reason], text);
    }
    int status = result_exit_status(&result);
    result_done(&result);
    return status;
}

// All of it, even where another process made our standard output O_NONBLOCK (it is shared with
// whoever gave it to us, so the flag stays as it is).
static int write_patiently(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {fd, POLLOUT, 0};
            poll(&ready, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return -errno;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int print_final(struct report *report, const struct buf *final)
{
    if (!(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK)) {
        return report_print(report, final);
    }
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    report->out = open_memstream(&text, &len);
    if (!report->out) {
        return -errno;
    }
    int status = report_print(report, final);
    int e = fclose(report->out) ? -errno : write_patiently(STDOUT_FILENO, text, len);
    return e ? complain("output: %s", strerrordesc_np(-e)) : status;
}

// Does the word of a command name a file here that nobody put into /workspace?
static bool is_left_behind(const struct job *j, const char *word)
{
    struct stat st;
    if (word[0] == '/' || word[0] == '-' || stat(word, &st) || !S_ISREG(st.st_mode)) {
        return false;
    }
    for (size_t i = 0; i < j->n_files; i++) {
        if (strcmp(j->files[i].target, word) == 0) {
            return false;
        }
    }
    return true;
}

// `isle run -- python3 job.py` fails with Python's own words, which know nothing of --file. Only
// where a person reads: a caller that passes on what others wrote would tell them of its files.
static void print_left_behind(const struct job *j)
{
    bool there = j->kind == JOB_COMMAND && !strcmp(j->cwd, "/workspace");
    for (size_t i = 0; there && j->argv[i]; i++) {
        const char *word = j->argv[i];
        bool searched = i == 0 && !strchr(word, '/'); // in PATH
        word += strncmp(word, "./", 2) == 0 ? 2 : 0;
        if (searched || strlen(word) > 200 || !is_left_behind(j, word)) {
            continue;
        }
        char text[256];
        snprintf(text, sizeof text, "%s", word);
        text_no_controls(text);
        bool base = !strchr(text, '/'); // without DEST a copy gets the base name
        fprintf(stderr, "isle: %s is here, not in /workspace: --file %s%s%s puts a copy there\n",
                text, text, base ? "" : ":", base ? "" : text);
        return;
    }
}

int run_end_print(const struct run_end *r, const struct buf *final)
{
    struct report report = {.json = r->options->json,
                            .snippet = r->job->kind == JOB_SNIPPET,
                            .terminal = isatty(STDERR_FILENO),
                            .quiet = r->out_error != 0, // `isle run ... | head`
                            .line_open = r->line_open,
                            .out = stdout,
                            .err = stderr};
    int status = print_final(&report, final);
    if (status < 0) {
        return status;
    }
    bool tells = status > 0 && !report.json && !report.quiet;
    if (tells && report.terminal) {
        print_left_behind(r->job);
    }
    if (tells && r->noexec) { // what failed says "Permission denied", of a file with mode 755
        fprintf(
            stderr,
            "isle: the data folder is mounted noexec, so no file in /workspace can be executed: "
            "%s, or take a workspace in memory (--disk 64)\n",
            r->noexec);
    }
    return r->artifacts->error[0] ? complain("%s", r->artifacts->error) : status;
}

int run_end_status(const struct run_end *r, int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    int error = r->out_error ? r->out_error : r->err_error ? r->err_error : failed ? errno : 0;
    if (error == 0 || error == ETIMEDOUT) {
        return status;
    }
    if (error == EPIPE) { // the reader has what it wanted
        return status ? status : CLI_REFUSED;
    }
    errno = error;
    return complain("output: %m");
}

void run_open_standard_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    fd_close(fd);
}
