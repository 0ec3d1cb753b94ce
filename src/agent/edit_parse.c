// The request as JSON, and what each op is made of.
#include "agent/edit.h"
#include "base/fd.h"
#include "codec/json.h"
#include "codec/utf8.h"

#include <stdlib.h>
#include <string.h>

const struct edit_kind edit_kinds[EDIT_OPS] = {
    [EDIT_REPLACE] = {"replace", EDIT_ANCHOR | EDIT_RANGE | EDIT_TEXT | EDIT_TAKES},
    [EDIT_REPLACE_BLOCK] = {"replace_block", EDIT_ANCHOR | EDIT_BLOCK | EDIT_TEXT | EDIT_TAKES},
    [EDIT_CUT] = {"cut", EDIT_ANCHOR | EDIT_RANGE | EDIT_TAKES | EDIT_STORES},
    [EDIT_CUT_BLOCK] = {"cut_block", EDIT_ANCHOR | EDIT_BLOCK | EDIT_TAKES | EDIT_STORES},
    [EDIT_INSERT_BEFORE] = {"insert_before", EDIT_ANCHOR | EDIT_TEXT | EDIT_AT_START},
    [EDIT_INSERT_AFTER] = {"insert_after", EDIT_ANCHOR | EDIT_TEXT},
    [EDIT_INSERT_BLOCK_AFTER] = {"insert_block_after", EDIT_ANCHOR | EDIT_BLOCK | EDIT_TEXT},
    [EDIT_INSERT_HEAD] = {"insert_head", EDIT_TEXT | EDIT_AT_START},
    [EDIT_INSERT_TAIL] = {"insert_tail", EDIT_TEXT},
    [EDIT_PASTE_BEFORE] = {"paste_before", EDIT_ANCHOR | EDIT_PASTES | EDIT_AT_START},
    [EDIT_PASTE_AFTER] = {"paste_after", EDIT_ANCHOR | EDIT_PASTES},
    [EDIT_PASTE_BLOCK_AFTER] = {"paste_block_after", EDIT_ANCHOR | EDIT_BLOCK | EDIT_PASTES},
    [EDIT_PASTE_HEAD] = {"paste_head", EDIT_PASTES | EDIT_AT_START},
    [EDIT_PASTE_TAIL] = {"paste_tail", EDIT_PASTES},
};

static bool is_tag(const char *text)
{
    return strspn(text, "0123456789abcdef") == 4 && text[4] == 0;
}

static const char *text_of(yyjson_val *v, size_t *ret_len)
{
    *ret_len = yyjson_get_len(v);
    return yyjson_is_str(v) && !memchr(yyjson_get_str(v), 0, *ret_len) ? yyjson_get_str(v) : NULL;
}

// 12, "12" or "12#ab3f".
static bool parse_anchor(yyjson_val *v, struct edit_anchor *ret)
{
    struct edit_anchor a = {0};
    int64_t number = 0;
    size_t len;
    const char *text = text_of(v, &len);
    if (text) {
        size_t digits = strspn(text, "0123456789");
        number = digits > 0 && digits < 9 ? strtol(text, NULL, 10) : 0;
        if (text[digits] == '#' && is_tag(text + digits + 1)) {
            memcpy(a.tag, text + digits + 1, TEXT_TAG_SIZE);
        } else if (text[digits]) {
            return false;
        }
    } else if (json_int(v, &number) != 0) {
        return false;
    }
    if (number < 1 || number > TEXT_MAX_LINES) {
        return false;
    }
    a.line = (uint32_t)number;
    *ret = a;
    return true;
}

static int refuse_anchor(struct agent_refusal *ret_why, uint32_t i, const char *op,
                         const char *field, yyjson_val *given)
{
    enum { SHOWN = 40 };
    size_t len = 0, shown = 0;
    const char *text = text_of(given, &len);
    if (text) { // no piece of a character
        shown = len <= SHOWN ? len : utf8_valid_prefix(text, SHOWN);
    }
    return agent_refuse(ret_why,
                        "edit %u (%s): %s: must be LINE#TAG as read shows it, such as 12#ab3f, or "
                        "a number%s%.*s%s. Nothing was changed",
                        i, op, field, text ? ", not \"" : "", (int)shown, text ? text : "",
                        text ? len > SHOWN ? "...\"" : "\"" : "");
}

static int parse_op(yyjson_val *v, uint32_t i, enum edit_op *ret, struct agent_refusal *ret_why)
{
    size_t len;
    const char *name = text_of(v, &len);
    for (int op = 0; name && op < EDIT_OPS; op++) {
        if (strcmp(edit_kinds[op].name, name) == 0) {
            *ret = (enum edit_op)op;
            return 0;
        }
    }
    return agent_refuse(ret_why,
                        "edit %u: %s op; ops are replace, replace_block, cut, cut_block, and "
                        "insert_ or paste_ with before, after, block_after, head, tail. "
                        "Nothing was changed",
                        i, v ? "unknown" : "has no");
}

// A field that the op does not take is refused: who sent it meant something by it.
static int check_field(const char *key, uint32_t i, unsigned flags, const char *op,
                       struct agent_refusal *ret_why)
{
    static const struct {
        const char *name;
        unsigned needs; // one of; 0: always right
    } fields[] = {
        {"op", 0},
        {"line", EDIT_ANCHOR},
        {"end_line", EDIT_RANGE},
        {"new", EDIT_TEXT},
        {"register", EDIT_STORES | EDIT_PASTES},
    };
    for (size_t k = 0; k < ARRAY_LEN(fields); k++) {
        if (strcmp(fields[k].name, key) == 0) {
            if (!fields[k].needs || (fields[k].needs & flags)) {
                return 0;
            }
            return agent_refuse(ret_why, "edit %u: %s takes no %s. Nothing was changed", i, op,
                                key);
        }
    }
    return agent_refuse(ret_why,
                        "edit %u: there is no field %.40s; fields are op, line, end_line, "
                        "new, register. Nothing was changed",
                        i, key);
}

static bool register_name(const char *name, size_t len)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return name && len > 0 && len <= MEMORY_REGISTER_NAME_MAX && strspn(name, allowed) == len;
}

static int parse_edit(yyjson_val *v, uint32_t i, struct edit *ret, struct agent_refusal *ret_why)
{
    if (!yyjson_is_obj(v)) {
        return agent_refuse(ret_why, "edit %u: not an object. Nothing was changed", i);
    }
    struct edit e = {.reg = "default"};
    int r = parse_op(yyjson_obj_get(v, "op"), i, &e.op, ret_why);
    if (r != 0) {
        return r;
    }
    const struct edit_kind *kind = &edit_kinds[e.op];
    size_t at, max;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, at, max, key, value)
    {
        r = yyjson_is_null(value)
                ? 0
                : check_field(yyjson_get_str(key), i, kind->flags, kind->name, ret_why);
        if (r != 0) {
            return r;
        }
    }
    yyjson_val *line = yyjson_obj_get(v, "line"), *end = yyjson_obj_get(v, "end_line");
    yyjson_val *text = yyjson_obj_get(v, "new"), *reg = yyjson_obj_get(v, "register");
    if ((kind->flags & EDIT_ANCHOR) && !parse_anchor(line, &e.line)) {
        return refuse_anchor(ret_why, i, kind->name, "line", line);
    }
    if (end && !yyjson_is_null(end) && !parse_anchor(end, &e.end)) {
        return refuse_anchor(ret_why, i, kind->name, "end_line", end);
    }
    if (kind->flags & EDIT_TEXT) {
        e.text = text ? text_of(text, &e.text_len) : NULL;
        if (!text || yyjson_is_null(text)) {
            return agent_refuse(ret_why,
                                "edit %u (%s): new is missing: the lines to put there. Nothing "
                                "was changed",
                                i, kind->name);
        }
        if (!e.text || e.text_len > EDIT_NEW_MAX) {
            return agent_refuse(ret_why,
                                "edit %u (%s): new: must be a text without NUL, of at most %d "
                                "bytes. Nothing was changed",
                                i, kind->name, EDIT_NEW_MAX);
        }
        if (e.text_len == 0 && !(kind->flags & EDIT_TAKES)) {
            return agent_refuse(ret_why,
                                "edit %u (%s): new is empty: there is nothing to insert "
                                "(a line break is one empty line). Nothing was changed",
                                i, kind->name);
        }
    }
    if (reg && !yyjson_is_null(reg)) {
        size_t len;
        e.reg = text_of(reg, &len);
        if (!register_name(e.reg, len)) {
            return agent_refuse(ret_why,
                                "edit %u (%s): register: 1 to %d letters, digits, _ and "
                                "-. Nothing was changed",
                                i, kind->name, MEMORY_REGISTER_NAME_MAX);
        }
    }
    *ret = e;
    return 0;
}

int edit_parse(yyjson_val *body, struct edit_request *ret, struct agent_refusal *ret_why)
{
    yyjson_val *tag = yyjson_obj_get(body, "tag"), *edits = yyjson_obj_get(body, "edits");
    size_t n = yyjson_arr_size(edits), len;
    struct edit_request *made = ret;
    made->n = 0;
    made->tag[0] = 0;
    if (tag && !yyjson_is_null(tag)) {
        const char *text = text_of(tag, &len);
        if (!text || !is_tag(text)) {
            return agent_refuse(ret_why, "tag: the four hex digits that read shows behind #. "
                                         "Nothing was changed");
        }
        memcpy(made->tag, text, TEXT_TAG_SIZE);
    }
    if (!yyjson_is_arr(edits) || n == 0 || n > EDIT_MAX) {
        return agent_refuse(ret_why, "edits: a list of 1 to %d edits. Nothing was changed",
                            EDIT_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        int r = parse_edit(yyjson_arr_get(edits, i), (uint32_t)i + 1, &made->edits[i], ret_why);
        if (r != 0) {
            return r;
        }
    }
    made->n = (uint32_t)n;
    return 0;
}
