/* What an index's program says: its parts, its ranges and who stores it. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_PROGRAM_H
#define SKERRY_QUERY_OPERATORS_INDEX_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "index/halving.h"
#include "query/program/query_table.h"
#include "storage/tuples.h"
#include "wire.h"

/* A number of an index is in the lower bits, the part's in those above. */
#define INDEXED_PART_SHIFT 13
#define INDEXED_NUMBER(index) ((index) & ((1U << INDEXED_PART_SHIFT) - 1U))

/* An index as its query's program says it. */
struct indexed {
    const struct wire_index *index;
    const struct wire_index_part *parts;
    const struct wire_index_range *ranges; /* one for each column */
    const struct wire_index_owner *owners; /* part by part */
    uint8_t columns, owner_count;
    uint8_t width; /* bytes of a row's values */
};

/* A part of it. */
struct indexed_part {
    const struct wire_index_owner *owners; /* the settled, those away, and those added */
    struct zone_field field;               /* of the former two, in dm */
    uint8_t number, owner_count, settled, away;
    uint8_t mask, columns; /* bit i set: column i is stored there; how many are */
    uint8_t width;         /* bytes of their values */
};

/* What the entry's INDEX says; false: it has none, or one that is malformed. */
bool indexed_read(const struct query_entry *entry, struct indexed *found);
/* The query of an index, or NULL; where its owners have changed, the newest. */
const struct query_entry *indexed_find(uint16_t index, struct indexed *found);
/* Part `number`, below index->index->parts. */
void indexed_part(const struct query_entry *entry, const struct indexed *index, uint8_t number,
                  struct indexed_part *part);
/* The point of a value of a column. */
uint16_t indexed_point(const struct indexed *index, uint8_t column, int32_t value, bool is_null);
/* Whether a tuple is not older than the index keeps them, as far as this mote knows: one of a
 * session before is older than the session, whose time began at 0. */
bool indexed_kept(const struct query_entry *entry, const struct indexed *index,
                  const struct tuple *tuple);
/* The mote that stores what has the code, of those that store the part. */
const struct wire_index_owner *index_owner(const struct indexed_part *part, uint32_t code);

#endif
