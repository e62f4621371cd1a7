/* Aggregates that a query asks for within a tolerance (APPROXIMATE WITHIN; TinyDB 2005, 6.3.2, and
 * a step beyond).
 *
 * A mote that stands for its own reading alone names, in the last cell of its state, a sibling
 * whose reading it heard and that is within the tolerance of its own: its representative. From then
 * on it may be silent where it hears its representative's reading, is within the tolerance of it,
 * and both have the same parent; each eighth epoch it says something all the same. The parent keeps
 * who named whom, and counts a silent child as its representative a second time. So no reading
 * counts by more than the tolerance too much or too little, whatever other siblings report. */
#include <string.h>

#include "drivers/settings.h"
#include "lib/wide.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "net/transport/queue.h"
#include "query/operators/aggregate.h"
#include "query/program/clauses.h"
#include "query/program/query_table.h"

/* Children whose states are kept. A root has more of them than others, and takes only those of low
 * numbers: who is silent must know that it is kept. Records of former children are free again
 * after EVERY epochs. */
#define CHILDREN NEIGHBOURS

struct child {
    uint16_t node;           /* + 1; 0: free */
    uint16_t representative; /* + 1; 0: none */
    int32_t value;           /* by which it counts in epoch `heard`, or `filled` */
    uint8_t heard;           /* low byte of the epoch of its last state */
    /* low byte of the last epoch in which it counts as its representative, where `is_filled` */
    uint8_t filled;
    uint8_t one_reading : 1; /* its last state was of one reading */
    uint8_t is_filled : 1;
    uint8_t gone : 1; /* silent for longer than it may be, or somebody else's child */
} __attribute__((packed));

struct children {
    uint32_t epoch; /* newest of which a child has sent something */
    struct child of[];
} __attribute__((packed));

struct state {
    struct wire_partial header;
    struct wire_aggregate_state cells[WIRE_FIELDS_MAXIMUM];
} __attribute__((packed));

static uint8_t children_capacity(void)
{
    return settings()->root ? APP_APPROXIMATE_NODES : CHILDREN;
}

/* Its code: the tolerance, in units of the first cell's value. */
static bool representative_field(const struct query_entry *entry, struct program_field *field)
{
    return entry_program(entry)->flags & WIRE_QUERY_SNOOP &&
           entry_clause(entry, WIRE_AGGREGATE_REPRESENTATIVE, 0, field);
}

static uint16_t children_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    return entry_program(entry)->flags & WIRE_QUERY_SNOOP
               ? (uint16_t)(sizeof(struct children) + children_capacity() * sizeof(struct child))
               : 0;
}

/* The entry of an approximate query; NULL: it is none. */
static struct query_entry *entry_with(uint8_t query, struct program_field *field)
{
    struct query_entry *entry = entry_of(query);
    return entry != NULL && representative_field(entry, field) ? entry : NULL;
}

bool app_approximates(uint8_t query)
{
    struct program_field field;
    return entry_with(query, &field) != NULL;
}

/* The last cell of a state of `size` bytes, which names the representative. */
static struct wire_aggregate_state *representative_cell(const struct wire_partial *state,
                                                        uint8_t size)
{
    return (struct wire_aggregate_state *)((uint8_t *)state + size) - 1;
}

/* Whether a state is of one reading, of which nothing is NULL. */
static bool is_one_reading(const struct wire_partial *state, uint8_t length, uint8_t size)
{
    const struct wire_aggregate_state *cell = state->states,
                                      *last = representative_cell(state, size);
    if (cell >= last || state->motes != 1 || length + sizeof *cell < size || length > size)
        return false;
    for (; cell < last; cell++)
        if (cell->count != 1)
            return false;
    return true;
}

bool app_alike(const struct wire_partial *own, uint8_t own_length, const struct wire_partial *heard,
               uint8_t heard_length)
{
    struct program_field field;
    int32_t tolerance;
    struct query_entry *entry = entry_with(own->query, &field);
    uint8_t size = app_state_size(own->query);
    /* A record that names a representative must be sent. */
    if (entry == NULL || !aggregate_same_epoch(own, heard) || own_length == size ||
        !is_one_reading(own, own_length, size) || !is_one_reading(heard, heard_length, size))
        return false;
    struct eval_context context = entry_context(entry);
    if (!program_compute(&field.code, &context, &tolerance))
        return false;
    return wide_distance(own->states[0].value, heard->states[0].value) <= (uint32_t)tolerance;
}

/* Adds to what waits: `motes` readings, 0 or 1, of that sum; `representative`: its address + 1. */
static void push(uint8_t query, uint32_t epoch, uint8_t motes, int32_t value,
                 uint16_t representative)
{
    struct state state = {.header = {.query = query, .epoch = epoch, .motes = motes}};
    uint8_t size = app_state_size(query);
    struct wire_aggregate_state *cell = state.cells,
                                *last = representative_cell(&state.header, size);
    for (; cell < last; cell++)
        cell->count = motes;
    state.cells[0].value = value;
    last->count = representative;
    queue_push(WIRE_PACKET_PARTIAL, &state, size);
}

void app_name_representative(uint8_t query, uint32_t epoch, uint16_t representative)
{
    push(query, epoch, 0, 0, (uint16_t)(representative + 1));
}

static struct children *children_of(const struct query_entry *entry)
{
    return (struct children *)clauses_state(entry, WIRE_AGGREGATE_REPRESENTATIVE);
}

static struct child *find(struct children *children, uint16_t node)
{
    struct child *child = children->of;
    for (uint8_t i = children_capacity(); i > 0; i--, child++)
        if (child->node == node)
            return child;
    return NULL;
}

/* The record of a child: its own, a free one, or that of the child that has been silent longest.
 * NULL: it gets none. */
static struct child *record_of(struct children *children, uint16_t node)
{
    if (settings()->root && node >= APP_APPROXIMATE_NODES)
        return NULL;
    node++;
    struct child *child = children->of, *best = child;
    uint8_t longest = 0;
    for (uint8_t i = children_capacity(); i > 0; i--, child++) {
        if (child->node == node)
            return child;
        uint8_t silent =
            child->node == 0 ? UINT8_MAX : (uint8_t)((uint8_t)children->epoch - child->heard);
        if (silent < longest)
            continue;
        longest = silent;
        best = child;
    }
    memset(best, 0, sizeof *best);
    best->node = node;
    return best;
}

uint8_t app_child_state(uint16_t node, const struct wire_partial *state, uint8_t length)
{
    struct program_field field;
    const struct query_entry *entry =
        length >= sizeof *state ? entry_with(state->query, &field) : NULL;
    if (entry == NULL)
        return length;
    uint8_t size = app_state_size(state->query), epoch = (uint8_t)state->epoch;
    if (length > size)
        return length;
    struct children *children = children_of(entry);
    if (state->epoch > children->epoch)
        children->epoch = state->epoch;
    struct child *child = record_of(children, node);
    bool one_reading = is_one_reading(state, length, size);
    uint16_t representative = 0;
    if (length == size) {
        length = (uint8_t)(size - sizeof state->states[0]);
        representative = representative_cell(state, size)->count;
    }
    if (child == NULL)
        return length;
    child->gone = false;
    if (representative != 0)
        child->representative = representative;
    if (child->is_filled && (uint8_t)(child->filled - epoch) < APP_APPROXIMATE_EVERY) {
        /* It was not silent, but late, and counts already: what is missing is the difference, where
         * it is still known. */
        if (one_reading && child->filled == epoch)
            push(state->query, state->epoch, 0,
                 (int32_t)((uint32_t)state->states[0].value - (uint32_t)child->value), 0);
        length = 0;
    }
    if (state->epoch == children->epoch) {
        child->heard = epoch;
        child->one_reading = one_reading;
        child->is_filled = false;
        child->value = one_reading ? state->states[0].value : 0;
    }
    return length;
}

/* Children that were silent on purpose count as their representatives. */
static void fill(const struct query_entry *entry)
{
    struct children *children = children_of(entry);
    uint8_t epoch = (uint8_t)children->epoch;
    struct child *child = children->of;
    for (uint8_t i = children_capacity(); i > 0; i--, child++) {
        if (child->representative == 0 || child->gone || child->heard == epoch ||
            (child->is_filled && child->filled == epoch))
            continue;
        const struct child *representative = find(children, child->representative);
        struct neighbour *neighbour = neighbour_find((uint16_t)(child->node - 1));
        if ((uint8_t)(epoch - child->heard) >= APP_APPROXIMATE_EVERY ||
            (neighbour != NULL && !neighbour_is_child(neighbour))) {
            child->gone = true;
            continue;
        }
        if (representative == NULL || representative->heard != epoch ||
            !representative->one_reading)
            continue;
        if (neighbour != NULL && !neighbour->done) {
            /* there is nothing to listen for */
            neighbour->done = true;
            neighbour->rounds = NEIGHBOUR_DONE_ROUNDS;
        }
        child->value = representative->value;
        child->filled = epoch;
        child->is_filled = true;
        push(entry->query, children->epoch, 1, representative->value, 0);
    }
}

void app_fill_in(void)
{
    struct program_field field;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (representative_field(entry, &field))
            fill(entry);
}

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)state, (void)cells, (void)reading, (void)node;
}

static bool keep(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                 uint8_t cells)
{
    (void)cells;
    if (from->count != 0)
        into->count = from->count;
    return true;
}

/* The cell that names a mote's representative: its `count` is the representative's address + 1, 0:
 * none is named.
 */
const IN_FLASH struct aggregate aggregate_representative = {1, begin, keep};
const IN_FLASH struct clause clause_representative = {
    WIRE_AGGREGATE_REPRESENTATIVE, NULL, NULL, children_size, NULL, NULL};
