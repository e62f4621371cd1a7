/* GROUP: no aggregate, but what tells the states of one group from another's. Only equal ones are
 * merged. */
#include "query/operators/aggregate.h"

static bool same(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                 uint8_t cells)
{
    (void)cells;
    aggregate_one_sided(into, from);
    return true;
}

const IN_FLASH struct aggregate aggregate_group = {1, aggregate_begin, same};
