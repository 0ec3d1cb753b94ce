// envelope.h: the codes of the envelope and what they mean.
#ifndef ISLE_API_ENVELOPE_H
#define ISLE_API_ENVELOPE_H

#include "api/call.h"

struct api_code_spec {
    enum api_code code;
    int status; // of HTTP
    const char *name;
    const char *when; // one phrase for a caller
    int told;         // in its place; 0: itself
};
extern const struct api_code_spec api_codes[]; // ended by one with no name
int api_code_status(enum api_code code);
int api_code_told(enum api_code code); // what the envelope says
// The code that stands for a status which something below the API chose.
enum api_code api_code_of_status(int status);

// {"code":N,"data":DATA,"msg":MSG}; data NULL: null.
void api_envelope_write(struct buf *out, enum api_code code, const struct buf *data,
                        const char *msg);

#endif
