/* The EEPROM is one: rows are written to it in the background, byte by byte (3.4 ms each, data
 * sheet 2549Q table 27-2), settings at once. */
#ifndef SKERRY_AVR_EEPROM_H
#define SKERRY_AVR_EEPROM_H

#include <stdint.h>

/* Bytes at the start of the EEPROM that are settings'. */
#define EEPROM_SETTINGS 64

/* Both wait for a byte being written. Bytes that change are written before the return. */
void eeprom_read(uint16_t address, void *bytes, uint8_t length);
void eeprom_update(uint16_t address, const void *bytes, uint8_t length);

#endif
