#include "query/operators/output.h"

#include "query/events/events.h"
#include "query/events/raising.h"
#include "query/operators/aggregate.h"
#include "query/operators/meet.h"
#include "query/operators/row.h"

static struct {
    uint32_t rows; /* and partial state records, produced since output_init */
} output;

void output_init(void) { output.rows = 0; }
uint32_t output_rows(void) { return output.rows; }

static bool aggregates(const struct query_entry *entry)
{
    return entry_program(entry)->flags & WIRE_QUERY_AGGREGATE;
}

static void summarise(const struct eval_context *context, bool passes, bool counts)
{
    aggregate_produce(context, passes, counts);
    output.rows++;
}

/* What an epoch's own row does, or that there is none. Where motes join rows of each other, those
 * of two that match act, at the mote that joins them. */
static void act(const struct eval_context *context, bool made)
{
    if (meet_joins(context->query))
        return;
    if (made)
        events_row(context);
    else
        events_no_row(context->query);
}

static void row(const struct eval_context *context, bool passes)
{
    switch (row_produce(context, passes)) {
    case ROW_MADE:
        output.rows++;
        act(context, true);
        break;
    case ROW_EMPTY: act(context, false); break;
    default: break;
    }
}

/* `counts`: it is the first of the epoch's rows. */
static void produce(const struct eval_context *context, bool passes, bool counts)
{
    struct query_entry *entry = context->query;
    if (aggregates(entry))
        summarise(context, passes, counts);
    else if (passes || row_counts_epochs(entry))
        row(context, passes);
    else
        act(context, false);
}

void output_epoch(struct query_entry *entry, bool passes)
{
    struct eval_context context = row_context(entry);
    meet_epoch(entry);
    if (!passes || !(entry->state & ENTRY_EACH)) {
        produce(&context, passes, true);
        return;
    }
    /* What passed is each condition by itself, for some event. */
    bool any = false;
    for (uint8_t run = 0; events_next(&context, &run);)
        if (program_passes(entry_program(entry), &context)) {
            produce(&context, true, !any);
            any = true;
        }
    if (!any)
        produce(&context, false, true);
}

void output_joined(const struct eval_context *context)
{
    if (aggregates(context->query))
        summarise(context, true, false);
    else
        row(context, true);
}

void output_gathered(const struct eval_context *context, bool passes)
{
    if (passes)
        row(context, true);
    else
        events_no_row(context->query);
}

void output_end(struct query_entry *entry, bool any)
{
    struct eval_context context = row_context(entry);
    /* The mote counts once, however many of its tuples did. */
    if (aggregates(entry))
        summarise(&context, false, true);
    else if (!any)
        events_no_row(entry);
}
