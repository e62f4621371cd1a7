#include "query/operators/indexed.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "index/point.h"
#include "index/zone.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/routing/positions.h"
#include "net/routing/tree.h"
#include "net/transport/carried.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/transport_conf.h"
#include "query/program/clauses.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* The clause's state: tuples that have not gone yet, or have come back as their way was lost. */
struct waiting {
    uint8_t count;
    uint8_t tuples[]; /* the oldest first, all of one length */
} __attribute__((packed));

static bool has_index(const struct query_entry *entry, struct program_field *field)
{
    return entry_clause(entry, WIRE_AGGREGATE_INDEX, 0, field);
}

bool indexed_read(const struct query_entry *entry, struct indexed *found)
{
    struct program_field field;
    struct row_column column;
    if (!has_index(entry, &field))
        return false;
    found->columns = 0;
    for (row_start(&column, entry); row_next_column(&column); found->columns++)
        if (column.field.aggregate != WIRE_AGGREGATE_NONE)
            return false;
    found->width = column.offset;
    found->index = (const struct wire_index *)field.code.bytes;
    uint8_t ranges = (uint8_t)(found->columns * sizeof *found->ranges);
    if (found->columns > WIRE_INDEX_ATTRIBUTES_MAXIMUM ||
        field.code.length < sizeof *found->index + ranges + sizeof *found->owners)
        return false;
    uint8_t owners = (uint8_t)(field.code.length - sizeof *found->index - ranges);
    found->ranges = (const struct wire_index_range *)found->index->more;
    found->owners = (const struct wire_index_owner *)(found->index->more + ranges);
    found->owner_count = (uint8_t)(owners / sizeof *found->owners);
    for (uint8_t i = 0; i < found->columns; i++)
        if (found->ranges[i].low > found->ranges[i].high)
            return false;
    return owners % sizeof *found->owners == 0;
}

const struct query_entry *indexed_find(uint16_t index, struct indexed *found)
{
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (indexed_read(entry, found) && found->index->index == index)
            return entry;
    return NULL;
}

uint16_t indexed_point(const struct indexed *index, uint8_t column, int32_t value, bool is_null)
{
    const struct index_range range = {index->ranges[column].low, index->ranges[column].high};
    return is_null ? INDEX_NULL : index_point(&range, value);
}

/* ---- the clause ---- */

static bool index_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_index *index = (const struct wire_index *)field->code.bytes;
    facts->keeps |= PROGRAM_KEEPS_ROWS;
    return !(facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) &&
           facts->program->period >= WIRE_PERIOD_MINIMUM_MS && field->code.length > sizeof *index &&
           index->left < index->right && index->bottom < index->top;
}

/* What only shows beside the columns. */
static uint8_t index_refusal(const struct query_entry *entry, const struct program_field *field,
                             uint16_t *missing)
{
    struct indexed found;
    (void)field, (void)missing;
    return indexed_read(entry, &found) ? 0 : WIRE_REFUSAL_MALFORMED;
}

static uint8_t length_of(const struct indexed *index)
{
    return (uint8_t)(sizeof(struct wire_index_tuple) + index->width);
}

static uint16_t index_size(const struct query_entry *entry, const struct program_field *field)
{
    struct indexed found;
    (void)field;
    return indexed_read(entry, &found)
               ? (uint16_t)(sizeof(struct waiting) + INDEX_WAITING * length_of(&found))
               : 0;
}

const IN_FLASH struct clause clause_index = {WIRE_AGGREGATE_INDEX, index_check, index_refusal,
                                             index_size,           NULL,        NULL};

/* ---- tuples ---- */

static struct waiting *waiting_of(const struct query_entry *entry)
{
    return (struct waiting *)clauses_state(entry, WIRE_AGGREGATE_INDEX);
}

/* Room for one more tuple; NULL: there is none, and one is lost. */
static struct wire_index_tuple *one_more(const struct query_entry *entry, uint8_t length)
{
    struct waiting *waiting = waiting_of(entry);
    if (waiting->count == INDEX_WAITING) {
        queue_lost();
        return NULL;
    }
    return (struct wire_index_tuple *)(waiting->tuples + waiting->count++ * length);
}

bool indexed_row(const struct query_entry *entry, const struct wire_result *row, uint8_t width)
{
    struct program_field field;
    if (!has_index(entry, &field))
        return false;
    const struct wire_index *index = (const struct wire_index *)field.code.bytes;
    struct wire_index_tuple *tuple =
        one_more(entry, (uint8_t)(sizeof(struct wire_index_tuple) + width));
    if (tuple == NULL)
        return true;
    *tuple = (struct wire_index_tuple){.carries = WIRE_CARRIES_TUPLE,
                                       .index = index->index,
                                       .node = row->node,
                                       .session = tree_session(),
                                       .epoch = row->epoch,
                                       .nulls = (uint8_t)row->nulls};
    memcpy(tuple->values, row->values, width);
    return true;
}

/* The mote whose own code is nearest to that of a tuple's values. */
static const struct wire_index_owner *owner_of(const struct query_entry *entry,
                                               const struct indexed *index,
                                               const struct wire_index_tuple *tuple)
{
    uint16_t points[WIRE_INDEX_ATTRIBUTES_MAXIMUM];
    struct row_column column;
    uint8_t i = 0;
    for (row_start(&column, entry); row_next_column(&column); i++)
        points[i] =
            indexed_point(index, i, row_unpack(tuple->values + column.offset, column.field.format),
                          tuple->nulls >> i & 1);
    uint32_t code = index_code(points, index->columns);
    const struct wire_index_owner *nearest = index->owners;
    for (i = 1; i < index->owner_count; i++)
        if ((index->owners[i].code ^ code) < (nearest->code ^ code))
            nearest = &index->owners[i];
    return nearest;
}

/* False: not now. */
static bool store(const struct query_entry *entry, const struct indexed *index,
                  const struct wire_index_tuple *came)
{
    struct tuple tuple = {.name = {came->node, came->session, came->epoch},
                          .attributes = index->columns,
                          .nulls = came->nulls};
    struct row_column column;
    uint8_t i = 0;
    for (row_start(&column, entry); row_next_column(&column);)
        tuple.values[i++] = row_unpack(came->values + column.offset, column.field.format);
    switch (tuples_append(index->index->index, &tuple)) {
    case TUPLES_LATER: return false;
    case TUPLES_NEVER: queue_lost(); return true;
    default: return true;
    }
}

static bool send(const struct indexed *index, const struct wire_index_owner *owner,
                 const struct wire_index_tuple *tuple)
{
    const struct zone_field field = {index->index->left, index->index->bottom, index->index->right,
                                     index->index->top};
    const struct zone zone = {owner->code, ZONE_BITS};
    struct zone_field area;
    zone_area(&field, &zone, &area);
    struct place place = place_of(area.left, area.bottom);
    struct way_route route = {.place = &place};
    return carried_takes(length_of(index)) &&
           carried_send(owner->node, &route, tuple, length_of(index), INDEX_SECONDS,
                        WAY_EVERY_LEAST) == CARRIED_WAITS;
}

/* The tuple is stored or on its way; false: neither, for now. */
static bool pass_on(const struct query_entry *entry, const struct indexed *index,
                    const struct wire_index_tuple *tuple)
{
    const struct wire_index_owner *owner = owner_of(entry, index, tuple);
    return owner->node == settings()->nodeid ? store(entry, index, tuple)
                                             : send(index, owner, tuple);
}

/* A tuple that nobody has taken for so long never will be. */
static bool given_up(const struct query_entry *entry, const struct wire_index_tuple *tuple)
{
    uint32_t seconds, milliseconds;
    if (!time_known() || !entry_epoch_start(entry, tuple->epoch, &seconds, &milliseconds))
        return false;
    uint32_t age = time_at(clock_now()).seconds - seconds;
    bool old = tuple->session != tree_session() || (age > INDEX_GIVEN_UP && age <= INT32_MAX);
    if (old)
        queue_lost();
    return old;
}

void app_tuples_due(void)
{
    struct indexed index;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        if (!indexed_read(entry, &index))
            continue;
        struct waiting *waiting = waiting_of(entry);
        uint8_t length = length_of(&index);
        for (uint8_t i = 0; i < waiting->count;) {
            uint8_t *at = waiting->tuples + i * length;
            const struct wire_index_tuple *tuple = (const struct wire_index_tuple *)at;
            if (!pass_on(entry, &index, tuple) && !given_up(entry, tuple)) {
                i++;
                continue;
            }
            waiting->count--;
            memmove(at, at + length, (size_t)((waiting->count - i) * length));
        }
    }
}

/* The query of a tuple that has come, or come back; NULL: it is none. */
static const struct query_entry *query_of(const uint8_t *record, uint8_t length,
                                          struct indexed *index)
{
    const struct wire_index_tuple *tuple = (const struct wire_index_tuple *)record;
    if (length < sizeof *tuple)
        return NULL;
    const struct query_entry *entry = indexed_find(tuple->index, index);
    return entry != NULL && length == length_of(index) ? entry : NULL;
}

/* Waits for the next control window. */
static void wait(const struct query_entry *entry, const uint8_t *record, uint8_t length)
{
    struct wire_index_tuple *kept = one_more(entry, length);
    if (kept != NULL)
        memcpy(kept, record, length);
}

bool app_tuple(const uint8_t *record, uint8_t length)
{
    struct indexed index;
    const struct query_entry *entry = query_of(record, length, &index);
    if (entry == NULL)
        return false;
#ifdef BOARD_TUPLES
    const struct wire_index_tuple *tuple = (const struct wire_index_tuple *)record;
    if (owner_of(entry, &index, tuple)->node == settings()->nodeid && store(entry, &index, tuple))
        return true;
#endif
    wait(entry, record, length);
    return true;
}

void app_tuple_lost(const uint8_t *record, uint8_t length)
{
    struct indexed index;
    const struct query_entry *entry = query_of(record, length, &index);
    if (entry != NULL)
        wait(entry, record, length);
    else
        queue_lost();
}
