#include "query/sampling/acquire.h"

#include <stdbool.h>
#include <stddef.h>

#include "drivers/sensor.h"
#include "query/events/events.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/operators/gather.h"
#include "query/operators/join.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/program/query_table.h"

/* Queries whose epochs begin together are sampled together. A staged query asks its conditions one
 * by one, and what a later one reads is not acquired where an earlier one is false. */
static struct {
    bool under_way; /* an acquisition that this module began */
    uint32_t fresh; /* bit n: attribute n has been acquired for the epochs that are sampled now */
} acquisition;

void acquire_init(void)
{
    acquisition.under_way = false;
    acquisition.fresh = 0;
}

static void produce(struct query_entry *entry, bool passes)
{
    entry->progress = EPOCH_DONE;
    output_epoch(entry, passes);
}

/* Whether a condition is true of any event that the epoch belongs to. */
static bool holds(struct query_entry *entry, const struct program_code *code)
{
    struct eval_context context = row_context(entry);
    int32_t value;
    for (uint8_t run = 0; events_next(&context, &run);)
        if (program_compute(code, &context, &value) && value != 0)
            return true;
    return false;
}

/* Goes as far as what is fresh allows; returns the sensors that it wants next, 0: the entry is done
 * with its epoch. */
static uint32_t advance(struct query_entry *entry)
{
    bool gather = gathers(entry), joins = gather || joins_rows(entry),
         staged = entry_program(entry)->flags & WIRE_QUERY_STAGED;
    for (;; entry->stage++) {
        struct program_code code;
        /* A join's conditions are asked of each row that it meets. */
        bool asks = !joins && program_condition(entry_program(entry), entry->stage, &code);
        uint32_t reads = 0;
        if (asks && staged)
            vm_check(code.bytes, code.length, &reads);
        else
            reads = entry->attributes;
        uint32_t wanted = attribute_sensors(reads) & ~acquisition.fresh;
        if (wanted != 0)
            return wanted;
        if (asks && holds(entry, &code))
            continue;
        if (gather)
            gather_start(entry);
        else if (joins)
            join_start(entry);
        else
            produce(entry, !asks);
        return 0;
    }
}

/* Brings all entries that are being sampled as far as they come, and acquires what they want next.
 */
static void step(void)
{
    uint32_t mask = 0;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (entry->progress == EPOCH_SAMPLING)
            mask |= advance(entry);
    acquisition.under_way = mask != 0 && sensor_acquire(mask);
    if (acquisition.under_way)
        acquisition.fresh |= mask;
}

static bool any_sampled(void)
{
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (entry->progress == EPOCH_SAMPLING)
            return true;
    return false;
}

void acquire_start(void)
{
    if (acquisition.under_way)
        return;
    if (!any_sampled()) {
        acquisition.fresh = 0;
        for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
            if (entry->progress == EPOCH_WAITING) {
                entry->progress = EPOCH_SAMPLING;
                entry->stage = 0;
                if (joins_rows(entry))
                    join_begin(entry);
            }
        }
    }
    /* Where somebody else's acquisition is under way, its sensor_done calls again. */
    step();
}

void sensor_done(void)
{
    acquisition.under_way = false;
    acquire_start();
    acquire_start(); /* those that waited while others were sampled */
}
