#include "agent/refusal.h"

#include <stdarg.h>
#include <stdio.h>

int agent_refuse(struct agent_refusal *ret, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret->text, sizeof ret->text, format, args);
    va_end(args);
    return AGENT_REFUSED;
}
