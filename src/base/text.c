#include "base/text.h"

#include <stdint.h>

void text_no_controls(char *text)
{
    for (uint8_t *p = (uint8_t *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7f) {
            *p = '?';
        } else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) {
            p[0] = p[1] = '?';
        }
    }
}
