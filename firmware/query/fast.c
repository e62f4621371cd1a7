#include "query/fast.h"

#include <stddef.h>

#include "drivers/sensor.h"
#include "kernel/timer.h"
#include "query/attribute.h"
#include "query/epochs.h"
#include "query/output.h"
#include "query/program.h"
#include "query/vm.h"

/* A millisecond is 4096 of so many parts of a tick: what epochs take beyond whole ticks is kept, so that nothing adds up. */
#define PARTS 125
#define PARTS_IN_MS 4096UL

static struct timer timer;

void fast_plan(struct slot *slot, struct net_time start)
{
    uint16_t period = (uint16_t)slot_program(slot)->period;
    uint32_t seconds, within;
    slot->epoch = slot->next;
    epochs_start(slot, &seconds, &within);
    slot->due = time_local(start);
    slot->part = (uint8_t)(within * PARTS_IN_MS % PARTS);
    slot->left = (uint8_t)((1000 - (uint16_t)within + period - 1) / period);
}

static void advance(struct slot *slot)
{
    uint16_t period = (uint16_t)slot_program(slot)->period;
    uint32_t parts = (uint32_t)period * (PARTS_IN_MS % PARTS) + slot->part;
    slot->due += period * (PARTS_IN_MS / PARTS);
    for (; parts >= PARTS; parts -= PARTS) /* a division takes longer for the periods that matter */
        slot->due++;
    slot->part = (uint8_t)parts;
    slot->epoch = slot->next++;
    slot->left--;
}

static bool passes(struct slot *slot)
{
    struct program_code code;
    for (uint8_t i = 0; program_condition(slot_program(slot), i, &code); i++) {
        int32_t value;
        if (!vm_run(code.bytes, code.length, attribute_read, slot, &value) || value == 0)
            return false;
    }
    return true;
}

/* Takes what is due, one epoch of each query: after a delay the rest follows at once. */
static void run(void)
{
    ticks_t reached = clock_now() + EPOCHS_EARLY_TICKS;
    uint32_t fresh = 0; /* what has been read: epochs that begin together see the same */
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = slot_at(i);
        if (slot == NULL || !(slot_fast(slot)) || slot->left == 0 || !clock_reached(reached, slot->due))
            continue;
        advance(slot);
        uint32_t lacking = attribute_sensors(slot->attributes) & ~fresh;
        if (lacking == 0 || sensor_read(lacking)) {
            fresh |= lacking;
            output_epoch(slot, passes(slot));
        }
        if (slot->left == 0)
            epochs_update_soon();
    }
    fast_start();
}

void fast_start(void)
{
    const struct slot *first = NULL;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        const struct slot *slot = slot_at(i);
        if (slot != NULL && slot_fast(slot) && slot->left > 0 && (first == NULL || clock_reached(first->due, slot->due)))
            first = slot;
    }
    if (first != NULL)
        timer_start(&timer, first->due, run);
    else
        timer_stop(&timer);
}
