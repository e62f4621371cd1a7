#include "drivers/digital_board/tsl2561.h"

#include "drivers/avr/twi.h"

#define ADDRESS 0x39
#define COMMAND 0x80
enum { CONTROL = 0x0, TIMING = 0x1, DATA0 = 0xC };
#define SATURATED 65535U

static bool set(uint8_t address, uint8_t value)
{
    uint8_t bytes[2] = {COMMAND | address, value};
    return twi_write(ADDRESS, bytes, sizeof bytes);
}

bool tsl2561_present(void) { return set(CONTROL, 0x00); }

/* Gain 1, 402 ms. */
bool tsl2561_start(void) { return set(CONTROL, 0x03) && set(TIMING, 0x02); }

/* The data sheet's formula for the T package in integers (p. 24): by ratio ch1/ch0 in 1/512, lux = (b ch0 - m ch1) / 2^14
 * for 402 ms and gain 16; gain 1 counts 16 times as much. */
static int32_t illuminance(uint32_t ch0, uint32_t ch1)
{
    static const struct { uint16_t ratio, b, m; } segments[] = {
        {0x0040, 0x01F2, 0x01BE}, {0x0080, 0x0214, 0x02D1}, {0x00C0, 0x023F, 0x037B}, {0x0100, 0x0270, 0x03FE},
        {0x0138, 0x016F, 0x01FC}, {0x019A, 0x00D2, 0x00FB}, {0x029A, 0x0018, 0x0012},
    };
    if (ch0 == 0) return 0;
    uint32_t ratio = ((ch1 << 10) / ch0 + 1) >> 1;
    for (uint8_t i = 0; i < sizeof segments / sizeof *segments; i++)
        if (ratio <= segments[i].ratio) {
            uint32_t up = ch0 * segments[i].b, down = ch1 * segments[i].m;
            return up <= down ? 0 : (int32_t)((up - down + (1UL << 9)) >> 10);
        }
    return 0;
}

bool tsl2561_result(int32_t *lux)
{
    uint8_t first = COMMAND | DATA0, data[4];
    bool ok = twi_write(ADDRESS, &first, 1) && twi_read(ADDRESS, data, sizeof data);
    ok = set(CONTROL, 0x00) && ok;
    uint16_t ch0 = (uint16_t)(data[0] | data[1] << 8), ch1 = (uint16_t)(data[2] | data[3] << 8);
    if (!ok || ch0 == SATURATED || ch1 == SATURATED) return false;
    *lux = illuminance(ch0, ch1);
    return true;
}
