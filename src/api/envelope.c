#include "api/envelope.h"

#include "codec/json_out.h"

const struct api_code_spec api_codes[] = {
    {API_OK, 200, "ok", "done; also for a job that ran and failed: `success` says which"},
    {API_UNKNOWN, 500, "unknown", "an error of no other kind"},
    {API_VALIDATION, 422, "validation", "the body, a field or a query parameter breaks a rule"},
    {API_BAD_REQUEST, 400, "bad request", "no request that could be understood: JSON, HTTP"},
    {API_INTERNAL, 500, "internal", "a fault of the service itself; its log has more"},
    {API_FORBIDDEN, 403, "forbidden", "this key, host name or origin may not do that"},
    {API_TIMEOUT, 408, "request timeout", "head or body came too slowly"},
    {API_TOO_LARGE, 413, "too large", "the body is above its bound"},
    {API_MEDIA_TYPE, 415, "media type", "a body of another type or encoding than is taken"},
    {API_PRECONDITION, 412, "precondition", "If-Match or If-None-Match does not hold"},
    {API_METHOD, 405, "method", "the path has other methods: the field Allow names them"},
    {API_UNAUTHORISED, 401, "unauthorised", "no key, or none that is known"},
    {API_NOT_FOUND, 404, "not found", "no such path or object, or another team's"},
    {API_GONE, 410, "gone", "there was one: it has expired or was deleted"},
    {API_EXISTS, 409, "exists", "what is there already stands in the way"},
    {API_LIMITED, 429, "limited",
     "a queue is full, as much is kept of the team as it may have, or too many wrong keys: "
     "Retry-After says when to come back"},
    {API_UNAVAILABLE, 503, "unavailable", "nothing can run at the moment", API_LIMITED},
    {0},
};

int api_code_status(enum api_code code)
{
    for (const struct api_code_spec *s = api_codes; s->name; s++) {
        if (s->code == code) {
            return s->status;
        }
    }
    return 500;
}

int api_code_told(enum api_code code)
{
    const struct api_code_spec *s = api_codes;
    while (s->name && s->code != code) {
        s++;
    }
    return s->told ? s->told : (int)code;
}

enum api_code api_code_of_status(int status)
{
    for (const struct api_code_spec *s = api_codes; s->name; s++) {
        if (s->status == status && s->code != API_UNKNOWN) {
            return s->code;
        }
    }
    if (status == 501) { // a method or a coding that nobody here knows
        return API_METHOD;
    }
    return status < 500 || status == 505 ? API_BAD_REQUEST : API_INTERNAL;
}

void api_envelope_write(struct buf *out, enum api_code code, const struct buf *data,
                        const char *msg)
{
    json_begin(out, NULL, '{');
    json_put_int(out, "code", api_code_told(code));
    json_put_json(out, "data", data ? buf_text(data) : NULL);
    json_put_text(out, "msg", msg);
    json_end(out, '}');
}
