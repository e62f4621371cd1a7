#include "query/sampling/fast.h"

#include <stddef.h>

#include "drivers/sensor.h"
#include "kernel/timer.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/program/program.h"
#include "query/query_conf.h"

/* A millisecond is 4096 of so many parts of a tick: what epochs take beyond whole ticks is kept, so
 * that nothing adds up. */
#define PARTS 125
#define PARTS_IN_MS 4096UL
#define TICKS_IN_MS (PARTS_IN_MS / PARTS + 1) /* begun */
#define PARTS_TO_TICK ((int16_t)(TICKS_IN_MS * PARTS - PARTS_IN_MS))
_Static_assert((WIRE_PERIOD_MINIMUM_MS - 1) * (TICKS_IN_MS * PARTS - PARTS_IN_MS) <= INT16_MAX,
               "parts of the longest fast period");

/* What never changes in a second of all that has a bit in a program's attributes. */
#define STEADY                                                                                     \
    ((uint32_t)1 << WIRE_ATTRIBUTE_NODEID | (uint32_t)1 << WIRE_ATTRIBUTE_XPOS |                   \
     (uint32_t)1 << WIRE_ATTRIBUTE_YPOS)

static struct {
    struct timer timer; /* the next epoch of any */
    uint8_t planned;    /* bit n: entry n has epochs that are planned */
} fast;

static bool passes(struct query_entry *entry)
{
    struct eval_context context = row_context(entry);
    return program_passes(entry_program(entry), &context);
}

/* Whether its conditions are the same in all epochs of a second: they read no sensor, nor what the
 * mote counts. */
static bool steady(const struct query_entry *entry)
{
    struct program_code code;
    uint32_t reads = 0;
    for (uint8_t i = 0; program_condition(entry_program(entry), i, &code); i++)
        vm_check(code.bytes, code.length, &reads);
    return (reads & ~STEADY) == 0;
}

bool fast_plan(struct query_entry *entry, const struct net_time *start)
{
    uint16_t period = (uint16_t)entry_program(entry)->period;
    uint32_t seconds, within;
    entry->epoch = entry->next;
    /* It runs on the first event that lets it. */
    entry->state &= (uint8_t)~(ENTRY_CHOSEN | ENTRY_EACH);
    if (steady(entry)) {
        if (!passes(entry))
            return false;
        entry->state |= ENTRY_CHOSEN;
    }
    entry_epoch_start(entry, entry->epoch, &seconds, &within);
    entry->due = time_local(*start);
    entry->part = (uint8_t)(within * PARTS_IN_MS % PARTS);
    entry->left = (uint8_t)((1000 - (uint16_t)within + period - 1) / period);
    fast.planned |= entry_bit(entry);
    return true;
}

static void advance(struct query_entry *entry)
{
    uint16_t period = (uint16_t)entry_program(entry)->period;
    /* In whole ticks too many, and 16 bits of parts to give back; a division takes longer for the
     * periods that matter. */
    int16_t parts = (int16_t)(entry->part - (int16_t)period * PARTS_TO_TICK);
    uint16_t ticks = (uint16_t)(period * TICKS_IN_MS);
    for (; parts < 0; parts += PARTS)
        ticks--;
    entry->due += ticks;
    entry->part = (uint8_t)parts;
    entry->epoch = entry->next++;
    entry->left--;
}

/* An entry with epochs to come; NULL: it has none, or is gone. */
static struct query_entry *planned_at(uint8_t index)
{
    struct query_entry *entry = entry_at(index);
    if (entry != NULL && entry_fast(entry) && entry->left > 0)
        return entry;
    fast.planned &= (uint8_t)~(1U << index);
    return NULL;
}

/* Takes what is due, one epoch of each query: after a delay the rest follows at once. */
static void run(void)
{
    ticks_t reached = clock_now() + EPOCHS_EARLY_TICKS;
    uint32_t fresh = 0; /* what has been read: epochs that begin together see the same */
    for (uint8_t i = 0, bits = fast.planned; bits != 0; i++, bits >>= 1) {
        struct query_entry *entry = bits & 1 ? planned_at(i) : NULL;
        if (entry == NULL || !clock_reached(reached, entry->due))
            continue;
        advance(entry);
        uint32_t lacking = attribute_sensors(entry->attributes) & ~fresh;
        if (lacking == 0 || sensor_read(lacking)) {
            fresh |= lacking;
            output_epoch(entry, entry->state & ENTRY_CHOSEN || passes(entry));
        }
        if (entry->left == 0)
            event_post(&queries_changed);
    }
    fast_start();
}

void fast_start(void)
{
    const struct query_entry *first = NULL;
    for (uint8_t i = 0, bits = fast.planned; bits != 0; i++, bits >>= 1) {
        const struct query_entry *entry = bits & 1 ? planned_at(i) : NULL;
        if (entry != NULL && (first == NULL || clock_reached(first->due, entry->due)))
            first = entry;
    }
    if (first != NULL)
        timer_start(&fast.timer, first->due, run);
    else
        timer_stop(&fast.timer);
}
