#include "drivers/digital_board/tsl2561.h"

#include "drivers/avr/twi.h"

#define ADDRESS 0x39
#define COMMAND 0x80
enum { CONTROL = 0x0, TIMING = 0x1, DATA0 = 0xC };
enum { LONG = 0x2, SHORT = 0x0 }; /* integrations of 402 and 13.7 ms, at gain 1 */
/* Their full scales. */
#define LONG_FULL 65535U
#define SHORT_FULL 5047U
/* 1024ths of the long integration's counts in one of the short one: the data sheet's
 * CHSCALE_TINT0, 322/11. */
#define SHORT_SCALE 0x7517UL
#define LUX_MAXIMUM 40000

static uint8_t timing;

static bool set(uint8_t address, uint8_t value)
{
    uint8_t bytes[2] = {COMMAND | address, value};
    return twi_write(ADDRESS, bytes, sizeof bytes);
}

bool tsl2561_present(void) { return set(CONTROL, 0x00); }

static bool integrate(uint8_t how)
{
    timing = how;
    return set(TIMING, how);
}

bool tsl2561_start(void) { return set(CONTROL, 0x03) && integrate(LONG); }

/* The data sheet's formula for the T package in integers (p. 24): by ratio ch1/ch0 in 1/512, lux =
 * (b ch0 - m ch1) / 2^14 for 402 ms and gain 16; gain 1 counts 16 times as much. */
static int32_t illuminance(uint32_t ch0, uint32_t ch1)
{
    if (ch0 == 0)
        return 0;
    uint32_t halves = (ch1 << 10) / ch0;
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
    uint32_t up = ch0 * b, down = ch1 * m;
    return up <= down ? 0 : (int32_t)((up - down + (1UL << 9)) >> 10);
}

bool tsl2561_result(int32_t *lux, bool *again)
{
    uint8_t first = COMMAND | DATA0, data[4] = {0};
    bool ok = twi_write(ADDRESS, &first, 1) && twi_read(ADDRESS, data, sizeof data);
    uint32_t ch0 = data[0] | (uint16_t)data[1] << 8, ch1 = data[2] | (uint16_t)data[3] << 8;
    bool brief = timing == SHORT;
    uint16_t full = brief ? SHORT_FULL : LONG_FULL;
    bool saturated = ok && (ch0 >= full || ch1 >= full);
    *again = saturated && !brief && integrate(SHORT);
    if (*again)
        return false;
    ok &= set(CONTROL, 0x00);
    if (!ok || saturated)
        return false;
    if (brief)
        ch0 = ch0 * SHORT_SCALE >> 10, ch1 = ch1 * SHORT_SCALE >> 10;
    *lux = illuminance(ch0, ch1);
    return *lux <= LUX_MAXIMUM;
}
