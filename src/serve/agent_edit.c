#include "agent/edit.h"
#include "codec/json_out.h"
#include "serve/agent_inner.h"

#include "base/fd.h"

static void tell_edited(struct agent_op *op, const char *path, const struct edit_request *r,
                        const struct edit_result *res)
{
    struct buf *out = &op->answer;
    AUTO_BUF struct buf message = BUF_INIT(64 * 1024);
    int64_t added = 0, removed = 0;
    edit_tell(res, r, &message);
    agent_op_begin_answer(op, path, res->tag);
    json_put_bytes(out, "message", buf_text(&message), message.len);
    json_begin(out, "changes", '[');
    for (uint32_t i = 0; i < r->n; i++) {
        const struct edit_change *c = &res->changes[i];
        json_begin(out, NULL, '{');
        json_put_int(out, "edit", i + 1);
        json_put_int(out, "first_line", c->first);
        json_put_int(out, "lines", c->lines);
        json_put_int(out, "removed", c->removed);
        json_end(out, '}');
        added += c->lines;
        removed += c->removed;
    }
    json_end(out, ']');
    json_put_int(out, "lines_added", added);
    json_put_int(out, "lines_removed", removed);
    json_put_int(out, "total_lines", res->text.count);
    json_put_int(out, "bytes", (int64_t)res->data.len);
    json_end(out, '}');
}

// In the place of the file that was read, if that still is it. 0, or a refusal of files.h, or
// -errno.
static int replace(struct agent_op *op, const char *path, const struct agent_file *old,
                   const struct buf *data)
{
    struct files_write w = {0};
    const struct files_write_options o = {.condition = FILES_ANY,
                                          .mode = old->file.mode,
                                          .max_bytes = data->len,
                                          .quick = true,
                                          .parts = sessions_trash(op->sessions)};
    int e = files_write_begin(&w, &op->lease.files, path, &o);
    if (e) {
        return e;
    }
    e = files_write_add(&w, buf_text(data), data->len);
    e = e ? e : files_write_commit_over(&w, &old->file, old->data, old->len);
    op->more_bytes = e ? 0 : w.more_bytes;
    files_write_drop(&w);
    return e == FILES_MISSING ? (int)FILES_CHANGED : e;
}

static void edit_text(struct agent_op *op, const char *path, const struct agent_file *old,
                      const struct text *t, const struct edit_request *r)
{
    struct agent_memory *m = &op->session->memory;
    struct agent_refusal why;
    struct edit_result res;
    int e = edit_make(t, path, m, r, &res, &why);
    if (e == AGENT_REFUSED) {
        agent_op_refuse(op, path, "%s", why.text);
        return;
    }
    if (e) {
        op->error = e;
        return;
    }
    size_t more = res.data.len > old->len ? res.data.len - old->len : 0;
    e = more > op->room_bytes ? (int)FILES_FULL : replace(op, path, old, &res.data);
    if (e) {
        agent_op_refuse_file(op, path, e);
    } else {
        op->remembered = true;
        if (edit_commit(&res, path, m)) {
            res.shown_n = 0; // which is told
        }
        tell_edited(op, path, r, &res);
    }
    edit_result_done(&res);
}

void agent_edit_run(struct agent_op *op)
{
    AUTO_FREE struct edit_request *r = malloc(sizeof *r);
    AUTO_FREE char *path = NULL;
    struct agent_refusal why;
    struct agent_file old = {0};
    struct text t = {0};
    if (!r) {
        op->error = -ENOMEM;
        return;
    }
    path = agent_op_path(op);
    if (!path) {
        return;
    }
    if (edit_parse(op->arguments, r, &why)) {
        agent_op_refuse(op, path, "%s", why.text);
        return;
    }
    int e = agent_file_read(op, path, &old);
    if (!e) {
        e = text_init(&t, old.data, old.len, &why);
        if (e == AGENT_REFUSED) {
            agent_op_refuse(op, path, "%s", why.text);
        } else if (e) {
            op->error = e;
        } else {
            edit_text(op, path, &old, &t, r);
            text_done(&t);
        }
    }
    agent_file_done(&old);
}
