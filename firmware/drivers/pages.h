/* Pages of flash that keep rows without power: erased whole, written word by word, each word once
 * between two erasures. storage/log.c is their only user. */
#ifndef SKERRY_DRIVERS_PAGES_H
#define SKERRY_DRIVERS_PAGES_H

#include <stdint.h>

/* Words of a page. */
#define PAGES_WORDS 512U
/* What an erased word holds. */
#define PAGES_ERASED UINT32_MAX

/* Pages that the board has. */
uint8_t pages_count(void);
/* The words of a page, as they are now. */
const volatile uint32_t *pages_words(uint8_t page);
/* Stalls the mote for 20 ms. */
void pages_erase(uint8_t page);
/* Stalls the mote for 20 us. The word is erased. */
void pages_write(uint8_t page, uint16_t word, uint32_t value);

#endif
