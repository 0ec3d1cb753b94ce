#include "store/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char prefix[] = "isle_";
enum { PREFIX_CHARS = 5, SECRET_AT = PREFIX_CHARS + KEY_ID_CHARS + 1 };

static int random_bytes(void *to, size_t len)
{
    ssize_t n = getrandom(to, len, 0); // up to 256 bytes come whole
    if (n < 0) {
        return -errno;
    }
    return (size_t)n == len ? 0 : -EIO;
}

// Of the digits as they are written: as good as of the bits, and there is nothing to decode.
static void hash_secret(const char *text, const void *salt, uint8_t ret[SHA256_BYTES])
{
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, salt, KEY_SALT_BYTES);
    sha256_add(&s, text + SECRET_AT, KEY_SECRET_CHARS);
    sha256_end(&s, ret);
    explicit_bzero(&s, sizeof s);
}

int key_new(struct key *ret)
{
    uint8_t id[SHA256_BYTES] = {0}, secret[SHA256_BYTES], salt[KEY_SALT_BYTES];
    char id_hex[SHA256_HEX], secret_hex[SHA256_HEX];
    int err = random_bytes(id, KEY_ID_CHARS / 2);
    err = err == 0 ? random_bytes(secret, sizeof secret) : err;
    err = err == 0 ? random_bytes(salt, sizeof salt) : err;
    if (err != 0) {
        return err;
    }
    sha256_hex(id, id_hex);
    sha256_hex(secret, secret_hex);
    snprintf(ret->text, sizeof ret->text, "%s%.*s_%s", prefix, KEY_ID_CHARS, id_hex, secret_hex);
    snprintf(ret->id, sizeof ret->id, "%.*s", KEY_ID_CHARS, id_hex);
    memcpy(ret->salt, salt, sizeof salt);
    hash_secret(ret->text, salt, ret->hash);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(secret_hex, sizeof secret_hex);
    return 0;
}

static bool all_hex(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (!digit && !(text[i] >= 'a' && text[i] <= 'f')) {
            return false;
        }
    }
    return true;
}

static bool has_form(const char *text, size_t len)
{
    return len == KEY_TEXT_CHARS && memcmp(text, prefix, PREFIX_CHARS) == 0 &&
           text[SECRET_AT - 1] == '_' && all_hex(text + PREFIX_CHARS, KEY_ID_CHARS) &&
           all_hex(text + SECRET_AT, KEY_SECRET_CHARS);
}

int key_id(const char *text, size_t len, char ret[KEY_ID_CHARS + 1])
{
    if (!has_form(text, len)) {
        return -EINVAL;
    }
    memcpy(ret, text + PREFIX_CHARS, KEY_ID_CHARS);
    ret[KEY_ID_CHARS] = 0;
    return 0;
}

bool key_matches(const char *text, size_t len, const struct store_key *record)
{
    if (!has_form(text, len) || record->revoked_ms != 0 || record->id.len != KEY_ID_CHARS ||
        record->salt.len != KEY_SALT_BYTES || record->hash.len != SHA256_BYTES) {
        return false;
    }
    uint8_t hash[SHA256_BYTES];
    unsigned differs = memcmp(record->id.data, text + PREFIX_CHARS, KEY_ID_CHARS) != 0;
    hash_secret(text, record->salt.data, hash);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        differs |= (unsigned)(hash[i] ^ (uint8_t)record->hash.data[i]);
    }
    return differs == 0;
}
