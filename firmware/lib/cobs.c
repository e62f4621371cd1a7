#include "lib/cobs.h"

uint8_t cobs_encode(const uint8_t *data, uint8_t length, uint8_t *out)
{
    uint8_t code_at = 0, code = 1, written = 1;
    for (uint8_t i = 0; i < length; i++) {
        if (data[i]) {
            out[written++] = data[i];
            code++;
        } else {
            out[code_at] = code;
            code_at = written++;
            code = 1;
        }
    }
    out[code_at] = code;
    out[written++] = 0;
    return written;
}

uint8_t cobs_decode(uint8_t *data, uint8_t length)
{
    uint8_t from = 0, to = 0;
    while (from < length) {
        uint8_t code = data[from++];
        if (!code || from + code - 1 > length)
            return 0;
        for (uint8_t i = 1; i < code; i++)
            data[to++] = data[from++];
        if (from < length && code < 255)
            data[to++] = 0;
    }
    return to;
}
