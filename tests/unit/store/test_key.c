// Keys: what is shown once is recognised, and nothing else is.
#include "store/key.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct store_key record_of(const struct key *k)
{
    return (struct store_key){.id = {k->id, KEY_ID_CHARS},
                              .salt = {(const char *)k->salt, sizeof k->salt},
                              .hash = {(const char *)k->hash, sizeof k->hash}};
}

static void a_key_is_recognised_by_its_record(void **state)
{
    (void)state;
    struct key k, other;
    char id[KEY_ID_CHARS + 1];
    assert_int_equal(key_new(&k), 0);
    assert_int_equal(key_new(&other), 0);
    assert_int_equal(strlen(k.text), KEY_TEXT_CHARS);
    assert_string_not_equal(k.text, other.text);
    assert_int_equal(key_id(k.text, KEY_TEXT_CHARS, id), 0);
    assert_string_equal(id, k.id);
    struct store_key r = record_of(&k);
    assert_true(key_matches(k.text, KEY_TEXT_CHARS, &r));
    assert_false(key_matches(other.text, KEY_TEXT_CHARS, &r));
    r.revoked_ms = 1;
    assert_false(key_matches(k.text, KEY_TEXT_CHARS, &r));
}

static void every_change_of_a_key_is_seen(void **state)
{
    (void)state;
    struct key k;
    char id[KEY_ID_CHARS + 1];
    assert_int_equal(key_new(&k), 0);
    struct store_key r = record_of(&k);
    for (size_t i = 0; i < KEY_TEXT_CHARS; i++) {
        static const char put[] = {'0', 'f', 'F', 'g', '_', 0, (char)0xff};
        char was = k.text[i];
        for (size_t c = 0; c < sizeof put; c++) {
            k.text[i] = put[c];
            assert_int_equal(key_matches(k.text, KEY_TEXT_CHARS, &r), put[c] == was);
        }
        k.text[i] = was;
    }
    assert_int_equal(key_id(k.text, KEY_TEXT_CHARS - 1, id), -EINVAL);
    assert_int_equal(key_id(k.text, KEY_TEXT_CHARS + 1, id), -EINVAL);
    assert_int_equal(key_id("", 0, id), -EINVAL);
    r.hash.len = 0; // a record that is none
    assert_false(key_matches(k.text, KEY_TEXT_CHARS, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_recognised_by_its_record),
        cmocka_unit_test(every_change_of_a_key_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
