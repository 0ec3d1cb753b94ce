// functions.c: what a model may call, in the form that its API takes: the built-in tools and the
// team's code tools. Tools are read a few at a time, as a definition may be long; those that are
// long altogether become schemas on a thread.
#include "api/functions.h"

#include "api/agent.h"
#include "api/call.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "store/store.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_TOOLS = 4, // each may have megabytes; between two pages others have their turn
    HERE_BYTES = 128 << 10,
    LIST_BYTES = 64 << 20, // of all schemas
    RETRY_SECONDS = 5,
    BEGIN_ANEW_MAX = 20,
    OPENAI_NAME = 64, // characters of a function's name there ...
    OPENAI_DESCRIPTION = 1024,
    ANTHROPIC_KEY = 64, // ... and of a parameter's here
};

enum form { FORM_OPENAI, FORM_ANTHROPIC, FORM_MCP };

// ---- One function

static void put_head(struct buf *out, enum form form, const char *name, const char *title,
                     const char *description)
{
    size_t len = strlen(description), chars = 0, n = 0;
    while (n < len && (form != FORM_OPENAI || chars < OPENAI_DESCRIPTION)) {
        n++;
        chars += (description[n] & 0xc0) != 0x80; // the next byte begins another one
    }
    json_begin(out, NULL, '{');
    if (form == FORM_OPENAI) {
        json_put_text(out, "type", "function");
        json_begin(out, "function", '{');
    }
    json_put_text(out, "name", name);
    if (form == FORM_MCP && title) {
        json_put_text(out, "title", title);
    }
    json_put_bytes(out, "description", description, n);
}

static const char *const arguments_key[] = {
    [FORM_OPENAI] = "parameters", [FORM_ANTHROPIC] = "input_schema", [FORM_MCP] = "inputSchema"};

static void put_tail(struct buf *out, enum form form)
{
    json_end(out, '}');
    if (form == FORM_OPENAI) {
        json_end(out, '}');
    }
}

// ---- Built-in ones

static const char *const snippet_fields[] = {"code", "params", "timeout", NULL};
const struct function_snippet function_snippets[FUNCTION_SNIPPETS] = {
    {"run_python",
     "Runs Python in a fresh sandbox and gives back what it printed and returned. `return` at the "
     "end of the code gives the result; it must fit into JSON. Nothing stays for the next call."},
    {"run_javascript",
     "Runs JavaScript (Node.js) in a fresh sandbox and gives back what it printed and returned. "
     "`return` at the end of the code gives the result, `await` works; it must fit into JSON. "
     "Nothing stays for the next call."},
};

static void put_built_in(struct buf *out, enum form form)
{
    for (int i = 0; i < AGENT_TOOLS; i++) {
        put_head(out, form, agent_tool_names[i], NULL, agent_requests[i]->help);
        schema_write_whole(out, arguments_key[form], agent_requests[i], NULL);
        put_tail(out, form);
    }
    for (size_t i = 0; i < FUNCTION_SNIPPETS; i++) {
        put_head(out, form, function_snippets[i].name, NULL, function_snippets[i].description);
        schema_write_whole(out, arguments_key[form], &schema_execute_code, snippet_fields);
        put_tail(out, form);
    }
}

// ---- Code tools

struct found {
    struct buf body;
    char name[TOOL_NAME_MAX + 1];
    bool own, callable, enabled;
};

struct functions {
    struct api_call *call; // NULL: it is over, and the thread is left alone with this
    struct work work;
    enum form form;
    bool shared;
    struct found page[PAGE_TOOLS];
    size_t n;
    char last_id[STORE_ID_MAX + 1], last_name[TOOL_NAME_MAX + 1]; // that was read
    struct buf tools, left_out;
    // The last tool: one that is shared is not written before it is known to be the only one.
    char name[TOOL_NAME_MAX + 1];
    unsigned same; // of that name
    bool own;      // the first of them
    struct buf held;
    int error;
    bool reading, again; // a page is being read; another one is to be
    unsigned begun_anew;
};

static void functions_free(struct functions *x)
{
    for (size_t i = 0; i < PAGE_TOOLS; i++) {
        buf_free(&x->page[i].body);
    }
    buf_free(&x->tools);
    buf_free(&x->left_out);
    buf_free(&x->held);
    free(x);
}

static void leave_out(struct functions *x, const char *name, const char *why)
{
    json_begin(&x->left_out, NULL, '{');
    json_put_text(&x->left_out, "name", name);
    json_put_text(&x->left_out, "why", why);
    json_end(&x->left_out, '}');
}

static bool is_anthropic_key(const char *name)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t len = strlen(name);
    return len <= ANTHROPIC_KEY && strspn(name, set) == len;
}

// What a format does not take would be refused with all that is sent along with it.
static const char *unfit(enum form form, const struct tool *t)
{
    const char *built_in = tool_builtin_of(t->name);
    if (built_in && strcmp(built_in, t->name) == 0) {
        return "a built-in tool has this name by now: give it another one";
    }
    if (form == FORM_OPENAI && strlen(t->name) > OPENAI_NAME) {
        return "its name has more than 64 characters";
    }
    for (size_t i = 0; form == FORM_ANTHROPIC && i < t->n_parameters; i++) {
        if (!is_anthropic_key(t->parameters[i].name)) {
            return "a parameter's name has other characters than A-Z a-z 0-9 _ . -";
        }
    }
    return NULL;
}

static void put_tool(struct buf *out, enum form form, const struct tool *t)
{
    const char *text = t->description    ? t->description
                       : t->display_name ? t->display_name
                                         : t->name;
    put_head(out, form, t->name, t->display_name, text);
    buf_printf(out, ",\"%s\":", arguments_key[form]);
    tool_write_schema(out, t);
    put_tail(out, form);
}

static void flush(struct functions *x)
{
    if (x->held.len) {
        buf_puts(&x->tools, x->tools.len ? "," : "");
        buf_add(&x->tools, x->held.data, x->held.len);
    }
    buf_clear(&x->held);
}

static int add(struct functions *x, const struct found *f)
{
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct json_error bad;
    struct tool t;
    yyjson_doc *doc = json_parse_envelope(buf_text(&f->body), f->body.len, &bad);
    int e = doc ? tool_parse(NULL, yyjson_doc_get_root(doc), &t, &faults) : -EIO;
    yyjson_doc_free(doc);
    if (e && e != -EINVAL) {
        return e;
    }
    const char *why = e ? "it is not sound any more: save it again" : unfit(x->form, &t);
    if (why) {
        leave_out(x, f->name, why);
    } else {
        put_tool(&x->held, x->form, &t);
    }
    tool_done(&t);
    return x->held.error;
}

// By name, a team's own before those that are shared: of one name the own one is what is called.
static int take(struct functions *x, const struct found *f)
{
    if (strcmp(x->name, f->name) != 0) {
        flush(x);
        snprintf(x->name, sizeof x->name, "%s", f->name);
        x->same = 0;
    }
    if (++x->same == 1) {
        x->own = f->own;
        return f->enabled && f->callable ? add(x, f) : 0;
    }
    if (!x->own) {
        if (x->held.len) {
            leave_out(x, f->name, "several of this name are shared: they are called by tool_id");
        }
        buf_clear(&x->held);
    }
    return 0;
}

// On whichever thread: touches nothing but its own.
static void take_page(struct work *w)
{
    struct functions *x = w->ctx;
    for (size_t i = 0; i < x->n && !x->error; i++) {
        x->error = take(x, &x->page[i]);
    }
}

// ---- Page after page

// On whichever thread.
static void write_answer(struct api_call *c, struct buf *data)
{
    const struct functions *x = c->ctx;
    json_begin(data, NULL, '{');
    json_put_text(data, "format", function_formats[x->form]);
    json_begin(data, "tools", '[');
    put_built_in(data, x->form);
    if (x->tools.len) {
        buf_putc(data, ',');
        buf_add(data, x->tools.data, x->tools.len);
    }
    json_end(data, ']');
    json_begin(data, "left_out", '[');
    buf_add(data, buf_text(&x->left_out), x->left_out.len);
    json_end(data, ']');
    json_end(data, '}');
    data->error = data->error ? data->error : x->tools.error ? x->tools.error : x->left_out.error;
}

static void reply(struct functions *x)
{
    flush(x);
    api_reply_written(x->call, 200, x->tools.len + x->left_out.len, write_answer);
}

static void read_pages(struct functions *x);

static void read_on(struct functions *x)
{
    if (x->reading) {
        x->again = true;
    } else {
        read_pages(x);
    }
}

// The tool that the next page goes on behind is not there any more: from the first page on, lest
// whoever shares and unshares one of theirs keeps another team from its schemas.
static bool begin_anew(struct functions *x)
{
    if (x->begun_anew++ == BEGIN_ANEW_MAX) {
        return false;
    }
    buf_clear(&x->tools);
    buf_clear(&x->left_out);
    buf_clear(&x->held);
    x->name[0] = x->last_id[0] = x->last_name[0] = '\0';
    x->same = 0;
    return true;
}

static void page_taken(struct work *w)
{
    struct functions *x = w->ctx;
    if (!x->call) {
        functions_free(x);
    } else if (x->error == -EMSGSIZE || x->tools.error == -EMSGSIZE) {
        api_fail(x->call, API_TOO_LARGE, "the schemas are above %d bytes together", LIST_BYTES);
    } else if (x->error) {
        api_fail_system(x->call, "the tools cannot be read", x->error);
    } else if (!api_call_grow(x->call, x->tools.len + x->left_out.len + x->held.len)) {
        api_fail_busy(x->call);
    } else if (x->n < PAGE_TOOLS) {
        reply(x);
    } else {
        read_on(x);
    }
}

static void on_row(void *ctx, const struct store_record *r)
{
    struct functions *x = ctx;
    struct found *f = &x->page[x->n++];
    const struct store_tool *t = &r->tool;
    f->body.max = STORE_TOOL_MAX;
    buf_clear(&f->body);
    f->own = t->permission == STORE_OWNS;
    f->callable = f->own || t->permission == STORE_MAY_EXECUTE;
    f->enabled = t->enabled;
    snprintf(f->name, sizeof f->name, "%.*s", (int)t->name.len, t->name.data);
    snprintf(x->last_id, sizeof x->last_id, "%.*s", (int)t->id.len, t->id.data);
    snprintf(x->last_name, sizeof x->last_name, "%s", f->name);
    if (f->enabled && f->callable && buf_add(&f->body, t->body.data, t->body.len)) {
        x->error = f->body.error;
    }
}

static void on_end(void *ctx, int error)
{
    struct functions *x = ctx;
    struct api_call *c = x->call;
    size_t bytes = 0;
    for (size_t i = 0; i < x->n; i++) {
        bytes += x->page[i].body.len;
    }
    x->work =
        (struct work){.run = take_page, .done = page_taken, .ctx = x, .owner = work_owner(c->team)};
    if (c->over) { // its caller did not wait for it
    } else if (error == STORE_MISSING && begin_anew(x)) {
        read_on(x);
    } else if (error) {
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "the store of the tools: %s",
                       error < 0 ? strerrordesc_np(-error) : "they have changed meanwhile");
    } else if ((bytes <= HERE_BYTES && x->n < PAGE_TOOLS) || work_queue(c->with->pool, &x->work)) {
        take_page(&x->work);
        page_taken(&x->work);
    }
    api_call_release(c);
}

// The store may answer before it returns: then the next page is read from here, not from within its
// answer.
static void read_pages(struct functions *x)
{
    struct api_call *c = x->call;
    api_call_hold(c);
    x->reading = true;
    do {
        // A page's rows overwrite what the next one goes on behind.
        char id[sizeof x->last_id], name[sizeof x->last_name];
        memcpy(id, x->last_id, sizeof id);
        memcpy(name, x->last_name, sizeof name);
        struct store_query q = {.kind = x->shared ? STORE_LIST_TOOLS : STORE_LIST_OWN_TOOLS,
                                .team = store_text_of(c->team),
                                .limit = PAGE_TOOLS};
        if (id[0]) {
            q.cursor = store_text_of(id);
            q.name = store_text_of(name);
        }
        x->again = false;
        x->n = 0;
        api_call_hold(c);
        store_read(c->with->store, &q, &(struct store_reader){on_row, on_end, x});
    } while (x->again);
    x->reading = false;
    api_call_release(c);
}

static void written(struct api_call *c)
{
    struct functions *x = c->ctx;
    buf_free(&x->tools);
    buf_free(&x->left_out);
}

static void end(struct api_call *c)
{
    struct functions *x = c->ctx;
    x->call = NULL;
    if (!x->work.queued) {
        functions_free(x);
    }
}

void functions_list(struct api_call *c)
{
    const char *format = api_query(c, "format");
    struct functions *x = calloc(1, sizeof *x);
    if (!x) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    x->call = c;
    x->shared = api_query_flag(c, "shared");
    x->tools = BUF_INIT(LIST_BYTES);
    x->left_out = BUF_INIT(LIST_BYTES);
    x->held = BUF_INIT(LIST_BYTES);
    while (format && strcmp(function_formats[x->form], format) != 0) {
        x->form++;
    }
    c->ctx = x;
    c->written = written;
    c->end = end;
    read_pages(x);
}
