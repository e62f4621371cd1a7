/* The IRIS sensor board: SHT21 and TSL2561 on the two-wire bus, ADXL202 on the ADC. */
#include <math.h>
#include <string.h>

#include "core.h"

#define MS 1000000U
#define SHT21 0x40
#define TSL2561 0x39
/* Supply currents of what is switched on as a whole, mA: ADXL202 (rev. B); the analogue board's
 * LM60 0.08, HIH-5030 0.2, ADXL202 0.6. */
#define ACCEL_MA 0.6
#define ANALOGUE_MA 0.88

void sensors_power_on(struct sensors *s, uint64_t now)
{
    s->address = 0;
    s->sht_command = 0;
    s->sht_user = 0x02;
    s->tsl_control = 0;
    s->tsl_timing = 0x02;
    s->accel_on = s->analogue_on = false;
    s->tsl_accounted = s->tsl_power = s->power_accounted = now;
}

/* Joule at 3 V: SHT21 0.3 mA while it measures (data sheet table 2). */
static void sht_start(struct sensors *s, uint64_t now, uint8_t command)
{
    bool temperature = command == 0xF3;
    double value = s->value[temperature ? SKERRY_SENSOR_TEMPERATURE : SKERRY_SENSOR_HUMIDITY];
    uint64_t duration = temperature ? 85 * MS : 29 * MS;
    s->sht_command = command;
    s->sht_ready = now + duration;
    s->joule += (double)duration * 1e-9 * 0.3e-3 * 3.0;
    if (isnan(value)) {
        s->sht_ready = NEVER;
        return;
    }
    double ticks =
        temperature ? (value + 46.85) / 175.72 * 65536.0 : (value + 6.0) / 125.0 * 65536.0;
    double step = temperature ? 4.0 : 16.0; /* 14 and 12 bit */
    ticks = fmax(0, fmin(65536.0 - step, floor(ticks / step + 0.5) * step));
    uint16_t raw = (uint16_t)ticks | (temperature ? 0 : 2);
    s->sht_data[0] = (uint8_t)(raw >> 8);
    s->sht_data[1] = (uint8_t)raw;
    uint8_t crc = 0;
    for (int i = 0; i < 2; i++) {
        crc ^= s->sht_data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (uint8_t)(crc & 0x80 ? crc << 1 ^ 0x31 : crc << 1);
    }
    s->sht_data[2] = crc;
}

static double tsl_integration_ms(const struct sensors *s)
{
    /* 11, 81 and 322 steps of the same clock. */
    static const double ms[4] = {402.0 * 11 / 322, 402.0 * 81 / 322, 402.0, 0.0};
    return ms[s->tsl_timing & 3];
}

/* Channels for light whose channel 1 is a fifth of channel 0: then the data sheet's integer formula
 * for the T package has b = 532, m = 721 (K2T): lux = (532 ch0 - 721 ch1) / 2^14 at 402 ms and
 * gain 16. */
static uint16_t tsl_channel(const struct sensors *s, uint64_t now, int channel)
{
    double lux = s->value[SKERRY_SENSOR_LIGHT], ms = tsl_integration_ms(s);
    if ((s->tsl_control & 3) != 3 || isnan(lux) || (double)(now - s->tsl_power) < ms * 1e6)
        return 0;
    double per_count = (532.0 - 0.2 * 721.0) / 16384.0;
    double scale = ms / 402.0 * (s->tsl_timing & 0x10 ? 1.0 : 1.0 / 16.0);
    double ch0 = fmax(0, lux) / per_count * scale;
    double full = ms > 400 ? 65535 : ms > 100 ? 37177 : 5047;
    return (uint16_t)fmin(full, floor((channel ? ch0 * 0.2 : ch0) + 0.5));
}

void sensors_account(struct sensors *s, uint64_t now)
{
    if ((s->tsl_control & 3) == 3)
        s->joule += (double)(now - s->tsl_accounted) * 1e-9 * 0.24e-3 * 3.0;
    s->tsl_accounted = now;
    if (s->accel_on)
        s->joule += (double)(now - s->power_accounted) * 1e-9 * ACCEL_MA * 1e-3 * 3.0;
    if (s->analogue_on)
        s->joule += (double)(now - s->power_accounted) * 1e-9 * ANALOGUE_MA * 1e-3 * 3.0;
    s->power_accounted = now;
}

int sensors_twi_start(struct sensors *s, uint64_t now, uint8_t address, int read)
{
    s->address = 0;
    if (address == SHT21) {
        /* no hold: not ready, not acknowledged */
        if (read && s->sht_command && now < s->sht_ready)
            return 0;
        s->sht_position = 0;
        s->address = SHT21;
        return 1;
    }
    if (address == TSL2561 && !isnan(s->value[SKERRY_SENSOR_LIGHT])) {
        s->tsl_first = !read;
        s->address = TSL2561;
        return 1;
    }
    return 0;
}

int sensors_twi_write(struct sensors *s, uint64_t now, uint8_t byte)
{
    if (s->address == SHT21) {
        if (byte == 0xF3 || byte == 0xF5)
            sht_start(s, now, byte);
        else if (byte == 0xFE) {
            s->sht_command = 0;
            s->sht_user = 0x02;
        }
        return byte == 0xF3 || byte == 0xF5 || byte == 0xFE || byte == 0xE6 || byte == 0xE7;
    }
    if (s->address != TSL2561)
        return 0;
    if (s->tsl_first) {
        s->tsl_command = byte;
        s->tsl_first = false;
        return (byte & 0x80) != 0;
    }
    sensors_account(s, now);
    if ((s->tsl_command & 15) == 0) {
        if ((byte & 3) == 3 && (s->tsl_control & 3) != 3)
            s->tsl_power = now;
        s->tsl_control = byte & 3;
    }
    if ((s->tsl_command & 15) == 1) {
        s->tsl_timing = byte;
        s->tsl_power = now;
    }
    s->tsl_command++;
    return 1;
}

uint8_t sensors_twi_read(struct sensors *s, uint64_t now)
{
    if (s->address == SHT21)
        return s->sht_position < 3 ? s->sht_data[s->sht_position++] : 0xFF;
    uint8_t at = s->tsl_command++ & 15;
    switch (at) {
    case 0: return s->tsl_control;
    case 1: return s->tsl_timing;
    case 10: return 0x50; /* ID: TSL2561T, revision 0 */
    case 12: return (uint8_t)tsl_channel(s, now, 0);
    case 13: return (uint8_t)(tsl_channel(s, now, 0) >> 8);
    case 14: return (uint8_t)tsl_channel(s, now, 1);
    case 15: return (uint8_t)(tsl_channel(s, now, 1) >> 8);
    default: return 0;
    }
}

void sensors_twi_stop(struct sensors *s, uint64_t now)
{
    (void)now;
    s->address = 0;
}

/* ADXL202 (rev. B): settles within 16 ms. */
void sensors_accel_power(struct sensors *s, uint64_t now, bool on)
{
    sensors_account(s, now);
    if (on && !s->accel_on)
        s->accel_since = now;
    s->accel_on = on;
}

uint32_t sensors_adc(const struct sensors *s, uint64_t now, enum skerry_input input,
                     double supply_mv)
{
    if (input != SKERRY_INPUT_ACCEL_X && input != SKERRY_INPUT_ACCEL_Y)
        return analogue_adc(s, now, input, supply_mv);
    double g =
        s->value[input == SKERRY_INPUT_ACCEL_X ? SKERRY_SENSOR_ACCEL_X : SKERRY_SENSOR_ACCEL_Y];
    bool on = s->accel_on || s->analogue_on;
    uint64_t since = s->accel_on ? s->accel_since : s->analogue_since;
    if (!on || isnan(g) || now - since < 16 * (uint64_t)MS)
        return 0;
    g = fmax(-2, fmin(2, g)); /* full scale, typically */
    return (uint32_t)fmax(0, 1000.0 * (supply_mv / 2 + g * 167.0 * supply_mv / 3000.0) + 0.5);
}
