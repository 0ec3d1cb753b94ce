// sha256.h: SHA-256 (FIPS 180-4): checksums of files, and keys that are stored hashed.
#ifndef ISLE_CODEC_SHA256_H
#define ISLE_CODEC_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t total_bytes;
    uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
// The digest of all that was added; s is to be initialised before it is used again.
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES]);

// A digest as 64 lower-case digits and a NUL.
void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret[SHA256_HEX]);

#endif
