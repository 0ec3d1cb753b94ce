#include "api/route.h"

#include "api/schema.h"

#include <stdio.h>
#include <string.h>

static const struct {
    enum http_method method;
    const char *name;
} method_names[] = {
    {HTTP_M_GET, "GET"},         {HTTP_M_HEAD, "HEAD"},   {HTTP_M_POST, "POST"},
    {HTTP_M_PUT, "PUT"},         {HTTP_M_PATCH, "PATCH"}, {HTTP_M_DELETE, "DELETE"},
    {HTTP_M_OPTIONS, "OPTIONS"},
};

// One {...} of a row and what stands for it.
struct piece {
    const char *text;
    size_t len;
    const char *fault; // what it is not; NULL: it is well
};

static bool is_version(const char *text, size_t len)
{
    return len > 0 && len <= 9 && strspn(text, "0123456789") >= len && *text != '0';
}

// What p is not though it has to be; NULL: it is.
static const char *fault_of(const char *kind, size_t kind_len, const struct piece *p)
{
    static const struct {
        const char *kind;
        enum schema_form form;
    } forms[] = {{"id", SCHEMA_FORM_ID}, {"key", SCHEMA_FORM_KEY_ID}, {"team", SCHEMA_FORM_TEAM}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (kind_len == strlen(forms[i].kind) && memcmp(kind, forms[i].kind, kind_len) == 0) {
            return schema_has_form(forms[i].form, p->text, p->len)
                       ? NULL
                       : schema_form_help(forms[i].form);
        }
    }
    if (kind_len == 7 && memcmp(kind, "version", 7) == 0) {
        return is_version(p->text, p->len) ? NULL : "a version: its number, from 1 on";
    }
    return p->len > 0 && p->len <= 1024 ? NULL : "a name: 1 to 1024 bytes";
}

enum fit { FIT_NOT, FIT_BAD_ID, FIT_YES };

// Walks row and path together: literal text must be equal, a {...} takes one segment or the rest.
static enum fit fit(const char *row, const char *path, struct piece *pieces, size_t *ret_n)
{
    size_t n = 0;
    bool sound = true;
    while (*row) {
        if (*row != '{') {
            if (*row++ != *path++) {
                return FIT_NOT;
            }
            continue;
        }
        const char *close = strchr(row, '}');
        if (!close) { // no row of the table is so; the analyzer cannot know
            return FIT_NOT;
        }
        size_t kind_len = (size_t)(close - row - 1);
        bool rest = kind_len > 3 && memcmp(close - 3, "...", 3) == 0;
        struct piece *p = &pieces[n++];
        // A verb behind an id ("{id}:move") ends it too.
        *p = (struct piece){path, rest ? strlen(path) : strcspn(path, close[1] == ':' ? "/:" : "/"),
                            NULL};
        p->fault = rest ? NULL : fault_of(row + 1, kind_len, p);
        sound = sound && !p->fault;
        path += p->len;
        row = close + 1;
    }
    *ret_n = n;
    return *path ? FIT_NOT : sound ? FIT_YES : FIT_BAD_ID;
}

static bool takes(const struct api_route *r, enum http_method method)
{
    return r->method == method || (r->method == HTTP_M_GET && method == HTTP_M_HEAD);
}

static const struct piece *first_bad(const struct piece *pieces)
{
    while (!pieces->fault) {
        pieces++;
    }
    return pieces;
}

enum api_found api_route_find(const struct api_subject *const *subjects, enum http_method method,
                              char *path, struct api_match *ret)
{
    struct api_match m = {0};
    unsigned bad_id = 0; // methods of paths that would do but for an id
    struct piece bad = {0};
    for (; *subjects && !m.route; subjects++) {
        for (size_t i = 0; i < (*subjects)->n; i++) {
            const struct api_route *r = &(*subjects)->routes[i];
            struct piece pieces[API_MAX_SEGMENTS];
            size_t n = 0;
            enum fit f = fit(r->path, path, pieces, &n);
            if (f == FIT_NOT) {
                continue;
            }
            unsigned *methods = f == FIT_YES ? &m.methods : &bad_id;
            *methods |= 1U << r->method;
            bad = f == FIT_BAD_ID && !bad.fault ? *first_bad(pieces) : bad;
            if (f != FIT_YES || !takes(r, method)) {
                continue;
            }
            m.route = r;
            for (size_t k = 0; k < n; k++) {
                m.segment[k] = path + (pieces[k].text - path);
                m.segment[k][pieces[k].len] = '\0';
            }
            break;
        }
    }
    // A fixed word is no id that is none: /tools/export, beside /tools/{id}.
    enum api_found found = m.route     ? API_FOUND
                           : m.methods ? API_NO_METHOD
                           : bad_id    ? API_BAD_ID
                                       : API_NO_PATH;
    m.methods = m.methods ? m.methods : bad_id;
    if (found == API_BAD_ID) {
        path[bad.text - path + (ptrdiff_t)bad.len] = '\0';
        m.bad = bad.text;
        m.form = bad.fault;
    }
    *ret = m;
    return found;
}

void api_route_allow(unsigned methods, char *text, size_t size)
{
    size_t n = 0;
    methods |= methods & (1U << HTTP_M_GET) ? 1U << HTTP_M_HEAD : 0;
    methods |= 1U << HTTP_M_OPTIONS;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof method_names / sizeof *method_names; i++) {
        if (methods & (1U << method_names[i].method) && n < size) {
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", method_names[i].name);
        }
    }
}
