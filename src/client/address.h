// address.h: where a service is.
#ifndef ISLE_CLIENT_ADDRESS_H
#define ISLE_CLIENT_ADDRESS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct address {
    char base[1024];  // scheme, host, port and path without its last slash
    char socket[108]; // of a service on this host; "": none
    char shown[1024]; // for people
    bool loopback;    // never by way of a proxy
    bool overt;       // unencrypted to another host: whoever is between reads the key
};

struct address_error {
    char text[320];
};

// http://HOST[:PORT][/PATH], https:// likewise, unix:/PATH. No user, query or fragment. 0, or
// -EINVAL with *ret_error.
int address_parse(const char *url, struct address *ret, struct address_error *ret_error);

// Appends text with everything but letters, digits and "-._~" escaped; with `path`, slashes stay.
int address_escape(struct buf *out, const char *text, bool path);

#endif
