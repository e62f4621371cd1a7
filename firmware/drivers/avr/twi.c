#include "drivers/avr/twi.h"

#include <avr/io.h>
#include <util/twi.h>

/* Steps of the status poll before a stuck bus is given up: over 1 ms. */
#define PATIENCE 2000

void twi_init(void)
{
    TWBR = F_CPU / 400000 / 2 - 8; /* 2549Q p. 249 */
    TWSR = 0;
}

static uint8_t step(uint8_t control)
{
    TWCR = control | _BV(TWINT) | _BV(TWEN);
    for (uint16_t i = 0; i < PATIENCE; i++)
        if (TWCR & _BV(TWINT))
            return TWSR & 0xF8;
    return TW_BUS_ERROR;
}

static bool begin(uint8_t address_and_direction)
{
    if (step(_BV(TWSTA)) != TW_START)
        return false;
    TWDR = address_and_direction;
    uint8_t answer = step(0);
    return answer == TW_MT_SLA_ACK || answer == TW_MR_SLA_ACK;
}

static void end(void) { TWCR = _BV(TWINT) | _BV(TWEN) | _BV(TWSTO); }

bool twi_write(uint8_t address, const uint8_t *data, uint8_t length)
{
    bool ok = begin((uint8_t)(address << 1) | TW_WRITE);
    while (ok && length--) {
        TWDR = *data++;
        ok = step(0) == TW_MT_DATA_ACK;
    }
    end();
    return ok;
}

bool twi_read(uint8_t address, uint8_t *data, uint8_t length)
{
    bool ok = begin((uint8_t)(address << 1) | TW_READ);
    while (ok && length--) {
        uint8_t answer = step(length ? _BV(TWEA) : 0);
        ok = answer == (length ? TW_MR_DATA_ACK : TW_MR_DATA_NACK);
        *data++ = TWDR;
    }
    end();
    return ok;
}
