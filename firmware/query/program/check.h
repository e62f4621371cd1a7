/* Whether a mote may run a query program that has come from the radio. */
#ifndef SKERRY_QUERY_PROGRAM_CHECK_H
#define SKERRY_QUERY_PROGRAM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/clauses.h"

/* Whether the `length` (<= WIRE_PROGRAM_MAXIMUM) bytes are a program that makes sense, and what its
 * parts say of it. */
bool program_check(const uint8_t *bytes, uint8_t length, struct program_facts *facts);

#endif
