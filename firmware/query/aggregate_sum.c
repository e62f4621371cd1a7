/* COUNT, SUM and AVG: states that add up. The count itself is in every state, so COUNT keeps no value. */
#include "query/aggregate.h"

static int32_t nothing(int32_t reading)
{
    (void)reading;
    return 0;
}

static bool keep(int32_t *value, int32_t other)
{
    (void)value;
    (void)other;
    return true;
}

static int32_t reading_itself(int32_t reading) { return reading; }

static bool add(int32_t *value, int32_t other)
{
    if (other < 0 ? *value < INT32_MIN - other : *value > INT32_MAX - other)
        return false;
    *value += other;
    return true;
}

const struct aggregate aggregate_count = {nothing, keep};
const struct aggregate aggregate_sum = {reading_itself, add};
