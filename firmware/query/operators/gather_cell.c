#include "query/operators/gather_cell.h"

#include <stdbool.h>

#include "wire.h"

void gather_add(struct gather_cell *cell, uint8_t aggregate, int64_t value, uint32_t count)
{
    bool extreme = aggregate == WIRE_AGGREGATE_MIN || aggregate == WIRE_AGGREGATE_MAX;
    if (count == 0)
        return;
    if (!extreme)
        cell->value = (int64_t)((uint64_t)cell->value + (uint64_t)value);
    else if (cell->count == 0 ||
             (aggregate == WIRE_AGGREGATE_MIN ? value < cell->value : value > cell->value))
        cell->value = value;
    cell->count += count;
}
