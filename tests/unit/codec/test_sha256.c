// SHA-256 against the vectors of FIPS 180-4 and against other ways to cut the same bytes.
#include "codec/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(const void *data, size_t len, const char *hex)
{
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];
    char text[SHA256_HEX];
    sha256_init(&s);
    sha256_add(&s, data, len);
    sha256_end(&s, digest);
    sha256_hex(digest, text);
    assert_string_equal(text, hex);
}

static void known_digests(void **state)
{
    (void)state;
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];
    char text[SHA256_HEX], a[1000];
    memset(a, 'a', sizeof a);
    sha256_init(&s);
    for (int i = 0; i < 1000; i++) {
        sha256_add(&s, a, sizeof a);
    }
    sha256_end(&s, digest);
    sha256_hex(digest, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_make_the_same_digest(void **state)
{
    (void)state;
    uint8_t data[300], whole[SHA256_BYTES], parts[SHA256_BYTES];
    struct sha256 s;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    for (size_t len = 0; len <= sizeof data; len++) { // all lengths around the padding's borders
        sha256_init(&s);
        sha256_add(&s, data, len);
        sha256_end(&s, whole);
        size_t cut = len * 37 % (len + 1);
        sha256_init(&s);
        sha256_add(&s, data, cut);
        for (size_t i = cut; i < len; i++) {
            sha256_add(&s, data + i, 1);
        }
        sha256_end(&s, parts);
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(pieces_make_the_same_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
