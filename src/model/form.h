// form.h: names that isle gives out and takes back, told by their form alone.
#ifndef ISLE_MODEL_FORM_H
#define ISLE_MODEL_FORM_H

#include <stdbool.h>
#include <stddef.h>

#define FORM_ID_HELP "an id: a UUID in lower case"
#define FORM_KEY_ID_HELP "the id of a key: 16 hexadecimal digits"
#define FORM_TEAM_HELP                                                                             \
    "a team's name: up to 128 of A-Z a-z 0-9 . _ : @ -, the first a letter or a digit"

bool form_is_of(const char *text, size_t len, const char *set); // nothing but characters of `set`
bool form_is_id(const char *text, size_t len);                  // of a job, a session, a tool
bool form_is_key_id(const char *text, size_t len);
bool form_is_team(const char *text, size_t len);

#endif
