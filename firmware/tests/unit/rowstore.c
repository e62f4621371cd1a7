/* The CC2538's rows in flash: power goes at every step of writing one. sources:
 * drivers/cc2538/rowstore.c */
#define _GNU_SOURCE
#include "flash_memory.h"

#include "drivers/rowstore.h"
#include "wire.h"

#define PAGES (FLASH_BASE + 0x40000UL)
#define LENGTH 0x40000UL
#define SIZE 22
#define ROWS_OF_PAGE (FLASH_PAGE / 24)

static const struct rowstore_ring ring = {3, 2, SIZE};

static void blank(void) { blank_at(PAGES, LENGTH); }

static void put(uint16_t place)
{
    uint8_t row[SIZE];
    memset(row, place + 1, sizeof row);
    CHECK(rowstore_write(&ring, place, row));
}

static bool kept(uint16_t place)
{
    uint8_t row[SIZE], expected[SIZE];
    rowstore_read(&ring, place, row);
    memset(expected, place + 1, sizeof expected);
    return memcmp(row, expected, sizeof row) == 0;
}

static void a_page_takes_the_rows_that_fit_it(void)
{
    blank();
    CHECK_EQUAL(rowstore_rows(&ring), 2 * ROWS_OF_PAGE);
    for (uint16_t place = 0; place < 2 * ROWS_OF_PAGE; place++)
        put(place);
    for (uint16_t place = 0; place < 2 * ROWS_OF_PAGE; place++)
        CHECK(kept(place));
}

static void a_row_cut_short_takes_none_before_it_along(void)
{
    blank();
    for (volatile long steps = 1; steps < 6; steps++) {
        for (volatile uint16_t place = 0; place < 2 * ROWS_OF_PAGE; place++) {
            steps_left = steps;
            if (!setjmp(power))
                put(place);
            steps_left = -1;
            put(place);
            for (uint16_t before = 0; before <= place; before++)
                CHECK(kept(before));
        }
    }
}

static const struct test tests[] = {TEST(a_page_takes_the_rows_that_fit_it),
                                    TEST(a_row_cut_short_takes_none_before_it_along)};
UNIT_MAIN(tests)
