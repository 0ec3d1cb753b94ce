#include "model/form.h"

#include <string.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER_HEX DIGITS "abcdef"

bool form_is_of(const char *text, size_t len, const char *set)
{
    for (size_t i = 0; i < len; i++) {
        if (!text[i] || !strchr(set, text[i])) {
            return false;
        }
    }
    return true;
}

bool form_is_id(const char *text, size_t len)
{
    if (len != 36) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !form_is_of(text + i, 1, LOWER_HEX)) {
            return false;
        }
    }
    return true;
}

bool form_is_key_id(const char *text, size_t len)
{
    return len == 16 && form_is_of(text, len, LOWER_HEX);
}

bool form_is_team(const char *text, size_t len)
{
    return len >= 1 && len <= 128 && form_is_of(text, 1, LETTERS DIGITS) &&
           form_is_of(text, len, LETTERS DIGITS "._:@-");
}
