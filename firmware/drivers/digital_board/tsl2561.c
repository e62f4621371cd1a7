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

/* The data sheet's formula for the T package in integers (p. 24): by ratio ch1/ch0 in 1/512, lux =
 * (b ch0 - m ch1) / 2^14 for 402 ms and gain 16; gain 1 counts 16 times as much. */
static int32_t illuminance(uint16_t ch0, uint16_t ch1)
{
    if (ch0 == 0)
        return 0;
    uint32_t halves = ((uint32_t)ch1 << 10) / ch0;
    if (halves > 2 * 0x029A)
        return 0;
    uint16_t ratio = ((uint16_t)halves + 1) >> 1, b, m;
    /* Code and not a table, which would lie in an AVR's RAM. */
    if (ratio <= 0x0040)
        b = 0x01F2, m = 0x01BE;
    else if (ratio <= 0x0080)
        b = 0x0214, m = 0x02D1;
    else if (ratio <= 0x00C0)
        b = 0x023F, m = 0x037B;
    else if (ratio <= 0x0100)
        b = 0x0270, m = 0x03FE;
    else if (ratio <= 0x0138)
        b = 0x016F, m = 0x01FC;
    else if (ratio <= 0x019A)
        b = 0x00D2, m = 0x00FB;
    else
        b = 0x0018, m = 0x0012;
    uint32_t up = (uint32_t)ch0 * b, down = (uint32_t)ch1 * m;
    return up <= down ? 0 : (int32_t)((up - down + (1UL << 9)) >> 10);
}

bool tsl2561_result(int32_t *lux)
{
    uint8_t first = COMMAND | DATA0, data[4];
    bool ok = twi_write(ADDRESS, &first, 1) && twi_read(ADDRESS, data, sizeof data);
    ok &= set(CONTROL, 0x00);
    uint16_t ch0 = (uint16_t)(data[0] | data[1] << 8), ch1 = (uint16_t)(data[2] | data[3] << 8);
    if (!ok || ch0 == SATURATED || ch1 == SATURATED)
        return false;
    *lux = illuminance(ch0, ch1);
    return true;
}
