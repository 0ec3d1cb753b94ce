#include "job/output.h"

#include "codec/utf8.h"

void output_init(struct output *o, struct buf *kept) { *o = (struct output){.kept = kept}; }

static void give(struct output *o, size_t until, const char **ret, size_t *ret_len)
{
    *ret = buf_text(o->kept) + o->given;
    *ret_len = until - o->given;
    o->given = until;
}

// The border after which a character may still be open. Everything before `given` is whole.
static size_t border(const struct output *o)
{
    return o->given + utf8_cut(buf_text(o->kept) + o->given, o->kept->len - o->given);
}

int output_add(struct output *o, const char *data, size_t len, const char **ret, size_t *ret_len)
{
    o->total += len;
    *ret = "";
    *ret_len = 0;
    if (o->full) {
        return 0;
    }
    size_t room = o->kept->max - o->kept->len;
    size_t taken = len < room ? len : room;
    int e = buf_add(o->kept, data, taken);
    if (e || taken < len) {
        o->full = true;
    }
    size_t until = border(o);
    if (o->full) { // a character that the limit cuts in two is left out
        o->kept->len = until;
        if (o->kept->data) {
            o->kept->data[until] = '\0';
        }
    }
    give(o, until, ret, ret_len);
    return e;
}

void output_end(struct output *o, const char **ret, size_t *ret_len)
{
    give(o, o->kept->len, ret, ret_len);
}

bool output_truncated(const struct output *o) { return o->total > o->kept->len; }
