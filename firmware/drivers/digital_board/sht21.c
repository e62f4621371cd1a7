#include "drivers/digital_board/sht21.h"

#include "drivers/avr/twi.h"

#define ADDRESS 0x40

bool sht21_present(void)
{
    uint8_t soft_reset = 0xFE;
    return twi_write(ADDRESS, &soft_reset, 1);
}

bool sht21_start(bool humidity)
{
    uint8_t trigger = humidity ? 0xF5 : 0xF3;
    return twi_write(ADDRESS, &trigger, 1);
}

/* Polynomial x^8 + x^5 + x^4 + 1 over both data bytes (5.7). */
static uint8_t checksum(const uint8_t *data)
{
    uint8_t crc = 0;
    for (uint8_t i = 0; i < 2; i++) {
        crc ^= data[i];
        for (uint8_t bit = 0; bit < 8; bit++)
            crc = (uint8_t)(crc & 0x80 ? crc << 1 ^ 0x31 : crc << 1);
    }
    return crc;
}

bool sht21_result(bool humidity, int32_t *value)
{
    uint8_t data[3];
    if (!twi_read(ADDRESS, data, sizeof data) || checksum(data) != data[2])
        return false;
    uint16_t raw = (uint16_t)(data[0] << 8 | data[1]) & 0xFFFC; /* low two bits are status (5.4) */
    /* 6.1, 6.2: RH = -6 + 125 S / 2^16, T = -46.85 + 175.72 S / 2^16; rounded to 0.01. */
    uint16_t span = humidity ? 12500 : 17572, zero = humidity ? 600 : 4685;
    *value = (int32_t)(((uint32_t)raw * span + 32768U) >> 16) - zero;
    /* It is specified from -40 to 125 degC. */
    return humidity || (*value >= -4000 && *value <= 12500);
}
