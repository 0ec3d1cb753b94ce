// key.h: the keys that callers show. `isle_ID_SECRET` in lower-case hexadecimal digits; the store
// keeps ID, a salt and SHA-256(salt, secret). The secret has 256 random bits: nothing is gained by
// hashing slowly what cannot be guessed.
#ifndef ISLE_STORE_KEY_H
#define ISLE_STORE_KEY_H

#include "store/store.h"

#include "codec/sha256.h"

#include <stdbool.h>

enum {
    KEY_ID_CHARS = 16,
    KEY_SECRET_CHARS = 64,
    KEY_SALT_BYTES = 16,
    KEY_TEXT_CHARS = 5 + KEY_ID_CHARS + 1 + KEY_SECRET_CHARS, // "isle_", '_'
};

struct key {
    char text[KEY_TEXT_CHARS + 1]; // shown once, kept nowhere
    char id[KEY_ID_CHARS + 1];
    uint8_t salt[KEY_SALT_BYTES];
    uint8_t hash[SHA256_BYTES];
};

// A new key. 0 or -errno of getrandom(2).
int key_new(struct key *ret);

// The id in a key that a caller shows, if it has a key's form: what to look for in the store. 0 or
// -EINVAL.
int key_id(const char *text, size_t len, char ret[KEY_ID_CHARS + 1]);
// Is it this record's? Takes the same time wherever they differ. False for a revoked one.
bool key_matches(const char *text, size_t len, const struct store_key *record);

#endif
