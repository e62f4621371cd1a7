/* LIFETIME: a mote whose battery is to last until the query's end takes part in as few epochs as it
 * must.
 *
 * Every mote reckons from its own battery voltage, again and again, by the paper's formula (TinyDB
 * 2005, 3.6), and samples at an integral divisor of the query's rate, so that parents are awake
 * whenever a child is. */
#ifndef SKERRY_QUERY_SAMPLING_BUDGET_H
#define SKERRY_QUERY_SAMPLING_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"

/* Epochs from one in which to take part to the next, 1..255, at network second `now` of a query
 * that ends at `end`. 0: the battery's voltage has not been read yet; such a query reads it with
 * its row. */
uint8_t budget_divisor(const struct wire_budget *budget, uint32_t period_ms, uint32_t now,
                       uint32_t end);

#endif
