#include "query/operators/gathered.h"

#include <stddef.h>

#include "query/operators/index_zone.h"

bool gather_read(const struct query_entry *entry, struct gather_question *question)
{
    struct program_field field;
    if (!entry_clause(entry, WIRE_AGGREGATE_GATHER, 0, &field))
        return false;
    const struct wire_gather *gather = (const struct wire_gather *)field.code.bytes;
    uint8_t part = (uint8_t)(gather->index >> INDEXED_PART_SHIFT);
    question->gather = gather;
    question->kinds = (const struct wire_gathered_kind *)gather->more;
    question->of = indexed_find(INDEXED_NUMBER(gather->index), &question->index);
    if (question->of == NULL || part >= question->index.index->parts)
        return false;
    indexed_part(question->of, &question->index, part, &question->part);
    question->bounds = (const uint8_t *)&question->kinds[gather->aggregates];
    uint8_t before = (uint8_t)((size_t)(question->bounds - field.code.bytes) +
                               (size_t)question->part.columns * INDEX_BOUNDS_BYTES);
    if (field.code.length < before)
        return false;
    question->where.bytes = field.code.bytes + before;
    question->where.length = (uint8_t)(field.code.length - before);
    return true;
}
