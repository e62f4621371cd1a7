/* A mote that stores tuples and rows of a storage point without end, and tells at each start what
 * it has found: for hil_tests/storing.py. Takes the place of main.c in the image; where PAGES is
 * given, it has so many of its own, in place of drivers/cc2538/pages.c. */
#include <string.h>

#include "board.h"
#include "drivers/cc2538/flash.h"
#include "drivers/cc2538/registers.h"
#include "drivers/pages.h"
#include "drivers/rowstore.h"
#include "storage/log.h"
#include "storage/tuples.h"

#define INDEX 5
/* A row in so many: its number stands in it five times. */
#define ROW_EVERY 3
#define ROW_WORDS 5
static const struct rowstore_ring ring = {2, 4, 4 * ROW_WORDS};

#ifdef PAGES
#define BASE (FLASH_BASE + 0x60000U)
uint8_t pages_count(void) { return PAGES; }
const volatile uint32_t *pages_words(uint8_t page)
{
    return (const volatile uint32_t *)(uintptr_t)(BASE + page * FLASH_PAGE);
}
void pages_erase(uint8_t page) { flash_erase(BASE + page * FLASH_PAGE); }
void pages_write(uint8_t page, uint16_t word, uint32_t value)
{
    flash_write(BASE + page * FLASH_PAGE + 4U * word, value);
}
#endif

static void put(char c)
{
    while (UART0_FR & FR_TXFF) {}
    UART0_DR = (uint8_t)c;
}

/* A letter and a number, and a ; when all of it is out: what is cut short has none. */
static void say(char what, uint32_t number)
{
    char digits[10];
    uint8_t count = 0;
    put(what);
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        put(digits[--count]);
    put(';');
}

static struct tuple tuple_of(uint32_t sequence)
{
    struct tuple tuple = {.name = {.mote = 7, .session = 9, .sequence = sequence},
                          .batch = (uint16_t)(sequence % (TUPLES_BATCHES + 1)),
                          .attributes = 3,
                          .nulls = sequence % 4 == 0,
                          .values = {(int32_t)(sequence % 1000), -1, (int32_t)(sequence * 77777U)}};
    if (tuple.nulls)
        tuple.values[0] = 0;
    return tuple;
}

/* Where so many rows were written, whether the newest of each place is there. */
static bool rows_are_there(uint32_t rows)
{
    uint32_t places = rowstore_rows(&ring), row[ROW_WORDS];
    for (uint32_t number = rows > places ? rows - places : 0; number < rows; number++) {
        rowstore_read(&ring, (uint16_t)(number % places), row);
        for (uint8_t i = 0; i < ROW_WORDS; i++)
            if (row[i] != number)
                return false;
    }
    return true;
}

static bool write_row(uint32_t number)
{
    uint32_t row[ROW_WORDS];
    for (uint8_t i = 0; i < ROW_WORDS; i++)
        row[i] = number;
    return rowstore_write(&ring, (uint16_t)(number % rowstore_rows(&ring)), row);
}

/* The newest row's number and 1; 0: there is none. */
static uint32_t count_rows(void)
{
    uint32_t rows = 0, row[ROW_WORDS];
    for (uint16_t place = 0; place < rowstore_rows(&ring); place++) {
        rowstore_read(&ring, place, row);
        if (row[0] != UINT32_MAX && row[0] >= rows)
            rows = row[0] + 1;
    }
    return rows;
}

int main(void)
{
    struct tuples_box box = {.attributes = 3, .nulls = 7};
    struct tuples_scan scan;
    struct tuple tuple, expected;
    enum tuples_met met;
    uint32_t first = 0, next = 0, wrong = 0;
    board_init();
    UART0_IBRD = 1;
    UART0_CTL = CTL_ENABLE;
    log_open();
    for (uint8_t i = 0; i < 3; i++) {
        box.low[i] = INT32_MIN;
        box.high[i] = INT32_MAX;
    }
    tuples_scan_begin(&scan, INDEX, &box);
    while ((met = tuples_scan_next(&scan, &tuple)) != TUPLES_END) {
        if (met != TUPLES_MET)
            continue;
        if (next == 0)
            first = next = tuple.name.sequence;
        expected = tuple_of(next++);
        wrong += memcmp(&expected, &tuple, sizeof tuple) != 0;
    }
    struct tuples_statistics flash;
    tuples_statistics(&flash);
    uint32_t rows = count_rows();
    wrong += !rows_are_there(rows);
    put('\n');
    say('f', first);
    say('n', next);
    say('r', rows);
    say('m', flash.erased_most);
    say('s', flash.erased_sum);
    say('w', wrong);
    for (;; next++) {
        while (log_untidy())
            log_tidy();
        tuple = tuple_of(next);
        if (tuples_append(INDEX, &tuple) != TUPLES_STORED)
            break;
        say('T', next);
        if (next % ROW_EVERY != 0)
            continue;
        if (!write_row(rows))
            break;
        rows++;
        say('R', rows);
    }
    say('E', next);
    for (;;) {}
}
