#include "query/sampling/acquire.h"

#include <stdbool.h>
#include <stddef.h>

#include "drivers/sensor.h"
#include "query/events/events.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/operators/join.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/program/query_table.h"

/* Queries whose epochs begin together are sampled together: `fresh` is what has been acquired for
 * them. A staged query asks its conditions one by one, and what a later one reads is not acquired
 * where an earlier one is false. */
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

/* Whether a condition is true of any event that the epoch belongs to. */
static bool holds(struct slot *slot, const struct program_code *code)
{
    struct eval_context context = row_context(slot);
    int32_t value;
    for (uint8_t run = 0; events_next(&context, &run);)
        if (program_compute(code, &context, &value) && value != 0)
            return true;
    return false;
}

/* Goes as far as what is fresh allows; returns the sensors that it wants next, 0: the slot is done
 * with its epoch. */
static uint32_t advance(struct slot *slot)
{
    bool joins = scan_joins(slot), staged = slot_program(slot)->flags & WIRE_QUERY_STAGED;
    for (;; slot->stage++) {
        struct program_code code;
        /* A join's conditions are asked of each row that it meets. */
        bool asks = !joins && program_condition(slot_program(slot), slot->stage, &code);
        uint32_t reads = 0;
        if (asks && staged)
            vm_check(code.bytes, code.length, &reads);
        else
            reads = slot->attributes;
        uint32_t wanted = attribute_sensors(reads) & ~fresh;
        if (wanted != 0)
            return wanted;
        if (asks && holds(slot, &code))
            continue;
        if (joins)
            scan_start(slot);
        else
            produce(slot, !asks);
        return 0;
    }
}

/* Brings all slots that are being sampled as far as they come, and acquires what they want next. */
static void step(void)
{
    uint32_t mask = 0;
    for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;)
        if (slot->state & SLOT_SAMPLING)
            mask |= advance(slot);
    under_way = mask != 0 && sensor_acquire(mask);
    if (under_way)
        fresh |= mask;
}

static bool any_sampled(void)
{
    for (const struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;)
        if (slot->state & SLOT_SAMPLING)
            return true;
    return false;
}

void acquire_start(void)
{
    if (under_way)
        return;
    if (!any_sampled()) {
        fresh = 0;
        for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
            if (slot->state & SLOT_WAITING) {
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
    acquire_start(); /* those that waited while others were sampled */
}
