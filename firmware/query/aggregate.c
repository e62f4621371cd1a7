#include "query/aggregate.h"

#include "net/queue.h"
#include "query/attribute.h"
#include "query/row.h"
#include "query/vm.h"

struct partial {
    struct wire_partial header;
    struct wire_aggregate_state states[WIRE_FIELDS_MAXIMUM];
} __attribute__((packed));

const struct aggregate *aggregate_find(uint8_t aggregate)
{
    switch (aggregate) {
    case WIRE_AGGREGATE_COUNT:
        return &aggregate_count;
    case WIRE_AGGREGATE_SUM:
    case WIRE_AGGREGATE_AVG: /* the gateway divides the sum by the count */
        return &aggregate_sum;
    case WIRE_AGGREGATE_MIN:
        return &aggregate_minimum;
    case WIRE_AGGREGATE_MAX:
        return &aggregate_maximum;
    case WIRE_AGGREGATE_GROUP:
        return &aggregate_group;
    default:
        return NULL;
    }
}

static struct wire_aggregate_state state_of(const struct program_field *field, const uint32_t *epoch)
{
    struct wire_aggregate_state state = {0, 0};
    int32_t reading = 0;
    /* COUNT(*) has no code: every row counts. */
    if (field->code.length == 0 ||
        vm_run(field->code.bytes, field->code.length, attribute_read, epoch, &reading)) {
        state.count = 1;
        state.value = aggregate_find(field->aggregate)->initialise(reading);
    }
    return state;
}

void aggregate_produce(const struct slot *slot)
{
    struct partial partial = {.header = {.query = slot->query, .epoch = slot->epoch, .motes = 1}};
    struct program_field field;
    uint8_t count = 0;
    bool passes = row_passes(slot), grouped = false;
    for (uint8_t at = 0; program_next_field(&slot->program, slot->length, &at, &field); count++) {
        grouped |= field.aggregate == WIRE_AGGREGATE_GROUP;
        if (passes)
            partial.states[count] = state_of(&field, &slot->epoch);
    }
    if (grouped && !passes)
        return; /* a row that is refused belongs to no group */
    queue_push(WIRE_PACKET_PARTIAL, &partial,
               (uint8_t)(sizeof partial.header + count * sizeof partial.states[0]));
}

/* Counts stay at their largest value rather than wrap. */
static uint16_t add_counts(uint16_t a, uint16_t b)
{
    return a > UINT16_MAX - b ? UINT16_MAX : (uint16_t)(a + b);
}

/* True: the field's sum has left 32 bits. */
static bool merge_state(const struct aggregate *aggregate, struct wire_aggregate_state *into,
                        const struct wire_aggregate_state *from)
{
    int32_t value = into->value;
    bool fits = true;
    if (into->count == 0)
        value = from->value;
    else if (from->count > 0)
        fits = aggregate->merge(&value, from->value);
    into->value = value;
    into->count = add_counts(into->count, from->count);
    return !fits;
}

/* Whether two states of the query are of the same group: all of them are where nothing is grouped by. */
static bool same_group(const struct slot *slot, const struct wire_partial *a, const struct wire_partial *b)
{
    struct program_field field;
    uint8_t i = 0;
    for (uint8_t at = 0; program_next_field(&slot->program, slot->length, &at, &field); i++) {
        if (field.aggregate != WIRE_AGGREGATE_GROUP)
            continue;
        bool known = a->states[i].count > 0;
        if (known != (b->states[i].count > 0) || (known && a->states[i].value != b->states[i].value))
            return false;
    }
    return true;
}

bool query_merge(struct wire_partial *into, const struct wire_partial *from, uint8_t length)
{
    const struct slot *slot = slot_of(from->query);
    if (slot == NULL || !(slot->program.flags & WIRE_QUERY_AGGREGATE) || length < sizeof *from ||
        into->query != from->query || into->epoch != from->epoch)
        return false;
    uint8_t fields = program_field_count(&slot->program, slot->length);
    if (length != sizeof *from + fields * sizeof(struct wire_aggregate_state) || !same_group(slot, into, from))
        return false;

    struct program_field field;
    uint8_t i = 0;
    into->motes = add_counts(into->motes, from->motes);
    into->overflow |= from->overflow;
    for (uint8_t at = 0; program_next_field(&slot->program, slot->length, &at, &field); i++) {
        uint16_t bit = (uint16_t)(1U << i);
        if (merge_state(aggregate_find(field.aggregate), &into->states[i], &from->states[i]))
            into->overflow |= bit;
        if (into->overflow & bit)
            into->states[i].value = 0; /* means nothing: the same whatever the order */
    }
    return true;
}
