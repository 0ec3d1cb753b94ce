#include "client/client.h"

#include "client/print.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int client_fail(const struct client *c, int error, const struct call_error *why)
{
    const char *verb = c->command.verb ? c->command.verb->name : "run";
    if (error == -EINTR) {
        verb_complain(verb, "cancelled");
        return CLIENT_CANCELLED;
    }
    // An address that was given outweighs the socket, through which keys are made without one.
    bool away = error == -EACCES && strcmp(verb, "key") == 0 &&
                (c->command.options.url || getenv("ISLE_URL"));
    return verb_complain(verb, "%s%s", why->text[0] ? why->text : strerrordesc_np(-error),
                         away ? "; on the service's host isle takes the socket, without ISLE_URL "
                                "and --url"
                              : "");
}

int client_path(struct buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_puts(out, CLIENT_API);
    for (const char *p = format; *p; p++) {
        if (p[0] == '%' && p[1] == 's') {
            address_escape(out, va_arg(args, const char *), false);
            p++;
        } else {
            buf_putc(out, *p);
        }
    }
    va_end(args);
    return out->error;
}

void client_query(struct buf *path, const char *name, const char *value)
{
    if (value) {
        buf_printf(path, "%c%s=", memchr(buf_text(path), '?', path->len) ? '&' : '?', name);
        address_escape(path, value, false);
    }
}

yyjson_val *client_ask(struct client *c, struct call *call, yyjson_doc **ret_doc, int *ret_status)
{
    struct call_error why;
    int e = call_make(&c->caller, call, &why);
    yyjson_val *data = e ? NULL : call_data(call, ret_doc, &why);
    if (!data) {
        *ret_status = client_fail(c, e ? e : -EPROTO, &why);
    }
    call_done(call);
    return data;
}

int client_tell(struct client *c, struct call *call, int (*print)(yyjson_val *data))
{
    yyjson_doc *doc;
    int status = 0;
    yyjson_val *data = client_ask(c, call, &doc, &status);
    if (!data) {
        return status;
    }
    int e = c->command.options.json ? print_json(stdout, data) : print(data);
    yyjson_doc_free(doc);
    return client_printed(c, e);
}

int client_printed(const struct client *c, int e)
{
    return e ? verb_complain(c->command.verb->name, "%s",
                             e == -EPROTO ? "the answer is not what isle's service says"
                                          : strerrordesc_np(-e))
             : 0;
}

int client_list(struct client *c, const char *collection, int (*print)(yyjson_val *data))
{
    const struct remote_options *o = &c->command.options;
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    buf_printf(&path, CLIENT_API "%s", collection);
    client_query(&path, "status", o->status);
    client_query(&path, "team", o->team);
    client_query(&path, "limit", o->limit);
    client_query(&path, "cursor", o->cursor);
    struct call call = CALL_INIT("GET", buf_text(&path));
    return client_tell(c, &call, print);
}

static int read_all(const struct client *c, const char *path, struct buf *out)
{
    bool own = strcmp(path, "-") == 0;
    AUTO_CLOSE int fd =
        own ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char piece[8192];
    for (ssize_t n = 1; n > 0;) {
        n = fd < 0 ? -errno : fd_read_full(fd, piece, sizeof piece);
        if (n < 0) {
            return verb_complain(c->command.verb->name, "%.300s: %s", path,
                                 strerrordesc_np((int)-n));
        }
        if (buf_add(out, piece, (size_t)n)) {
            return verb_complain(c->command.verb->name, "%.300s is above the maximum of %zu bytes",
                                 path, out->max);
        }
    }
    return 0;
}

int client_read(const struct client *c, const char *path, struct buf *out)
{
    sigset_t held;
    client_unhold(c, &held);
    int status = read_all(c, path, out);
    sigprocmask(SIG_SETMASK, &held, NULL);
    return status;
}

int client_no_json(const struct client *c, const char *path, const struct buf *text,
                   const struct json_error *why, const char *advice)
{
    const char *verb = c->command.verb->name;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    if (strspn(buf_text(text), " \t\r\n") == text->len) {
        return verb_complain(verb, "%.300s is empty: %s", name, advice);
    }
    return verb_complain(verb, "%.300s is not JSON (%s): %s", name, why->text, advice);
}

bool client_number(const struct client *c, const char *option, const char *text)
{
    size_t whole = strspn(text, "0123456789");
    size_t rest = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;
    if (whole > 0 && whole < 16 && rest != 1 && !text[whole + rest]) {
        return true;
    }
    verb_complain(c->command.verb->name, "%s: %.60s is not a number", option, text);
    return false;
}
