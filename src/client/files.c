// `isle files`
#include "base/fd.h"
#include "cli/terminal.h"
#include "client/client.h"
#include "client/local.h"
#include "client/print.h"
#include "client/progress.h"
#include "codec/json_out.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

// SESSION:PATH. The first colon counts: an id has none.
struct place {
    char session[64];
    const char *path; // "" where there is none
};

static bool take_place(const char *word, bool needs_path, struct place *ret)
{
    const char *colon = strchr(word, ':');
    size_t n = colon ? (size_t)(colon - word) : strlen(word);
    if (n == 0 || n >= sizeof ret->session || (needs_path && (!colon || !colon[1]))) {
        verb_complain("files", "%.200s is not SESSION:PATH", word);
        return false;
    }
    snprintf(ret->session, sizeof ret->session, "%.*s", (int)n, word);
    ret->path = colon ? colon + 1 : "";
    return true;
}

// ".../sessions/ID/files" and, behind a slash, the path below /workspace without its dots: in a URL
// they would be steps from folder to folder. The service takes and refuses the same in JSON.
static bool put_path(struct buf *out, const struct place *at)
{
    const char *path = at->path;
    client_path(out, "/sandbox/sessions/%s/files", at->session);
    path += strncmp(path, "/workspace/", 11) == 0 ? 11 : 0;
    bool any = false;
    for (bool more = true; more;) {
        const size_t n = strcspn(path, "/");
        AUTO_FREE char *name = strndup(path, n);
        if (!name || strcmp(name, "..") == 0) {
            verb_complain("files",
                          name ? "path: \"%.200s\" may not contain \"..\"" : "not enough memory",
                          at->path);
            return false;
        }
        if (strcmp(name, ".") != 0) {
            buf_putc(out, '/');
            address_escape(out, name, false);
            any = true;
        }
        more = path[n] == '/';
        path += n + more;
    }
    if (!any) {
        buf_putc(out, '/'); // the workspace, not its list
    }
    return true;
}

static int tell_nothing(yyjson_val *data)
{
    (void)data;
    return 0;
}

static int tell_list(yyjson_val *data)
{
    static const struct print_column columns[] = {
        {"path", "path"}, {"type", "type"}, {"bytes", "size"}, {"modified", "modified_at"}};
    int e = print_list(data, columns, ARRAY_LEN(columns));
    if (!e && yyjson_is_true(yyjson_obj_get(data, "truncated"))) {
        fflush(stdout);
        fputs("isle: there is more than the service lists at once: name a folder in it\n", stderr);
    }
    return e;
}

int files_list(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    struct place at;
    if (!take_place(c->command.operands[0], false, &at)) {
        return CLI_REFUSED;
    }
    client_path(&path, "/sandbox/sessions/%s/files", at.session);
    client_query(&path, "path", *at.path ? at.path : NULL);
    client_query(&path, "recursive", c->command.options.recursive ? "true" : NULL);
    struct call call = CALL_INIT("GET", buf_text(&path));
    return client_tell(c, &call, tell_list);
}

// ---- get

struct download {
    struct local to;
    struct progress progress;
    struct call *call;
    bool terminal; // it goes to one
};

static int on_download(void *ctx, const char *data, size_t len)
{
    struct download *d = ctx;
    if (d->terminal) {
        AUTO_BUF struct buf clean = BUF_INIT(terminal_room(len));
        int e = terminal_clean(&clean, data, len);
        return e ? e : local_add(&d->to, buf_text(&clean), clean.len);
    }
    d->progress.total = d->call->length;
    return local_add(&d->to, data, len);
}

static void on_moved(void *ctx, int64_t bytes)
{
    struct download *d = ctx;
    progress_move(&d->progress, bytes);
}

// Whole, and what the service says it is.
static int check_content(const struct call *call, const char *checksum, bool cleaned,
                         struct call_error *why)
{
    return strlen(call->etag) == SHA256_HEX - 1 && !cleaned && strcmp(call->etag, checksum) != 0
               ? call_refuse(why, -EBADMSG, "what came has another checksum than the service says")
               : 0;
}

static int download(struct client *c, struct download *d, struct call *call)
{
    char checksum[SHA256_HEX];
    struct call_error why;
    call->take = on_download;
    call->moved = on_moved;
    call->ctx = d;
    call->endless = true;
    d->call = call;
    int e = call_make(&c->caller, call, &why);
    progress_end(&d->progress);
    local_end(&d->to, checksum);
    e = e ? e : check_content(call, checksum, d->terminal, &why);
    if (e) {
        return client_fail(c, e, &why);
    }
    // a file has its checksum with it, a folder's archive is made while it is sent
    e = call->etag[0] ? 0 : local_is_archive(&d->to);
    e = e ? e : local_commit(&d->to);
    return e ? verb_complain("files", "%.200s: %s", d->to.name, strerrordesc_np(-e)) : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int files_get(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    struct place at;
    struct download d = {};
    if (!take_place(c->command.operands[0], true, &at)) {
        return CLI_REFUSED;
    }
    if (!put_path(&path, &at)) {
        return CLI_REFUSED;
    }
    const char *to = c->command.n_operands > 1 ? c->command.operands[1] : ".";
    int e = local_begin(&d.to, to, base_name(at.path));
    if (e) {
        local_drop(&d.to);
        return verb_complain("files", "%.300s: %s", to, strerrordesc_np(-e));
    }
    struct call call = CALL_INIT("GET", buf_text(&path));
    d.terminal = strcmp(to, "-") == 0 && isatty(STDOUT_FILENO);
    progress_begin(&d.progress, d.terminal ? NULL : base_name(at.path), -1);
    int status = download(c, &d, &call);
    call_done(&call);
    local_drop(&d.to);
    return status;
}

// ---- put

// A regular file, a pipe, or standard input. Descriptor, or -1 after a complaint.
static int open_source(const char *path, struct stat *ret)
{
    bool own = strcmp(path, "-") == 0;
    AUTO_CLOSE int fd =
        own ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret)) {
        verb_complain("files", "%.300s: %m", path);
        return -1;
    }
    if (S_ISDIR(ret->st_mode)) {
        verb_complain("files", "%.300s is a folder; files go one by one", path);
        return -1;
    }
    return fd_take(&fd);
}

// The checksum of a file that can be read twice, and what is left of it from here.
static int64_t hash_file(int fd, char ret[SHA256_HEX])
{
    char piece[8192];
    struct sha256 sha;
    uint8_t digest[SHA256_BYTES];
    off_t from = lseek(fd, 0, SEEK_CUR), at = from;
    sha256_init(&sha);
    for (ssize_t n; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n) {
        sha256_add(&sha, piece, (size_t)n);
    }
    sha256_end(&sha, digest);
    sha256_hex(digest, ret);
    return at - from;
}

static int check_upload(struct client *c, yyjson_val *data, const char *checksum)
{
    const char *there = yyjson_get_str(yyjson_obj_get(data, "checksum"));
    if (c->command.options.json) {
        print_json(stdout, data);
    }
    return *checksum && there && strcmp(there, checksum) != 0
               ? verb_complain("files", "what arrived has another checksum than what was sent: %s",
                               "the file changed meanwhile; put it again")
               : 0;
}

static void on_uploaded(void *ctx, int64_t bytes) { progress_move(ctx, bytes); }

static int upload(struct client *c, const char *path, int fd, bool regular)
{
    char checksum[SHA256_HEX] = "", match[100];
    const struct remote_options *o = &c->command.options;
    struct progress progress;
    struct call call = CALL_INIT("PUT", path);
    sigset_t held;
    client_unhold(c, &held);
    call.file_bytes = regular ? hash_file(fd, checksum) : -1;
    sigprocmask(SIG_SETMASK, &held, NULL);
    call.file = fd;
    call.type = "application/octet-stream";
    call.moved = on_uploaded;
    call.ctx = &progress;
    call.endless = true;
    if (o->new) {
        call.headers[0] = "If-None-Match: *";
    } else if (o->if_match) {
        snprintf(match, sizeof match, "If-Match: \"%.64s\"", o->if_match);
        call.headers[0] = match;
    }
    progress_begin(&progress, base_name(c->command.operands[0]), call.file_bytes);
    yyjson_doc *doc;
    int status = 0;
    yyjson_val *data = client_ask(c, &call, &doc, &status);
    progress_end(&progress);
    if (data) {
        status = check_upload(c, data, checksum);
        yyjson_doc_free(doc);
    }
    return status;
}

static bool is_checksum(const char *text)
{
    return strlen(text) == SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == SHA256_HEX - 1;
}

static bool check_match(const struct client *c)
{
    const struct remote_options *o = &c->command.options;
    if (o->if_match && !is_checksum(o->if_match)) {
        verb_complain("files", "--if-match: a SHA-256, 64 digits of 0-9a-f");
        return false;
    }
    if (o->if_match && o->new) {
        verb_complain("files", "--new and --if-match exclude each other");
        return false;
    }
    return true;
}

int files_put(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    struct place at;
    struct stat st;
    if (!check_match(c) || !take_place(c->command.operands[1], true, &at) ||
        !put_path(&path, &at)) {
        return CLI_REFUSED;
    }
    AUTO_CLOSE int fd = open_source(c->command.operands[0], &st);
    if (fd < 0) {
        return CLI_REFUSED;
    }
    return upload(c, buf_text(&path), fd, S_ISREG(st.st_mode));
}

// ---- delete, move

int files_delete(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    struct place at;
    char match[100];
    if (!check_match(c) || !take_place(c->command.operands[0], true, &at) ||
        !put_path(&path, &at)) {
        return CLI_REFUSED;
    }
    struct call call = CALL_INIT("DELETE", buf_text(&path));
    if (c->command.options.if_match) {
        snprintf(match, sizeof match, "If-Match: \"%.64s\"", c->command.options.if_match);
        call.headers[0] = match;
    }
    return client_tell(c, &call, tell_nothing);
}

int files_move(struct client *c)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16), body = BUF_INIT(1 << 20);
    struct place at;
    if (!take_place(c->command.operands[0], true, &at)) {
        return CLI_REFUSED;
    }
    client_path(&path, "/sandbox/sessions/%s/files:move", at.session);
    json_begin(&body, NULL, '{');
    json_put_text(&body, "from", at.path);
    json_put_text(&body, "to", c->command.operands[1]);
    json_put_bool(&body, "overwrite", c->command.options.replace);
    json_end(&body, '}');
    struct call call = CALL_INIT("POST", buf_text(&path));
    call.body = buf_text(&body);
    call.body_len = body.len;
    return client_tell(c, &call, tell_nothing);
}
