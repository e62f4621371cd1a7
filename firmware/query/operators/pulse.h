/* PULSE and PULSES: how long a condition was true, and how often. */
#ifndef SKERRY_QUERY_OPERATORS_PULSE_H
#define SKERRY_QUERY_OPERATORS_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"

bool pulse_is(uint8_t aggregate);
/* Bytes of state. */
uint8_t pulse_size(void);
/* What the condition was in an epoch, NULL being false. True: a row is due. */
bool pulse_take(const struct program_field *field, uint8_t *state, uint32_t epoch, bool on);
/* False: NULL. */
bool pulse_value(const struct program_field *field, const uint8_t *state, int32_t *value);

#endif
