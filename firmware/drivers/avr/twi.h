/* The two-wire bus at 400 kHz: short transfers, done at once. */
#ifndef SKERRY_AVR_TWI_H
#define SKERRY_AVR_TWI_H

#include <stdbool.h>
#include <stdint.h>

void twi_init(void);
/* Each is a whole transfer, 25 us a byte; false when the device does not acknowledge. */
bool twi_write(uint8_t address, const uint8_t *data, uint8_t length);
bool twi_read(uint8_t address, uint8_t *data, uint8_t length);

#endif
