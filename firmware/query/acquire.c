#include "query/acquire.h"

#include <stdbool.h>
#include <stddef.h>

#include "drivers/sensor.h"
#include "query/attribute.h"
#include "query/events.h"
#include "query/output.h"
#include "query/scan.h"
#include "query/slots.h"
#include "query/vm.h"

/* Queries whose epochs begin together are sampled together: `fresh` is what has been acquired for them. A staged query asks its
 * conditions one by one, and what a later one reads is not acquired where an earlier one is false. */
static bool under_way;
static uint32_t fresh;

void acquire_init(void)
{
    under_way = false;
    fresh = 0;
}

static void produce(struct slot *slot, bool passes)
{
    slot->state &= (uint8_t)~SLOT_SAMPLING;
    output_epoch(slot, passes);
}

/* Sensors that a piece of code reads and that have not been acquired. */
static uint32_t lacking(uint32_t attributes) { return attribute_sensors(attributes) & ~fresh; }

/* Whether a condition is true of any event that the epoch belongs to. */
static bool holds(struct slot *slot, const struct program_code *code)
{
    int32_t value;
    for (uint8_t run = 0; events_take(slot, &run);)
        if (vm_run(code->bytes, code->length, attribute_read, slot, &value) && value != 0)
            return true;
    return false;
}

/* Goes as far as what is fresh allows; returns the sensors that it wants next, 0: the slot is done with its epoch. */
static uint32_t advance(struct slot *slot)
{
    bool staged = slot_program(slot)->flags & WIRE_QUERY_STAGED;
    struct program_code code;
    if (scan_joins(slot)) {
        /* Its conditions are asked of each row that it meets. */
        uint32_t all = lacking(slot->attributes);
        if (all == 0)
            scan_start(slot);
        return all;
    }
    for (; program_condition(slot_program(slot), slot->stage, &code); slot->stage++) {
        uint32_t reads = 0;
        vm_check(code.bytes, code.length, &reads);
        uint32_t wanted = lacking(staged ? reads : slot->attributes);
        if (wanted != 0)
            return wanted;
        if (!holds(slot, &code)) {
            produce(slot, false);
            return 0;
        }
    }
    uint32_t wanted = lacking(slot->attributes);
    if (wanted == 0)
        produce(slot, true);
    return wanted;
}

/* Brings all slots that are being sampled as far as they come, and acquires what they want next. */
static void step(void)
{
    uint32_t mask = 0;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = slot_at(i);
        if (slot != NULL && slot->state & SLOT_SAMPLING)
            mask |= advance(slot);
    }
    under_way = mask != 0 && sensor_acquire(mask);
    if (under_way)
        fresh |= mask;
}

static bool any_in(uint8_t state)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (slot_at(i) != NULL && slot_at(i)->state & state)
            return true;
    return false;
}

void acquire_start(void)
{
    if (under_way)
        return;
    if (!any_in(SLOT_SAMPLING)) {
        fresh = 0;
        for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
            struct slot *slot = slot_at(i);
            if (slot != NULL && slot->state & SLOT_WAITING) {
                slot->state ^= SLOT_WAITING | SLOT_SAMPLING;
                slot->stage = 0;
                if (scan_joins(slot))
                    scan_begin(slot);
            }
        }
    }
    /* Where somebody else's acquisition is under way, its sensor_done calls again. */
    step();
}

void sensor_done(void)
{
    under_way = false;
    acquire_start();
    if (!under_way && any_in(SLOT_WAITING))
        acquire_start();
}
