// Settings files: what is taken, written again in quotes, is taken as the same values; what is
// refused has its line and nothing that a terminal obeys.
#include "base/buf.h"
#include "base/fd.h"
#include "conf/file.h"
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

static bool parse(const void *data, size_t len, struct conf_file *ret)
{
    char *text = malloc(len + 1);
    struct conf_error why = {""};
    MUST(text);
    memcpy(text, data, len);
    if (conf_file_parse(text, len, "f", ret, &why) == 0) {
        return true;
    }
    MUST(memcmp(why.text, "f:", 2) == 0 && memchr(why.text, '\0', sizeof why.text));
    for (const char *p = why.text; *p; p++) {
        MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct conf_file first, second;
    if (len > CONF_FILE_MAX || !parse(data, len, &first)) {
        return 0;
    }
    AUTO_BUF struct buf again = BUF_INIT(3 * len + 64UL * SETTING_COUNT);
    for (int n = 0; n < SETTING_COUNT; n++) {
        const char *value = first.values[n];
        if (!value) {
            continue;
        }
        MUST(first.lines[n] > 0 && *value && !strchr(value, '\n'));
        buf_printf(&again, "%s=\"", setting_specs[n].name);
        for (; *value; value++) {
            buf_printf(&again, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
        }
        buf_puts(&again, "\"\n");
    }
    MUST(!again.error);
    MUST(parse(buf_text(&again), again.len, &second));
    for (int n = 0; n < SETTING_COUNT; n++) {
        MUST(!first.values[n] == !second.values[n]);
        MUST(!first.values[n] || strcmp(first.values[n], second.values[n]) == 0);
    }
    conf_file_done(&first);
    conf_file_done(&second);
    return 0;
}
