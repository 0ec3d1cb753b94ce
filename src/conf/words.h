// words.h: one word of a list.
#ifndef ISLE_CONF_WORDS_H
#define ISLE_CONF_WORDS_H

#include "conf/conf.h"

bool words_check(enum setting_word kind, const char *word);

#endif
