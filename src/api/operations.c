// operations.c: is the process there, may it be given jobs, and how does it do.
#include "api/route.h"
#include "api/schema.h"

#include "codec/json_out.h"

static void get_health(struct api_call *c)
{
    struct buf data = BUF_INIT(256);
    json_begin(&data, NULL, '{');
    json_put_text(&data, "status", "ok");
    json_end(&data, '}');
    api_reply(c, 200, &data);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = "/healthz",
     .who = API_ANYONE,
     .response = &schema_health,
     .handle = get_health,
     .summary = "Is the process there?"},
};

const struct api_subject api_operations = {"operations", "The service itself.", routes,
                                           sizeof routes / sizeof *routes};
