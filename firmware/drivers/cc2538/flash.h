/* The CC2538's flash as two pages that the image does not use (SWRU319C, chapter 8). */
#ifndef SKERRY_CC2538_FLASH_H
#define SKERRY_CC2538_FLASH_H

#include <stdint.h>

/* Each stalls the CPU with interrupts off: 20 ms and 20 us (data sheet SWRS096D). `address` is the
 * page's, the word's, on the bus. */
void flash_erase(uint32_t address);
/* Bits can only go from 1 to 0. */
void flash_write(uint32_t address, uint32_t word);

#endif
