/* GROUP: no aggregate, but what tells the states of one group from another's. Only equal ones are merged. */
#include "query/aggregate.h"

static int32_t reading_itself(int32_t reading) { return reading; }

static bool same(int32_t *value, int32_t other)
{
    *value = other;
    return true;
}

const struct aggregate aggregate_group = {reading_itself, same};
