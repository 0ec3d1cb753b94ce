// docs.c: the reference as one page of HTML, of the same tables as openapi.json. Nothing of it
// comes from outside, and its policy lets nothing else in: one style, named by its hash, and no
// script.
#include "api/envelope.h"
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"

#include "codec/base64.h"
#include "codec/sha256.h"
#include "model/limits.h"

#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}"
    "code,pre{font:0.9em/1.4 ui-monospace,monospace}"
    "pre{background:#f4f4f4;padding:.8rem;overflow:auto}"
    "h2{margin-top:2.5rem;border-bottom:1px solid #ccc}h3{margin:2rem 0 .3rem}"
    "h3 code{font-size:1rem}.m{color:#0b5d3b;font-weight:700}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0}"
    "tr{border-bottom:1px solid #e4e4e4}"
    "td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0}"
    "h3,p,td{overflow-wrap:anywhere}td:first-child{overflow-wrap:normal}"
    "@media(max-width:40rem){tr{display:block;padding:.3rem 0}"
    "td,th{display:inline-block;padding:0 .6rem 0 0}td:last-child{display:block}}"
    "nav{display:flex;flex-wrap:wrap;gap:0 1rem}a{color:#0b4f8a}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}"
    "pre{background:#242424}tr,h2{border-color:#333}a{color:#8ab8e6}.m{color:#6fcf9f}}";

// Text as it is; `code` between backquotes.
static void put_text(struct buf *out, const char *text)
{
    bool code = false;
    for (; *text; text++) {
        switch (*text) {
        case '&':
            buf_puts(out, "&amp;");
            break;
        case '<':
            buf_puts(out, "&lt;");
            break;
        case '>':
            buf_puts(out, "&gt;");
            break;
        case '"':
            buf_puts(out, "&quot;");
            break;
        case '`':
            buf_puts(out, code ? "</code>" : "<code>");
            code = !code;
            break;
        default:
            buf_putc(out, *text);
        }
    }
}

// An id may hold no space.
static void put_id(struct buf *out, const char *name)
{
    for (; *name; name++) {
        buf_putc(out, *name == ' ' ? '-' : *name);
    }
}

static void put_link(struct buf *out, const char *name)
{
    buf_puts(out, "<a href=\"#");
    put_id(out, name);
    buf_printf(out, "\">%s</a>", name);
}

// A summary is a title in openapi.json and a sentence here.
static void put_sentence(struct buf *out, const char *text)
{
    const size_t n = strlen(text);
    put_text(out, text);
    buf_puts(out, n && strchr(".?", text[n - 1]) ? " " : ". ");
}

static void put_row(struct buf *out, const struct schema_field *f)
{
    struct buf words = BUF_INIT(4096);
    schema_field_describe(&words, f);
    buf_printf(out, "<tr><td><code>%s</code></td><td>", f->name);
    if (f->of) {
        const char *at = strstr(buf_text(&words), f->of->name);
        size_t n = at ? (size_t)(at - words.data) : words.len;
        char before[128];
        snprintf(before, sizeof before, "%.*s", (int)n, buf_text(&words));
        put_text(out, before);
        put_link(out, f->of->name);
        put_text(out, at ? at + strlen(f->of->name) : "");
    } else if (f->type == SCHEMA_LIMITS) {
        put_link(out, SCHEMA_LIMITS_NAME);
    } else {
        put_text(out, buf_text(&words));
    }
    buf_puts(out, f->required ? "</td><td>" : "</td><td>optional. ");
    put_text(out, f->help ? f->help : "");
    if (f->initial) {
        buf_puts(out, "; default <code>");
        put_text(out, f->initial);
        buf_puts(out, "</code>");
    }
    buf_puts(out, "</td></tr>\n");
    buf_free(&words);
}

static void put_schema(struct buf *out, const struct schema *s)
{
    buf_printf(out, "<h3 id=\"%s\">%s</h3><p>", s->name, s->name);
    put_text(out, s->help);
    buf_puts(out, "</p><table>\n");
    for (size_t i = 0; i < s->n_fields; i++) {
        put_row(out, &s->fields[i]);
    }
    buf_puts(out, "</table>\n");
}

static void put_limits(struct buf *out)
{
    buf_printf(out, "<h3 id=\"%s\">%s</h3><table>\n", SCHEMA_LIMITS_NAME, SCHEMA_LIMITS_NAME);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_spec *s = &limit_specs[i];
        char low[32], high[32], initial[32] = "none";
        limit_format((enum limit)i, s->min, low, sizeof low);
        limit_format((enum limit)i, s->max, high, sizeof high);
        if (!s->optional) {
            limit_format((enum limit)i, s->initial, initial, sizeof initial);
        }
        buf_printf(out, "<tr><td><code>%s</code></td><td>%s to %s %s; default %s</td><td>", s->name,
                   low, high, s->unit, initial);
        put_text(out, s->help);
        buf_puts(out, ". On hit: ");
        put_text(out, s->on_hit);
        buf_puts(out, "</td></tr>\n");
    }
    buf_puts(out, "</table>\n");
}

static void put_words(struct buf *out, const char *words,
                      const struct schema_field *(*find)(const char *name))
{
    char name[64];
    if (!words) {
        return;
    }
    buf_puts(out, "<table>\n");
    while (*words) {
        size_t n = strcspn(words, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, words);
        const struct schema_field *f = find(name);
        if (f) {
            put_row(out, f);
        }
        words += n + strspn(words + n, " ");
    }
    buf_puts(out, "</table>\n");
}

static void put_operation(struct buf *out, const struct api_route *r)
{
    static const char *const who[] = {
        [API_ANYONE] = "Needs no key.",
        [API_TEAM] = "Needs a key.",
        [API_ADMIN] = "Needs an admin's key, or the Unix socket.",
        [API_OPERATOR] = "Needs an admin's key, the Unix socket, or a caller by loopback.",
    };
    static const char *const methods[] = {[HTTP_M_GET] = "GET",
                                          [HTTP_M_POST] = "POST",
                                          [HTTP_M_PUT] = "PUT",
                                          [HTTP_M_PATCH] = "PATCH",
                                          [HTTP_M_DELETE] = "DELETE"};
    buf_printf(out, "<h3><code><span class=\"m\">%s</span> ", methods[r->method]);
    put_text(out, r->path);
    buf_puts(out, "</code></h3><p>");
    put_sentence(out, r->summary);
    buf_printf(out, "%s</p>\n<p>", who[r->who]);
    if (r->request) {
        buf_puts(out, "Takes ");
        put_link(out, r->request->name);
        if (r->example) {
            buf_puts(out, ", such as <code>");
            put_text(out, r->example);
            buf_puts(out, "</code>");
        }
        buf_puts(out, ". ");
    } else if (r->body == API_STREAM) {
        buf_puts(out, "Takes the bytes of the file. ");
    }
    buf_printf(out, "Answers %d", r->success ? r->success : 200);
    if (r->response) {
        buf_puts(out, " with ");
        put_link(out, r->response->name);
    }
    if (r->also) {
        buf_puts(out, ", or 200 with ");
        put_link(out, r->also->name);
    }
    buf_puts(out, ".</p>\n");
    put_words(out, r->query, schema_query);
    put_words(out, r->headers, schema_header);
}

static void put_subjects(struct buf *out)
{
    buf_puts(out, "<nav>");
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        put_link(out, (*s)->name);
    }
    buf_puts(out, "<a href=\"#objects\">objects</a><a href=\"#errors\">errors</a></nav>\n");
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        buf_puts(out, "<h2 id=\"");
        put_id(out, (*s)->name);
        buf_printf(out, "\">%s</h2><p>", (*s)->name);
        put_text(out, (*s)->help);
        buf_puts(out, "</p>\n");
        for (size_t i = 0; i < (*s)->n; i++) {
            put_operation(out, &(*s)->routes[i]);
        }
    }
}

static void put_errors(struct buf *out)
{
    buf_puts(out, "<h2 id=\"errors\">errors</h2><table>\n"
                  "<tr><th>code</th><th>HTTP</th><th>when</th></tr>\n");
    for (const struct api_code_spec *s = api_codes; s->name; s++) {
        buf_printf(out, "<tr><td>%d</td><td>%d</td><td>", api_code_told(s->code), s->status);
        put_text(out, s->when);
        buf_puts(out, "</td></tr>\n");
    }
    buf_puts(out, "</table>\n");
}

static void write_policy(char *policy, size_t size)
{
    struct sha256 h;
    uint8_t digest[SHA256_BYTES];
    char text[BASE64_CHARS(SHA256_BYTES) + 1];
    sha256_init(&h);
    sha256_add(&h, style, sizeof style - 1);
    sha256_end(&h, digest);
    base64_encode(digest, sizeof digest, text);
    snprintf(policy, size,
             "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             text);
}

int api_docs_write(struct buf *out, char policy[API_POLICY_BYTES])
{
    write_policy(policy, API_POLICY_BYTES);
    buf_printf(out,
               "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>isle "
               "API</title>"
               "<style>%s</style></head><body><h1>isle API</h1>\n",
               style);
    buf_puts(out, "<p>JSON in and out. Every answer is <code>{\"code\": 0, \"data\": ..., "
                  "\"msg\": \"success\"}</code>; one that was refused has an HTTP status of 4xx or "
                  "5xx, another <code>code</code>, and a <code>msg</code> that names the field and "
                  "the limit. A job that ran and failed is HTTP 200 with <code>success</code> "
                  "false. Keys come as <code>Authorization: Bearer KEY</code>. The same for "
                  "programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n<pre>curl -s "
                  "http://127.0.0.1:4753/api/v1/tools/execute-code \\\n  -H 'Content-Type: "
                  "application/json' \\\n  -d '{\"language\": \"python\", \"code\": \"return "
                  "6*7\"}'</pre>\n");
    put_subjects(out);
    buf_puts(out, "<h2 id=\"objects\">objects</h2>\n");
    for (const struct schema *const *s = schemas; *s; s++) {
        put_schema(out, *s);
    }
    put_limits(out);
    put_errors(out);
    buf_puts(out, "</body></html>\n");
    return out->error;
}
