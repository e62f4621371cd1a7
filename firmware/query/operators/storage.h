/* Storage points: programs whose rows stay on the mote, for other queries to read. TinyDB
 * 2005, 3.2.
 *
 * A row is numbered from 0 on when it is stored, and known by its number for as long as it is kept.
 */
#ifndef SKERRY_QUERY_OPERATORS_STORAGE_H
#define SKERRY_QUERY_OPERATORS_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"
#include "query/program/query_table.h"
#include "wire.h"

struct stored_row {
    uint32_t number;
    /* in flash: of the point's number too, so that another point's rows are none of this one */
    uint16_t checksum;
    uint32_t seconds; /* network time of its sample */
    uint16_t milliseconds, nulls;
    /* in the formats of the point's columns */
    uint8_t values[WIRE_FIELDS_MAXIMUM * sizeof(int32_t)];
} __attribute__((packed));

/* What an entry's STORE says; NULL: it is no storage point. */
const struct wire_store *storage_point(const struct query_entry *entry);
/* The storage point of a number, or NULL. */
const struct query_entry *storage_find(uint16_t point);
/* The storage point that an entry's rows go to: itself, or what INTO names, where there is one of
 * the same width. True: they go to none on the radio. */
bool storage_takes(const struct query_entry *entry, const struct query_entry **point);
/* Keeps a row, whose values have the point's width, under its next number, unless the point is full
 * and not circular; false: it is not yet done with the rows before. */
bool storage_append(const struct query_entry *point, struct stored_row *row);
/* Number of the next row to come; rows that are shown before it. */
uint32_t storage_end(const struct query_entry *point, uint16_t *shown);
/* A row by its number; false: it is not kept (any more). */
bool storage_row(const struct query_entry *point, uint32_t number, struct stored_row *row);
/* One value of a row: a field of the point or an enum wire_stored; false: NULL. */
bool storage_value(const struct query_entry *point, const struct stored_row *row, uint8_t field,
                   int32_t *value);

#endif
