#include "codec/sha256.h"

#include <string.h>

// The first 32 bits of the fractions of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t right(uint32_t x, int by) { return x >> by | x << (32 - by); }

static uint32_t load(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void store(uint8_t *b, uint32_t x)
{
    for (int i = 0; i < 4; i++) {
        b[i] = (uint8_t)(x >> (24 - 8 * i));
    }
}

static void run_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        w[i] = load(block + (size_t)4 * (size_t)i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
        uint32_t s0 = right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void sha256_init(struct sha256 *s)
{
    // The same of the square roots of the first eight primes.
    *s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
    const uint8_t *from = data;
    while (len > 0) {
        size_t at = s->total_bytes % sizeof s->block;
        size_t n = sizeof s->block - at < len ? sizeof s->block - at : len;
        if (n == sizeof s->block) { // whole blocks need no copy
            run_block(s->state, from);
        } else {
            memcpy(s->block + at, from, n);
            if (at + n == sizeof s->block) {
                run_block(s->state, s->block);
            }
        }
        s->total_bytes += n;
        from += n;
        len -= n;
    }
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t bits[8];
    store(bits, (uint32_t)(s->total_bytes >> 29));
    store(bits + 4, (uint32_t)(s->total_bytes << 3));
    size_t at = s->total_bytes % 64;
    sha256_add(s, padding, at < 56 ? 56 - at : 120 - at);
    sha256_add(s, bits, sizeof bits);
    for (size_t i = 0; i < 8; i++) {
        store(ret + 4 * i, s->state[i]);
    }
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[SHA256_HEX - 1] = 0;
}
