/* Aggregates that a query asks for within a tolerance (APPROXIMATE WITHIN; TinyDB 2005, 6.3.2, and
 * a step beyond).
 *
 * A mote that stands for its own reading alone names, in the last cell of its state, a sibling
 * whose reading it heard and that is within the tolerance of its own: its speaker. From then on it
 * may be silent where it hears its speaker's reading, is within the tolerance of it, and both have
 * the same parent; each eighth epoch it says something all the same. The parent keeps who named
 * whom, and counts a silent child as its speaker a second time. So no reading counts by more than
 * the tolerance too much or too little, whatever other siblings report. */
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
 * numbers: who is silent must know that it is kept. The places of former children are free again
 * after EVERY epochs. */
#define CHILDREN NEIGHBOURS

struct child {
    uint16_t node;    /* + 1; 0: free */
    uint16_t speaker; /* + 1; 0: none */
    int32_t value;    /* by which it counts in epoch `heard`, or `filled` */
    uint8_t heard;    /* low byte of the epoch of its last state */
    /* low byte of the last epoch in which it counts as its speaker, where `is_filled` */
    uint8_t filled;
    uint8_t alone : 1; /* its last state was of one reading */
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

static uint8_t child_entries(void) { return settings()->root ? APP_APPROXIMATE_NODES : CHILDREN; }

/* Its code: the tolerance, in units of the first cell's value. */
static bool speaker_field(const struct slot *slot, struct program_field *field)
{
    return slot_program(slot)->flags & WIRE_QUERY_SNOOP &&
           slot_clause(slot, WIRE_AGGREGATE_REPRESENTATIVE, 0, field);
}

static uint16_t children_size(const struct slot *slot, const struct program_field *field)
{
    (void)field;
    return slot_program(slot)->flags & WIRE_QUERY_SNOOP
               ? (uint16_t)(sizeof(struct children) + child_entries() * sizeof(struct child))
               : 0;
}

/* The slot of an approximate query; NULL: it is none. */
static struct slot *slot_with(uint8_t query, struct program_field *field)
{
    struct slot *slot = slot_of(query);
    return slot != NULL && speaker_field(slot, field) ? slot : NULL;
}

bool app_approximates(uint8_t query)
{
    struct program_field field;
    return slot_with(query, &field) != NULL;
}

/* The last cell of a state of `size` bytes, which names the speaker. */
static struct wire_aggregate_state *speaker_cell(const struct wire_partial *state, uint8_t size)
{
    return (struct wire_aggregate_state *)((uint8_t *)state + size) - 1;
}

/* Whether a state is of one reading, of which nothing is NULL. */
static bool is_alone(const struct wire_partial *state, uint8_t length, uint8_t size)
{
    const struct wire_aggregate_state *cell = state->states, *last = speaker_cell(state, size);
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
    struct slot *slot = slot_with(own->query, &field);
    uint8_t size = app_state_size(own->query);
    /* Who names a speaker has to say it. */
    if (slot == NULL || !aggregate_same_epoch(own, heard) || own_length == size ||
        !is_alone(own, own_length, size) || !is_alone(heard, heard_length, size))
        return false;
    struct eval_context context = slot_context(slot);
    if (!program_compute(&field.code, &context, &tolerance))
        return false;
    return wide_distance(own->states[0].value, heard->states[0].value) <= (uint32_t)tolerance;
}

/* Adds to what waits: `motes` readings, 0 or 1, of that sum; `speaker`: its address + 1. */
static void push(uint8_t query, uint32_t epoch, uint8_t motes, int32_t value, uint16_t speaker)
{
    struct state state = {.header = {.query = query, .epoch = epoch, .motes = motes}};
    uint8_t size = app_state_size(query);
    struct wire_aggregate_state *cell = state.cells, *last = speaker_cell(&state.header, size);
    for (; cell < last; cell++)
        cell->count = motes;
    state.cells[0].value = value;
    last->count = speaker;
    queue_push(WIRE_PACKET_PARTIAL, &state, size);
}

void app_name_representative(uint8_t query, uint32_t epoch, uint16_t representative)
{
    push(query, epoch, 0, 0, (uint16_t)(representative + 1));
}

static struct children *children_of(const struct slot *slot)
{
    return (struct children *)clauses_state(slot, WIRE_AGGREGATE_REPRESENTATIVE);
}

static struct child *find(struct children *children, uint16_t node)
{
    struct child *child = children->of;
    for (uint8_t i = child_entries(); i > 0; i--, child++)
        if (child->node == node)
            return child;
    return NULL;
}

/* The place of a child: its own, a free one, or that of the child that has been silent longest.
 * NULL: it gets none. */
static struct child *place(struct children *children, uint16_t node)
{
    if (settings()->root && node >= APP_APPROXIMATE_NODES)
        return NULL;
    node++;
    struct child *child = children->of, *best = child;
    uint8_t longest = 0;
    for (uint8_t i = child_entries(); i > 0; i--, child++) {
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
    const struct slot *slot = length >= sizeof *state ? slot_with(state->query, &field) : NULL;
    if (slot == NULL)
        return length;
    uint8_t size = app_state_size(state->query), epoch = (uint8_t)state->epoch;
    if (length > size)
        return length;
    struct children *children = children_of(slot);
    if (state->epoch > children->epoch)
        children->epoch = state->epoch;
    struct child *child = place(children, node);
    bool alone = is_alone(state, length, size);
    uint16_t named = 0;
    if (length == size) {
        length = (uint8_t)(size - sizeof state->states[0]);
        named = speaker_cell(state, size)->count;
    }
    if (child == NULL)
        return length;
    child->gone = false;
    if (named != 0)
        child->speaker = named;
    if (child->is_filled && (uint8_t)(child->filled - epoch) < APP_APPROXIMATE_EVERY) {
        /* It was not silent, but late, and counts already: what is missing is the difference, where
         * it is still known. */
        if (alone && child->filled == epoch)
            push(state->query, state->epoch, 0,
                 (int32_t)((uint32_t)state->states[0].value - (uint32_t)child->value), 0);
        length = 0;
    }
    if (state->epoch == children->epoch) {
        child->heard = epoch;
        child->alone = alone;
        child->is_filled = false;
        child->value = alone ? state->states[0].value : 0;
    }
    return length;
}

/* Children that were silent on purpose count as their speakers. */
static void fill(const struct slot *slot)
{
    struct children *children = children_of(slot);
    uint8_t epoch = (uint8_t)children->epoch;
    struct child *child = children->of;
    for (uint8_t i = child_entries(); i > 0; i--, child++) {
        if (child->speaker == 0 || child->gone || child->heard == epoch ||
            (child->is_filled && child->filled == epoch))
            continue;
        const struct child *speaker = find(children, child->speaker);
        struct neighbour *neighbour = neighbour_find((uint16_t)(child->node - 1));
        if ((uint8_t)(epoch - child->heard) >= APP_APPROXIMATE_EVERY ||
            (neighbour != NULL && !neighbour_is_child(neighbour))) {
            child->gone = true;
            continue;
        }
        if (speaker == NULL || speaker->heard != epoch || !speaker->alone)
            continue;
        if (neighbour != NULL && !neighbour->done)
            neighbour->done = 1; /* there is nothing to listen for */
        child->value = speaker->value;
        child->filled = epoch;
        child->is_filled = true;
        push(slot->query, children->epoch, 1, speaker->value, 0);
    }
}

void app_fill_in(void)
{
    struct program_field field;
    for (const struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;)
        if (speaker_field(slot, &field))
            fill(slot);
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

/* The cell that names a mote's speaker: its `count` is the speaker's address + 1, 0: none is named.
 */
const IN_FLASH struct aggregate aggregate_speaker = {1, begin, keep};
const IN_FLASH struct clause clause_speaker = {
    WIRE_AGGREGATE_REPRESENTATIVE, NULL, NULL, children_size, NULL, NULL};
