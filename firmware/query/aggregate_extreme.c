/* MIN and MAX. */
#include "query/aggregate.h"

static int32_t reading_itself(int32_t reading) { return reading; }

static bool smaller(int32_t *value, int32_t other)
{
    if (other < *value)
        *value = other;
    return true;
}

static bool larger(int32_t *value, int32_t other)
{
    if (other > *value)
        *value = other;
    return true;
}

const struct aggregate aggregate_minimum = {reading_itself, smaller};
const struct aggregate aggregate_maximum = {reading_itself, larger};
