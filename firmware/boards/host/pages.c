/* Pages in an array, which outlives the mote's restarts as long as the process runs. */
#include "drivers/pages.h"

#include <string.h>

#define PAGES 144

static uint32_t pages[PAGES][PAGES_WORDS];

uint8_t pages_count(void) { return PAGES; }
const volatile uint32_t *pages_words(uint8_t page) { return pages[page]; }
void pages_erase(uint8_t page) { memset(pages[page], 0xFF, sizeof pages[page]); }
void pages_write(uint8_t page, uint16_t word, uint32_t value) { pages[page][word] &= value; }
