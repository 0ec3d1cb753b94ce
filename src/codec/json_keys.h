// json_keys.h: a key that an object has twice, in time linear in its keys, whoever chose them.
// Inside codec/ only.
#ifndef ISLE_CODEC_JSON_KEYS_H
#define ISLE_CODEC_JSON_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include <yyjson.h>

// Of one document: drawn with its first object that needs it, so that nobody can choose keys that
// fall together.
struct json_keys {
    bool drawn;
    uint64_t secret[2];
};

// *ret_twice: the later one of two equal keys (after unescaping), or NULL. 0 or -errno (no memory,
// no randomness).
int json_keys_check(struct json_keys *k, yyjson_val *object, yyjson_val **ret_twice);

#endif
