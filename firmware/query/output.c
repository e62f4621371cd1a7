#include "query/output.h"

#include "query/aggregate.h"
#include "query/events.h"
#include "query/row.h"

static uint32_t rows;

void output_init(void) { rows = 0; }
uint32_t output_rows(void) { return rows; }

static bool aggregates(const struct slot *slot)
{
    return slot_program(slot)->flags & WIRE_QUERY_AGGREGATE;
}

static void summarise(struct slot *slot, bool passes, bool counts)
{
    aggregate_produce(slot, passes, counts);
    rows++;
}

static void row(struct slot *slot, bool passes)
{
    switch (row_produce(slot, passes)) {
    case ROW_MADE:
        rows++;
        events_row(slot);
        break;
    case ROW_EMPTY: events_no_row(slot); break;
    default: break;
    }
}

/* `counts`: it is the first of the epoch's rows. */
static void produce(struct slot *slot, bool passes, bool counts)
{
    if (aggregates(slot))
        summarise(slot, passes, counts);
    else if (passes || row_counts_epochs(slot))
        row(slot, passes);
    else
        events_no_row(slot);
}

void output_epoch(struct slot *slot, bool passes)
{
    if (!passes || !(slot->received & SLOT_EACH)) {
        produce(slot, passes, true);
        return;
    }
    /* What passed is each condition by itself, for some event. */
    bool any = false;
    for (uint8_t run = 0; events_take(slot, &run);)
        if (row_passes(slot)) {
            produce(slot, true, !any);
            any = true;
        }
    if (!any)
        produce(slot, false, true);
}

void output_joined(struct slot *slot)
{
    if (aggregates(slot))
        summarise(slot, true, false);
    else
        row(slot, true);
}

void output_end(struct slot *slot, bool any)
{
    /* The mote counts once, however many of its tuples did. */
    if (aggregates(slot))
        summarise(slot, false, true);
    else if (!any)
        events_no_row(slot);
}
