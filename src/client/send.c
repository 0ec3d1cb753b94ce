#include "client/send.h"

#include "base/fd.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/json_out.h"

enum { PIECE = 3 * 16384 };

// Of what comes in pieces only the last one may have a length that three does not divide.
static int put_base64(struct buf *out, const char *data, size_t len)
{
    size_t room = BASE64_CHARS(len);
    int e = buf_reserve(out, room);
    if (!e) {
        base64_encode(data, len, out->data + out->len);
        out->len += room;
    }
    return e;
}

// `"KEY":"BASE64"`, read from the descriptor. `what` is its option, for messages.
static int put_content(struct buf *out, const char *key, int fd, const char *what,
                       struct call_error *error)
{
    AUTO_FREE char *piece = malloc(PIECE);
    if (!piece) {
        return call_refuse(error, -ENOMEM, "not enough memory");
    }
    json_put_text(out, key, "");
    out->len -= out->error ? 0 : 1; // into the empty text
    for (ssize_t n = PIECE; n == PIECE;) {
        n = fd_read_full(fd, piece, PIECE);
        if (n < 0) {
            return call_refuse(error, (int)n, "%s: %s", what, strerrordesc_np((int)-n));
        }
        if (put_base64(out, piece, (size_t)n)) {
            return call_refuse(error, -EMSGSIZE,
                               "%s: the job is too large for a service (%d bytes of JSON at most, "
                               "files and standard input as base64 in it); larger files go into a "
                               "session: isle files put",
                               what, SEND_MAX_BYTES);
        }
    }
    return buf_putc(out, '"');
}

static int descriptor_of(const struct run_job *job, yyjson_val *v, int *ret)
{
    int64_t i;
    if (json_int(v, &i) || i < 0 || (size_t)i >= job->n_fds) {
        return -EINVAL;
    }
    *ret = job->fds[i];
    return 0;
}

static int put_value(struct buf *out, const char *key, yyjson_val *v)
{
    AUTO_BUF struct buf text = BUF_INIT(SEND_MAX_BYTES);
    int e = json_write(&text, v);
    if (!e) {
        json_put_json(out, key, buf_text(&text));
    }
    return e ? e : out->error;
}

// One entry of input_files: its fd becomes its content.
static int put_file(struct buf *out, const struct run_job *job, yyjson_val *file,
                    struct call_error *error)
{
    size_t i, n;
    yyjson_val *key, *v;
    int e = 0, fd = -1;
    json_begin(out, NULL, '{');
    yyjson_obj_foreach(file, i, n, key, v)
    {
        bool is_fd = yyjson_equals_str(key, "fd");
        e = e                                     ? e
            : is_fd && descriptor_of(job, v, &fd) ? -EINVAL
            : is_fd ? put_content(out, "content_base64", fd, "--file", error)
                    : put_value(out, yyjson_get_str(key), v);
    }
    json_end(out, '}');
    return e;
}

static int put_files(struct buf *out, const struct run_job *job, yyjson_val *files,
                     struct call_error *error)
{
    size_t i, n;
    yyjson_val *file;
    int e = 0;
    json_begin(out, "input_files", '[');
    yyjson_arr_foreach(files, i, n, file) { e = e ? e : put_file(out, job, file, error); }
    json_end(out, ']');
    return e;
}

static int put_member(struct buf *out, const struct run_job *job, yyjson_val *key, yyjson_val *v,
                      struct call_error *error)
{
    int fd;
    if (yyjson_equals_str(key, "stdin_fd")) {
        return descriptor_of(job, v, &fd) ? -EINVAL
                                          : put_content(out, "stdin_base64", fd, "--stdin", error);
    }
    if (yyjson_equals_str(key, "input_files")) {
        return put_files(out, job, v, error);
    }
    return yyjson_is_null(v) ? 0 : put_value(out, yyjson_get_str(key), v);
}

int send_write(struct buf *out, const struct run_job *job, const char *session,
               struct call_error *ret_error)
{
    struct json_error why;
    size_t i, n;
    yyjson_val *key, *v;
    yyjson_doc *doc = json_parse_envelope(job->json.data, job->json.len, &why);
    int e = doc ? 0 : call_refuse(ret_error, -EINVAL, "%s", why.text);
    json_begin(out, NULL, '{');
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, n, key, v)
    {
        e = e ? e : put_member(out, job, key, v, ret_error);
    }
    if (session) {
        json_put_text(out, "session_id", session);
    }
    json_end(out, '}');
    yyjson_doc_free(doc);
    e = e ? e : out->error;
    return e && !ret_error->text[0] ? call_refuse(ret_error, e,
                                                  "the job is too large: %d bytes of "
                                                  "JSON at most",
                                                  SEND_MAX_BYTES)
                                    : e;
}
