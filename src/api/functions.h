// functions.h: what a model may call, as its API is told. Inside api/ only.
#ifndef ISLE_API_FUNCTIONS_H
#define ISLE_API_FUNCTIONS_H

struct api_call;

void functions_list(struct api_call *c); // GET /api/v1/tools/schemas

#endif
