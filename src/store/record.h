// record.h: what every implementation does with a write before it is its own.
#ifndef ISLE_STORE_RECORD_H
#define ISLE_STORE_RECORD_H

#include "store/store.h"

// Are all texts within their bounds, and is the status one that this kind may set? Is an import
// lent, of no more tools than a team may have? 0, -EMSGSIZE or -EINVAL.
int store_write_check(const struct store_write *w);
// Bytes of the texts.
size_t store_write_size(const struct store_write *w);
// A copy whose texts lie in `room`, which has space for store_write_size() bytes. Not of an import.
void store_write_copy(const struct store_write *w, struct store_write *ret, char *room);

#endif
