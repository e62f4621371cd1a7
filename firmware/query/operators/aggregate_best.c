/* TOP(n, a) and BOTTOM(n, a): a cell for each of the n best readings, best first; its `count` is
 * the mote's address + 1, 0 where there is none. Of equal readings the one of the lower address
 * comes first. Of a storage point's rows a mote has several. */
#include "query/operators/aggregate.h"

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells;
    state->count = (uint16_t)(node + 1);
    state->value = reading;
}

static bool better(const struct wire_aggregate_state *a, const struct wire_aggregate_state *b,
                   bool largest)
{
    if (a->value != b->value)
        return (a->value > b->value) == largest;
    return a->count < b->count;
}

static void insert(struct wire_aggregate_state *list, uint8_t cells,
                   const struct wire_aggregate_state *entry, bool largest)
{
    uint8_t at = 0;
    while (at < cells && list[at].count != 0 && !better(entry, &list[at], largest)) {
        if (list[at].count == entry->count && list[at].value == entry->value)
            return; /* the same one, heard twice */
        at++;
    }
    if (at == cells)
        return;
    for (uint8_t i = (uint8_t)(cells - 1); i > at; i--)
        list[i] = list[i - 1];
    list[at] = *entry;
}

static bool merge_best(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                       uint8_t cells, bool largest)
{
    for (uint8_t i = 0; i < cells && from[i].count != 0; i++)
        insert(into, cells, &from[i], largest);
    return true;
}

static bool merge_top(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                      uint8_t cells)
{
    return merge_best(into, from, cells, true);
}

static bool merge_bottom(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                         uint8_t cells)
{
    return merge_best(into, from, cells, false);
}

const IN_FLASH struct aggregate aggregate_top = {0, begin, merge_top};
const IN_FLASH struct aggregate aggregate_bottom = {0, begin, merge_bottom};
