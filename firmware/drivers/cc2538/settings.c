/* Settings in two pages of flash, a record after the other; when a page is full the other is erased
 * and begun. A page stands 20,000 erasures of 39 records each (data sheet SWRS096D). A record whose
 * writing was cut short lacks its first word, which is written last, and is passed over. */
#include "drivers/settings.h"

#include <stdbool.h>
#include <string.h>

#include "drivers/cc2538/flash.h"
#include "drivers/cc2538/registers.h"
#include "drivers/settings_start.h"

#define PAGE_A (FLASH_BASE + 0x7F000U) /* the flashing tool writes the first record here */
#define PAGE_B (FLASH_BASE + 0x7E800U)
#define WORDS ((uint32_t)((sizeof(struct wire_settings) + 3) / 4))
#define SLOTS (FLASH_PAGE / (4 * WORDS))
#define ERASED 0xFFFFFFFFUL

static struct wire_settings current;
static uint32_t page = PAGE_A; /* that holds the newest record */
static uint32_t next_slot;     /* first free one in it */

static uint32_t word_at(uint32_t base, uint32_t slot, uint32_t word)
{
    return REGISTER(base + 4 * (slot * WORDS + word));
}

static bool slot_free(uint32_t base, uint32_t slot)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (word_at(base, slot, i) != ERASED)
            return false;
    return true;
}

static bool slot_read(uint32_t base, uint32_t slot, struct wire_settings *out)
{
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = word_at(base, slot, i);
    memcpy(out, words, sizeof *out);
    return out->magic == WIRE_SETTINGS_MAGIC;
}

/* Newest record of a page, the slot after the last one used; false when it has none. */
static bool page_read(uint32_t base, struct wire_settings *newest, uint32_t *free_slot)
{
    bool found = false;
    *free_slot = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct wire_settings record;
        if (slot_free(base, slot))
            continue;
        *free_slot = slot + 1;
        if (slot_read(base, slot, &record)) {
            *newest = record;
            found = true;
        }
    }
    return found;
}

static void keep(void)
{
    uint32_t words[WORDS] = {0}, full = 0;
    if (next_slot >= SLOTS) {
        full = page;
        page = page == PAGE_A ? PAGE_B : PAGE_A;
        flash_erase(page);
        next_slot = 0;
    }
    memcpy(words, &current, sizeof current);
    for (uint32_t i = WORDS; i-- > 0;)
        flash_write(page + 4 * (next_slot * WORDS + i), words[i]);
    next_slot++;
    /* Only now: a loss of power before leaves the old record. */
    if (full)
        flash_erase(full);
}

const struct wire_settings *settings_load(void)
{
    struct wire_settings a, b;
    uint32_t free_a, free_b;
    bool in_a = page_read(PAGE_A, &a, &free_a), in_b = page_read(PAGE_B, &b, &free_b);
    /* Both: power was lost before the full page was erased; the other is the shorter one. */
    bool use_b = in_b && (!in_a || free_b < free_a);
    page = use_b ? PAGE_B : PAGE_A;
    next_slot = use_b ? free_b : free_a;
    if (in_a || in_b)
        current = use_b ? b : a;
    else
        current = settings_defaults();
    /* Not later: full pages both would be told apart no more. */
    if (in_a && in_b)
        flash_erase(use_b ? PAGE_A : PAGE_B);
    settings_start(&current);
    keep();
    return &current;
}

const struct wire_settings *settings(void) { return &current; }

void settings_keep(const struct wire_settings *changed)
{
    /* What is the same wears no flash: a query may set a room with each row. */
    if (memcmp(&current, changed, sizeof current) == 0)
        return;
    current = *changed;
    keep();
}

void settings_renew(uint16_t other)
{
    settings_pass(&current, other);
    keep();
}
