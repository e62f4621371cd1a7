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

static struct timer timer;
static uint8_t planned; /* bit n: slot n has epochs that are planned */

static bool passes(struct slot *slot)
{
    struct eval_context context = row_context(slot);
    return program_passes(slot_program(slot), &context);
}

/* Whether its conditions are the same in all epochs of a second: they read no sensor, nor what the
 * mote counts. */
static bool steady(const struct slot *slot)
{
    struct program_code code;
    uint32_t reads = 0;
    for (uint8_t i = 0; program_condition(slot_program(slot), i, &code); i++)
        vm_check(code.bytes, code.length, &reads);
    return (reads & ~STEADY) == 0;
}

bool fast_plan(struct slot *slot, const struct net_time *start)
{
    uint16_t period = (uint16_t)slot_program(slot)->period;
    uint32_t seconds, within;
    slot->epoch = slot->next;
    slot->received = SLOT_FAST;
    if (steady(slot)) {
        if (!passes(slot))
            return false;
        slot->received = SLOT_FAST | SLOT_CHOSEN;
    }
    slot_epoch_start(slot, slot->epoch, &seconds, &within);
    slot->due = time_local(*start);
    slot->part = (uint8_t)(within * PARTS_IN_MS % PARTS);
    slot->left = (uint8_t)((1000 - (uint16_t)within + period - 1) / period);
    planned |= slot_bit(slot);
    return true;
}

static void advance(struct slot *slot)
{
    uint16_t period = (uint16_t)slot_program(slot)->period;
    /* In whole ticks too many, and 16 bits of parts to give back; a division takes longer for the
     * periods that matter. */
    int16_t parts = (int16_t)(slot->part - (int16_t)period * PARTS_TO_TICK);
    uint16_t ticks = (uint16_t)(period * TICKS_IN_MS);
    for (; parts < 0; parts += PARTS)
        ticks--;
    slot->due += ticks;
    slot->part = (uint8_t)parts;
    slot->epoch = slot->next++;
    slot->left--;
}

/* A slot with epochs to come; NULL: it has none, or is gone. */
static struct slot *planned_at(uint8_t index)
{
    struct slot *slot = slot_at(index);
    if (slot != NULL && slot_fast(slot) && slot->left > 0)
        return slot;
    planned &= (uint8_t)~(1U << index);
    return NULL;
}

/* Takes what is due, one epoch of each query: after a delay the rest follows at once. */
static void run(void)
{
    ticks_t reached = clock_now() + EPOCHS_EARLY_TICKS;
    uint32_t fresh = 0; /* what has been read: epochs that begin together see the same */
    for (uint8_t i = 0, bits = planned; bits != 0; i++, bits >>= 1) {
        struct slot *slot = bits & 1 ? planned_at(i) : NULL;
        if (slot == NULL || !clock_reached(reached, slot->due))
            continue;
        advance(slot);
        uint32_t lacking = attribute_sensors(slot->attributes) & ~fresh;
        if (lacking == 0 || sensor_read(lacking)) {
            fresh |= lacking;
            output_epoch(slot, slot->received & SLOT_CHOSEN || passes(slot));
        }
        if (slot->left == 0)
            event_post(&queries_changed);
    }
    fast_start();
}

void fast_start(void)
{
    const struct slot *first = NULL;
    for (uint8_t i = 0, bits = planned; bits != 0; i++, bits >>= 1) {
        const struct slot *slot = bits & 1 ? planned_at(i) : NULL;
        if (slot != NULL && (first == NULL || clock_reached(first->due, slot->due)))
            first = slot;
    }
    if (first != NULL)
        timer_start(&timer, first->due, run);
    else
        timer_stop(&timer);
}
