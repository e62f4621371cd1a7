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
static int32_t lux_of(uint32_t ch0, uint16_t b, uint32_t ch1, uint16_t m)
{
    uint32_t up = ch0 * b, down = ch1 * m;
    return up <= down ? 0 : (int32_t)((up - down + (1UL << 9)) >> 10);
}

static int32_t illuminance(uint32_t ch0, uint32_t ch1)
{
    if (ch0 == 0) return 0;
    uint32_t ratio = ((ch1 << 10) / ch0 + 1) >> 1;
    /* Code and not a table, which would lie in an AVR's RAM. */
    if (ratio <= 0x0040) return lux_of(ch0, 0x01F2, ch1, 0x01BE);
    if (ratio <= 0x0080) return lux_of(ch0, 0x0214, ch1, 0x02D1);
    if (ratio <= 0x00C0) return lux_of(ch0, 0x023F, ch1, 0x037B);
    if (ratio <= 0x0100) return lux_of(ch0, 0x0270, ch1, 0x03FE);
    if (ratio <= 0x0138) return lux_of(ch0, 0x016F, ch1, 0x01FC);
    if (ratio <= 0x019A) return lux_of(ch0, 0x00D2, ch1, 0x00FB);
    if (ratio <= 0x029A) return lux_of(ch0, 0x0018, ch1, 0x0012);
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
