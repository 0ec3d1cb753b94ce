#include "codec/json_keys.h"

#include "base/fd.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FEW = 16 }; // up to so many are compared one with another

static bool equal(yyjson_val *a, yyjson_val *b)
{
    size_t n = yyjson_get_len(a);
    return n == yyjson_get_len(b) &&
           memcmp(unsafe_yyjson_get_str(a), unsafe_yyjson_get_str(b), n) == 0;
}

static yyjson_val *twice_of_few(yyjson_val *object)
{
    yyjson_val *seen[FEW], *key, *value;
    size_t i, count;
    yyjson_obj_foreach(object, i, count, key, value)
    {
        for (size_t before = 0; before < i; before++) {
            if (equal(seen[before], key)) {
                return key;
            }
        }
        seen[i] = key;
    }
    return NULL;
}

// ---- SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"; fewer rounds, as
// nobody sees a hash).

struct sip {
    uint64_t a, b, c, d;
};

static uint64_t turn(uint64_t x, unsigned bits) { return x << bits | x >> (64 - bits); }

static void sip_round(struct sip *s)
{
    s->a += s->b;
    s->b = turn(s->b, 13) ^ s->a;
    s->a = turn(s->a, 32);
    s->c += s->d;
    s->d = turn(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = turn(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = turn(s->b, 17) ^ s->c;
    s->c = turn(s->c, 32);
}

static void sip_add(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

static uint64_t hash(const struct json_keys *k, const char *data, size_t len)
{
    struct sip s = {
        k->secret[0] ^ UINT64_C(0x736f6d6570736575), k->secret[1] ^ UINT64_C(0x646f72616e646f6d),
        k->secret[0] ^ UINT64_C(0x6c7967656e657261), k->secret[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t word;
    size_t at = 0;
    for (; len - at >= sizeof word; at += sizeof word) {
        memcpy(&word, data + at, sizeof word);
        sip_add(&s, word);
    }
    word = 0;
    memcpy(&word, data + at, len - at);
    sip_add(&s, word ^ (uint64_t)len << 56);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++) {
        sip_round(&s);
    }
    return s.a ^ s.b ^ s.c ^ s.d;
}

// ---- A table of all keys: open addressing, never more than two thirds full.

struct slot {
    uint32_t tag; // of the hash, what did not choose the slot: spares most comparisons
    uint32_t key; // its distance from the object in yyjson's array; 0: free
};

static yyjson_val *twice_of_many(const struct json_keys *k, yyjson_val *object, struct slot *slots,
                                 size_t mask)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, count, key, value)
    {
        uint64_t h = hash(k, unsafe_yyjson_get_str(key), yyjson_get_len(key));
        uint32_t tag = (uint32_t)(h >> 32);
        size_t at = (size_t)h & mask;
        for (; slots[at].key; at = (at + 1) & mask) {
            if (slots[at].tag == tag && equal(object + slots[at].key, key)) {
                return key;
            }
        }
        slots[at] = (struct slot){tag, (uint32_t)(key - object)};
    }
    return NULL;
}

static int draw(struct json_keys *k)
{
    if (!k->drawn && getrandom(k->secret, sizeof k->secret, 0) != sizeof k->secret) {
        return -EIO;
    }
    k->drawn = true;
    return 0;
}

int json_keys_check(struct json_keys *k, yyjson_val *object, yyjson_val **ret_twice)
{
    size_t n = yyjson_obj_size(object), size = 2 * FEW;
    if (n <= FEW) {
        *ret_twice = twice_of_few(object);
        return 0;
    }
    while (size / 3 * 2 < n) {
        size *= 2;
    }
    // Distances are 32 bits wide: 16 bytes each, such an object has a text of gigabytes.
    AUTO_FREE struct slot *slots = n < UINT32_MAX / 64 ? calloc(size, sizeof *slots) : NULL;
    if (!slots) {
        return -ENOMEM;
    }
    int e = draw(k);
    if (!e) {
        *ret_twice = twice_of_many(k, object, slots, size - 1);
    }
    return e;
}
