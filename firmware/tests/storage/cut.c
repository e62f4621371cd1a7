/* Flash in memory, from which power goes at a step that a test draws: a word that is being written
 * then has some of its zeros, a page that is being erased some of its ones. */
#include "cut.h"

#include <setjmp.h>
#include <string.h>

#include "drivers/pages.h"
#include "drivers/rowstore.h"
#include "storage/log.h"
#include "storage/tidy.h"
#include "storage/tuples.h"

#define PAGES_MAXIMUM 255

static uint32_t memory[PAGES_MAXIMUM][PAGES_WORDS];
static uint8_t count;
static jmp_buf power;
/* Words written and pages erased until power goes; below 0: never. */
static long steps = -1;
static uint32_t noise = 1;

uint32_t cut_erasures[PAGES_MAXIMUM], cut_faults, cut_steps;

static uint32_t draw(void)
{
    noise ^= noise << 13;
    noise ^= noise >> 17;
    return noise ^= noise << 5;
}

static bool power_goes(void)
{
    cut_steps++;
    if (steps < 0 || steps-- > 0)
        return false;
    steps = -1;
    return true;
}

void cut_begin(uint8_t pages, uint32_t seed)
{
    count = pages;
    noise = seed * 2 + 1;
    steps = -1;
    cut_faults = 0;
    memset(cut_erasures, 0, sizeof cut_erasures);
    /* As the image's tool leaves it, or as an earlier image did. */
    for (uint32_t page = 0; page < pages; page++)
        for (uint32_t word = 0; word < PAGES_WORDS; word++)
            memory[page][word] = seed % 2 ? draw() : PAGES_ERASED;
}

void cut_save(void *bytes) { memcpy(bytes, memory, sizeof memory[0] * count); }
void cut_restore(const void *bytes) { memcpy(memory, bytes, sizeof memory[0] * count); }

uint8_t pages_count(void) { return count; }
const volatile uint32_t *pages_words(uint8_t page) { return memory[page]; }

void pages_write(uint8_t page, uint16_t word, uint32_t value)
{
    uint32_t *at = &memory[page][word];
    if (*at != PAGES_ERASED)
        cut_faults++;
    if (power_goes()) {
        /* From hardly a bit to all but one. */
        uint32_t missing = draw() & draw();
        if (draw() % 2)
            missing = ~missing;
        *at &= value | missing;
        longjmp(power, 1);
    }
    *at &= value;
}

void pages_erase(uint8_t page)
{
    cut_erasures[page]++;
    if (power_goes()) {
        uint32_t how = draw() % 4, over = draw() % PAGES_WORDS;
        for (uint32_t word = 0; word < PAGES_WORDS; word++) {
            if (how == 0 ? word < over : how == 1 ? word >= over : how == 2)
                memory[page][word] |= draw() | draw() | draw();
            else if (how < 2)
                memory[page][word] = PAGES_ERASED;
            else
                memory[page][word] |= draw() & draw();
        }
        longjmp(power, 1);
    }
    memset(memory[page], 0xFF, sizeof memory[page]);
}

void tidy_later(void) {}

/* What is called; -1 where power went meanwhile. `after`: so many steps, below 0: never. */
#define CUT(call)                                                                                  \
    steps = after;                                                                                 \
    if (setjmp(power))                                                                             \
        return -1;                                                                                 \
    int result = (call);                                                                           \
    steps = -1;                                                                                    \
    return result

int cut_open(long after) { CUT((log_open(), 0)); }
int cut_tidy(long after) { CUT((log_tidy(), 0)); }
int cut_append(uint16_t index, const struct tuple *tuple, long after)
{
    CUT((int)tuples_append(index, tuple));
}
int cut_give(uint16_t index, const struct tuple_name *name, long after)
{
    CUT((tuples_give(index, name), 0));
}
int cut_drop(uint16_t index, long after) { CUT(tuples_drop(index)); }
int cut_row(const struct rowstore_ring *ring, uint16_t place, const void *bytes, long after)
{
    CUT(rowstore_write(ring, place, bytes));
}

/* Appends tuples 0, 1, … of mote 1 until there are `until`, erasing when there is need, and counts
 * what the records take. */
bool cut_fill(uint16_t index, uint32_t from, uint32_t until)
{
    struct tuple tuple = {.name = {.mote = 1}, .attributes = 4};
    for (tuple.name.sequence = from; tuple.name.sequence < until; tuple.name.sequence++) {
        tuple.values[0] = (int32_t)tuple.name.sequence % 20000;
        while (log_untidy())
            log_tidy();
        if (tuples_append(index, &tuple) != TUPLES_STORED)
            return false;
    }
    return true;
}

uint32_t cut_bytes(void)
{
    struct log_place place;
    struct log_record record;
    uint32_t bytes = 0;
    for (log_first(&place); log_next(&place, &record);)
        bytes += 4U * (record.count + 1U);
    return bytes;
}
