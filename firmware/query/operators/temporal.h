/* Temporal aggregates: a row's field that is computed from this mote's readings over time.
 *
 * The field's code begins with a struct wire_temporal; the rest gives the reading. Windows count
 * the query's rows, those that WHERE lets pass; a reading that is NULL takes its place in a window
 * and counts for nothing, as in SQL's ROWS n PRECEDING. With WIRE_TEMPORAL_EPOCHS they count
 * epochs: one whose row does not pass, or that the mote missed, takes its place as a NULL does. The
 * row of an epoch that was missed comes in the next one, about the window that ended with the
 * missed one. */
#ifndef SKERRY_QUERY_OPERATORS_TEMPORAL_H
#define SKERRY_QUERY_OPERATORS_TEMPORAL_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"

/* A reading that is NULL: no expression's value, as the planner bounds them by +-2147483647. */
#define TEMPORAL_NOTHING INT32_MIN

/* Whether enum wire_aggregate names a temporal aggregate. */
bool temporal_is(uint8_t aggregate);
/* Bytes of a field's state, 0 for a field that is no temporal aggregate or has parameters that
 * cannot be. */
uint16_t temporal_size(const struct program_field *field);
/* The expression behind the parameters. */
struct program_code temporal_code(const struct program_field *field);
/* Whether the field is a window of epochs. */
bool temporal_counts_epochs(const struct program_field *field);
/* Takes the reading of an epoch, if it passes the query's conditions, into a state that was zero at
 * first. True: a row is due, as far as this field is concerned. */
bool temporal_take(const struct program_field *field, uint8_t *state, uint32_t epoch, bool passes,
                   int32_t reading);
/* Whether none of the epochs passed, of a field that is a window of them. */
bool temporal_empty(const struct program_field *field, const uint8_t *state);
/* Whether taking the reading of an epoch, were it to pass, can change a value that the field will
 * have when a row is due, or that there is a row. Only a window of epochs for WINMIN or WINMAX that
 * is no longer than its slide is sure that it cannot. Source: TinyDB 2005, 4.2.1. */
bool temporal_changes(const struct program_field *field, const uint8_t *state, uint32_t epoch,
                      int32_t reading);
/* The aggregate's value now; false: NULL. */
bool temporal_value(const struct program_field *field, uint8_t *state, int32_t *value);

#endif
