// tools.h: what the parts of `isle tools` share.
#ifndef ISLE_CLIENT_TOOLS_H
#define ISLE_CLIENT_TOOLS_H

#include "client/client.h"

#define TOOLS "/tools"

enum { TOOLS_ID_MAX = 64 };

// The id of the tool that the first operand names. 0 or an exit status after a complaint.
int tools_find(struct client *c, char ret_id[TOOLS_ID_MAX]);

// The same tool, whole; *ret_doc owns it. NULL after a complaint, and *ret_status is the process's.
yyjson_val *tools_fetch(struct client *c, char ret_id[TOOLS_ID_MAX], yyjson_doc **ret_doc,
                        int *ret_status);

// An object's member with any key: the value, which is JSON.
void tools_put(struct buf *out, const char *key, size_t len, const char *json);
void tools_put_value(struct buf *out, yyjson_val *key, yyjson_val *value);

#endif
