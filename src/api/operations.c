// operations.c: is the process there, may it be given jobs, and how does it do.
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json_out.h"
#include "serve/ready.h"

enum { READY_RETRY_S = 1 };

static void get_health(struct api_call *c)
{
    struct buf data = BUF_INIT(256);
    json_begin(&data, NULL, '{');
    json_put_text(&data, "status", "ok");
    json_end(&data, '}');
    api_reply(c, 200, &data);
}

// 503 is the envelope's: whoever balances load looks at the status, a person at the text.
static void get_ready(struct api_call *c)
{
    const struct ready *r = c->with->ready;
    if (!ready_now(r)) {
        api_fail_later(c, API_UNAVAILABLE, READY_RETRY_S, "not ready: %s", ready_why(r));
        return;
    }
    struct buf data = BUF_INIT(64 * 1024);
    ready_write(r, &data);
    api_reply(c, 200, &data);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = "/healthz",
     .who = API_ANYONE,
     .response = &schema_health,
     .handle = get_health,
     .summary = "Is the process there?"},
    {.method = HTTP_M_GET,
     .path = "/readyz",
     .who = API_ANYONE,
     .response = &schema_ready,
     .handle = get_ready,
     .summary = "May it be given jobs? Answered by a real trial run; else 503."},
    {.method = HTTP_M_GET,
     .path = "/metrics",
     .who = API_OPERATOR,
     .type = "text/plain",
     .handle = api_metrics,
     .summary = "How it does, as Prometheus reads it."},
};

const struct api_subject api_operations = {"operations", "The service itself.", routes,
                                           ARRAY_LEN(routes)};
