// refusal.h: why a tool did not do what it was asked, in words for whoever asked: which part of the
// request, what is wrong with it, and what to do instead.
#ifndef ISLE_AGENT_REFUSAL_H
#define ISLE_AGENT_REFUSAL_H

enum { AGENT_REFUSED = 1 }; // the positive answer of what takes a struct agent_refusal

struct agent_refusal {
    char text[512];
};

// Fills it. AGENT_REFUSED, so that it can be returned.
int agent_refuse(struct agent_refusal *ret, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
