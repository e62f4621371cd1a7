/* Rows in flash: a page for each block, under the pages of the settings. A page is erased before
 * its first place is written again, so that the rows that it held are lost; a ring has at least one
 * page more than its rows need. */
#include "drivers/rowstore.h"

#include <string.h>

#include "drivers/cc2538/flash.h"
#include "drivers/cc2538/registers.h"
#include "wire.h"

/* As many as on the IRIS, so that what fits one mote fits all. */
#define BLOCKS 63
#define ROWS_BASE (FLASH_BASE + 0x7E800U - (uint32_t)BLOCKS * FLASH_PAGE)

static uint8_t words(const struct rowstore_ring *ring) { return (uint8_t)((ring->size + 3) / 4); }
static uint16_t rows_of_page(const struct rowstore_ring *ring)
{
    return (uint16_t)(FLASH_PAGE / (4U * words(ring)));
}

static uint32_t page_of(const struct rowstore_ring *ring, uint16_t place)
{
    return ROWS_BASE + (uint32_t)(ring->block + place / rows_of_page(ring)) * FLASH_PAGE;
}

static uint32_t address_of(const struct rowstore_ring *ring, uint16_t place)
{
    return page_of(ring, place) + place % rows_of_page(ring) * 4U * words(ring);
}

uint8_t rowstore_blocks(void) { return BLOCKS; }
uint16_t rowstore_rows(const struct rowstore_ring *ring)
{
    return (uint16_t)(ring->blocks * rows_of_page(ring));
}

void rowstore_read(const struct rowstore_ring *ring, uint16_t place, void *bytes)
{
    uint32_t from = address_of(ring, place);
    uint8_t left = ring->size;
    for (uint8_t *to = bytes; left > 0; from += 4) {
        uint32_t word = REGISTER(from);
        uint8_t part = left < 4 ? left : 4;
        memcpy(to, &word, part);
        to += part;
        left = (uint8_t)(left - part);
    }
}

static bool erased(const struct rowstore_ring *ring, uint16_t place)
{
    for (uint8_t i = 0; i < words(ring); i++)
        if (REGISTER(address_of(ring, place) + 4U * i) != 0xFFFFFFFFUL)
            return false;
    return true;
}

/* Erases a place in the midst of its page, and keeps those before it. */
static void clear(const struct rowstore_ring *ring, uint16_t place)
{
    static uint32_t kept[FLASH_PAGE / 4];
    uint32_t page = page_of(ring, place), count = (address_of(ring, place) - page) / 4;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = REGISTER(page + 4 * i);
    flash_erase(page);
    for (uint32_t i = 0; i < count; i++)
        if (kept[i] != 0xFFFFFFFFUL)
            flash_write(page + 4 * i, kept[i]);
}

bool rowstore_write(const struct rowstore_ring *ring, uint16_t place, const void *bytes)
{
    if (place % rows_of_page(ring) == 0)
        flash_erase(page_of(ring, place));
    else if (!erased(ring, place)) /* a loss of power has cut a row short */
        clear(ring, place);
    const uint8_t *from = bytes;
    for (uint8_t i = 0; i < words(ring); i++) {
        uint32_t word = 0xFFFFFFFFUL;
        uint8_t left = (uint8_t)(ring->size - 4 * i);
        memcpy(&word, from + 4 * i, left < 4 ? left : 4);
        flash_write(address_of(ring, place) + 4U * i, word);
    }
    return true;
}
