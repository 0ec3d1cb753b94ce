// text.h: text on its way to a person.
#ifndef ISLE_BASE_TEXT_H
#define ISLE_BASE_TEXT_H

// Replaces control characters (C0, DEL, and C1 in UTF-8, which terminals obey too) by '?', in
// place: a message may quote what a tenant wrote.
void text_no_controls(char *text);

#endif
