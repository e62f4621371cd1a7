/* Clauses whose code begins with the number of an event. */
#ifndef SKERRY_QUERY_EVENTS_NUMBERED_H
#define SKERRY_QUERY_EVENTS_NUMBERED_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/clauses.h"

/* The number. */
uint16_t event_of(const struct program_field *field);
/* As the member of struct clause: a number, and an expression or nothing. */
bool numbered_check(const struct program_field *field, struct program_facts *facts);

#endif
