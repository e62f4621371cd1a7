/* Pages of flash between the image and the settings: `rows` in boards/cc2538/cc2538.ld. */
#include "drivers/pages.h"

#include "drivers/cc2538/flash.h"
#include "drivers/cc2538/registers.h"

#define PAGES 144
#define BASE (FLASH_BASE + 0x7E800U - (uint32_t)PAGES * FLASH_PAGE)

_Static_assert(PAGES_WORDS * 4 == FLASH_PAGE, "words of a page");

static uint32_t address_of(uint8_t page) { return BASE + (uint32_t)page * FLASH_PAGE; }

uint8_t pages_count(void) { return PAGES; }

const volatile uint32_t *pages_words(uint8_t page)
{
    return (const volatile uint32_t *)(uintptr_t)address_of(page);
}

void pages_erase(uint8_t page) { flash_erase(address_of(page)); }

void pages_write(uint8_t page, uint16_t word, uint32_t value)
{
    flash_write(address_of(page) + 4U * word, value);
}
