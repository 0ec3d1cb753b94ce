// functions.h: what a model may call, as its API is told. Inside api/ only.
#ifndef ISLE_API_FUNCTIONS_H
#define ISLE_API_FUNCTIONS_H

struct api_call;

// The built-in functions beside the tools of agents: code in a sandbox of its own.
enum { FUNCTION_SNIPPETS = 2 };
extern const struct function_snippet {
    const char *name, *description;
} function_snippets[FUNCTION_SNIPPETS];

void functions_list(struct api_call *c); // GET /api/v1/tools/schemas

#endif
