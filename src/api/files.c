// files.c: what is in a session's workspace: listed, moved, removed; the routes of all calls on it.
#include "api/files.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json_out.h"
#include "workspace/listing.h"
#include "workspace/names.h"

#include <string.h>
#include <sys/stat.h>

// ---- list

enum { LIST_BYTES = 16 << 20, ENTRY_BYTES = 8192 };

struct list_call {
    struct file_call file;
    int folder; // -1: none
    bool recursive;
    char *cursor; // a copy: the request, and its query, may end while the thread reads it
    int64_t limit;
    // the thread's
    struct listing listing;
    struct buf data;
    int error;
};

static void list_drop(struct file_call *f)
{
    struct list_call *l = (struct list_call *)f;
    listing_end(&l->listing);
    free(l->cursor);
    buf_free(&l->data);
    fd_close(l->folder);
}

void file_put_path(struct buf *out, const char *folder, const char *below)
{
    AUTO_BUF struct buf path = BUF_INIT(ENTRY_BYTES), text = BUF_INIT(4 * ENTRY_BYTES);
    bool escaped = false;
    buf_puts(&path, "/workspace");
    if (strcmp(folder, ".") != 0) {
        buf_printf(&path, "/%s", folder);
    }
    if (below) {
        buf_printf(&path, "/%s", below);
    }
    names_escape(&text, buf_text(&path), path.len, "", &escaped);
    json_put_bytes(out, "path", buf_text(&text), text.len);
    json_put_bool(out, "escaped", escaped);
}

static const char *type_of(mode_t mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "other";
}

static void put_entry(struct list_call *l, const struct listing_entry *e)
{
    struct buf *out = &l->data;
    json_begin(out, NULL, '{');
    file_put_path(out, l->file.path, e->path);
    json_put_text(out, "type", type_of(e->st.st_mode));
    json_put_int(out, "size", S_ISREG(e->st.st_mode) ? (int64_t)e->st.st_size : 0);
    json_put_time(out, "modified_at",
                  (int64_t)e->st.st_mtim.tv_sec * 1000 + e->st.st_mtim.tv_nsec / 1000000);
    json_end(out, '}');
}

// Up to the limit, and where it would go on if there is more.
static int list_some(struct list_call *l)
{
    struct listing_entry e;
    AUTO_BUF struct buf cursor = BUF_INIT(LISTING_MAX_CURSOR + 1);
    json_begin(&l->data, NULL, '{');
    json_begin(&l->data, "items", '[');
    int more = 1;
    for (int64_t n = 0; more == 1; n++) {
        buf_clear(&cursor);
        int err = listing_cursor(&l->listing, &cursor);
        if (err) {
            return err;
        }
        more = listing_next(&l->listing, &e);
        if (more == 1 && n == l->limit) {
            break;
        }
        if (more == 1) {
            put_entry(l, &e);
        }
    }
    if (more < 0) {
        return more;
    }
    json_end(&l->data, ']');
    json_put_bool(&l->data, "truncated", more == 1 || l->listing.cut);
    json_put_text(&l->data, "next_cursor", more == 1 ? buf_text(&cursor) : NULL);
    json_end(&l->data, '}');
    return l->data.error;
}

static void list_run(struct work *w)
{
    struct list_call *l = w->ctx;
    l->error = listing_begin(&l->listing, l->folder, l->recursive, l->cursor);
    if (!l->error) {
        l->error = list_some(l);
        listing_end(&l->listing);
    }
}

static void listed(struct file_call *f)
{
    struct list_call *l = (struct list_call *)f;
    if (l->error == -EINVAL) {
        api_fail(f->call, API_VALIDATION, "cursor: is no `next_cursor` of a list");
    } else if (l->error) {
        file_call_fail(f, l->error);
    } else {
        api_reply(f->call, 200, &l->data);
    }
}

static void list_files(struct api_call *c)
{
    struct list_call *l = (struct list_call *)file_call_new(c, sizeof *l, true, list_drop);
    if (!l) {
        return;
    }
    l->folder = -1;
    l->limit = api_query_number(c, "limit", STORE_LIST_MAX);
    l->recursive = api_query_flag(c, "recursive");
    const char *cursor = api_query(c, "cursor");
    l->cursor = cursor ? strdup(cursor) : NULL;
    l->data = BUF_INIT(LIST_BYTES);
    int e = cursor && !l->cursor ? -ENOMEM : 0;
    e = e ? e : files_open_folder(&l->file.lease.files, l->file.path, &l->folder);
    if (e) {
        file_call_fail(&l->file, e);
    } else {
        file_call_work(&l->file, list_run, listed);
    }
}

// ---- delete

struct delete_call {
    struct file_call file;
    struct files_file old; // fd -1: no condition
    char expected[SHA256_HEX];
    struct file_digest digest;
    int trash;
    // the thread's
    char trashed[FILES_RANDOM_NAME];
    int error;
};

static void delete_drop(struct file_call *f)
{
    struct delete_call *d = (struct delete_call *)f;
    work_close(f->with->pool, d->old.fd, f->owner);
    if (*d->trashed) {
        sessions_trashed(f->with->sessions, d->trashed, f->owner);
    }
}

static void reply_path(struct file_call *f, const char *path)
{
    struct buf data = BUF_INIT(ENTRY_BYTES * 4);
    json_begin(&data, NULL, '{');
    file_put_path(&data, path, NULL);
    json_end(&data, '}');
    api_reply(f->call, 200, &data);
}

// On a thread: the end of a large file takes its time.
static void remove_run(struct work *w)
{
    struct delete_call *d = w->ctx;
    const struct files_remove_options o = {
        .trash = d->trash, .trashed = d->trashed, .expected = d->old.fd >= 0 ? &d->old : NULL};
    d->error = files_remove(&d->file.lease.files, d->file.path, &o);
    d->file.changed = d->error == 0;
}

static void removed(struct file_call *f)
{
    const struct delete_call *d = (struct delete_call *)f;
    if (d->error) {
        file_call_fail(f, d->error);
    } else {
        reply_path(f, f->path);
    }
}

static void hash_run(struct work *w)
{
    struct delete_call *d = w->ctx;
    file_digest_step(&d->digest);
}

static void hashed(struct file_call *f)
{
    struct delete_call *d = (struct delete_call *)f;
    int over = d->digest.over;
    if (over == 0) {
        file_call_work(f, hash_run, hashed);
    } else if (over < 0) {
        file_call_fail(f, over == -ESTALE ? (int)FILES_CHANGED : over);
    } else if (strcmp(d->expected, d->digest.hex) != 0) {
        file_call_fail(f, FILES_MISMATCH);
    } else {
        file_call_work(f, remove_run, removed);
    }
}

static void delete_file(struct api_call *c)
{
    struct delete_call *d = (struct delete_call *)file_call_new(c, sizeof *d, false, delete_drop);
    if (!d) {
        return;
    }
    d->old.fd = -1;
    d->trash = sessions_trash(c->with->sessions);
    int given = file_if_match(c, d->expected);
    if (given < 0) {
        return;
    }
    if (given == 0) {
        file_call_work(&d->file, remove_run, removed);
        return;
    }
    int e = files_open(&d->file.lease.files, d->file.path, UINT64_MAX, &d->old);
    if (e) {
        d->old.fd = -1;
        file_call_fail(&d->file, e);
    } else {
        file_digest_begin(&d->digest, &d->old);
        file_call_work(&d->file, hash_run, hashed);
    }
}

// ---- move

struct move_call {
    struct file_call file; // its path: from
    char *to;
    struct files_move_options options;
    bool about_to; // the error
    int error;     // the thread's
};

static void move_drop(struct file_call *f) { free(((struct move_call *)f)->to); }

static bool flag_of(const struct api_call *c, const char *field)
{
    return yyjson_get_bool(yyjson_obj_get(yyjson_doc_get_root(c->json), field));
}

static char *path_of(struct api_call *c, const char *field)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(c->json), field);
    return file_call_path(c, field, yyjson_get_str(v), yyjson_get_len(v), flag_of(c, "escaped"));
}

// On a thread, as what is replaced may be large.
static void move_run(struct work *w)
{
    struct move_call *m = w->ctx;
    m->error = files_move(&m->file.lease.files, m->file.path, m->to, &m->options);
}

static void moved(struct file_call *f)
{
    struct move_call *m = (struct move_call *)f;
    if (m->error) {
        if (m->about_to) { // it is named
            char *from = f->path;
            f->path = m->to;
            m->to = from;
        }
        file_call_fail(f, m->error);
    } else {
        reply_path(f, m->to);
    }
}

static void move_file(struct api_call *c)
{
    struct move_call *m = (struct move_call *)file_call_new(c, sizeof *m, false, move_drop);
    if (!m) {
        return;
    }
    free(m->file.path);
    m->file.path = path_of(c, "from");
    m->to = m->file.path ? path_of(c, "to") : NULL;
    if (!m->to) {
        return;
    }
    m->options = (struct files_move_options){
        .make_folders = sessions_room(c->with->sessions, &m->file.lease) > 0,
        .replace = flag_of(c, "overwrite"),
        .about_to = &m->about_to};
    m->file.changed = true; // a call that is refused may have made folders, too
    file_call_work(&m->file, move_run, moved);
}

#define FILES "/api/v1/sandbox/sessions/{id}/files"
static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = FILES,
     .who = API_TEAM,
     .response = &schema_file_list,
     .handle = list_files,
     .query = "path recursive limit cursor escaped",
     .summary = "What is in a folder."},
    {.method = HTTP_M_POST,
     .path = FILES ":move",
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_file_move,
     .example = "{\"from\": \"a\", \"to\": \"b/c\", \"overwrite\": true}",
     .response = &schema_file_done,
     .handle = move_file,
     .summary = "Another name for a file or folder. Folders above it are made."},
    {.method = HTTP_M_GET,
     .path = FILES "/{path...}",
     .who = API_TEAM,
     .handle = file_get,
     .query = "escaped",
     .headers = "Range If-Match If-None-Match",
     .summary = "A file (ETag: its SHA-256; ranges), or a folder as a zip."},
    {.method = HTTP_M_PUT,
     .path = FILES "/{path...}",
     .who = API_TEAM,
     .body = API_STREAM,
     .response = &schema_file_done,
     .success = 201,
     .also = &schema_file_done,
     .handle = file_put,
     .query = "escaped",
     .headers = "If-Match If-None-Match",
     .summary = "Write a file, whole or not at all. If-Match: only over that content; "
                "If-None-Match: *: only where there is none."},
    {.method = HTTP_M_DELETE,
     .path = FILES "/{path...}",
     .who = API_TEAM,
     .response = &schema_file_done,
     .handle = delete_file,
     .query = "escaped",
     .summary = "Remove a file, or a folder with everything in it."},
};

const struct api_subject api_files = {
    "files", "The files of a session, below /workspace. Links are not followed.", routes,
    ARRAY_LEN(routes)};
