#include "query/sampling/budget.h"

#include <stddef.h>

#include "drivers/sensor.h"
#include "lib/wide.h"
#include "query/program/clauses.h"
#include "wire.h"

#define MICROWATTS 1000000UL

static bool budget_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_budget *budget = (const struct wire_budget *)field->code.bytes;
    facts->attributes |= (uint32_t)1 << WIRE_ATTRIBUTE_VOLTAGE;
    return field->code.length == sizeof *budget && budget->full > budget->empty && budget->most > 0;
}

/* What is left in the battery, J; voltage falls linearly from full to empty (the paper's
 * assumption). */
static uint32_t remaining(const struct wire_budget *budget, int32_t supply)
{
    uint32_t range = (uint32_t)(budget->full - budget->empty),
             above = (uint32_t)(supply - budget->empty), left, rest;
    if (supply <= budget->empty)
        return 0;
    wide_divide((uint64_t)budget->capacity * (above < range ? above : range), range, &left, &rest);
    return left;
}

uint8_t budget_divisor(const struct wire_budget *budget, uint32_t period_ms, uint32_t now,
                       uint32_t end)
{
    uint32_t power, needed, rest;
    int32_t supply;
    if (!sensor_value(WIRE_ATTRIBUTE_VOLTAGE, &supply))
        return 0;
    if (now >= end ||
        !wide_divide((uint64_t)remaining(budget, supply) * MICROWATTS, end - now, &power, &rest))
        return 1; /* more than any mote takes */
    if (power <= budget->idle)
        return budget->most;
    power -= budget->idle;
    needed = budget->energy / period_ms; /* nJ in ms are uW */
    /* The nearest, not the next: what is spent too fast shows in the voltage, and the divisor grows
     * in time. */
    uint32_t divisor = needed / power + (needed % power > power / 2);
    return divisor < 1 ? 1 : divisor > budget->most ? budget->most : (uint8_t)divisor;
}

const IN_FLASH struct clause clause_budget = {
    WIRE_AGGREGATE_BUDGET, budget_check, NULL, NULL, NULL, NULL};
