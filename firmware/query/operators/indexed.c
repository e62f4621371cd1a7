#include "query/operators/indexed.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "index/point.h"
#include "lib/calls.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/routing/positions.h"
#include "net/routing/tree.h"
#include "net/transport/carried.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/operators/index_program.h"
#include "query/program/clauses.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* A row that has not gone yet, or that has come back as its way was lost. Columns of parts that
 * have gone, or never came, are not known. */
struct held {
    uint8_t parts; /* bit i set: its columns of part i have not gone yet */
    uint16_t node, session;
    uint32_t epoch;
    uint8_t nulls;    /* bit i set: column i is NULL */
    uint8_t values[]; /* columns in order, 0 where it is not known */
} __attribute__((packed));

/* The clause's state. */
struct waiting {
    uint8_t count;
    uint8_t turn;   /* the row that is looked at next */
    uint8_t rows[]; /* each a struct held, the oldest first, all of one length */
} __attribute__((packed));

/* Of a row that is looked at by itself. */
#define HELD_MOST (sizeof(struct held) + WIRE_INDEX_ATTRIBUTES_MAXIMUM * sizeof(int32_t))

/* ---- rows that wait ---- */

static uint8_t length_of(const struct indexed *index)
{
    return (uint8_t)(sizeof(struct held) + index->width);
}

static struct waiting *waiting_of(const struct query_entry *entry)
{
    return (struct waiting *)clauses_state(entry, WIRE_AGGREGATE_INDEX);
}

static struct held *held_at(struct waiting *waiting, const struct indexed *index, uint8_t place)
{
    return (struct held *)(waiting->rows + place * length_of(index));
}

static bool are_one(const struct held *one, const struct held *other)
{
    return one->epoch == other->epoch && one->node == other->node && one->session == other->session;
}

/* Until its turn, at least; one that there is no room for is lost. */
static void hold(const struct query_entry *entry, const struct indexed *index,
                 const struct held *row)
{
    struct waiting *waiting = waiting_of(entry);
    for (uint8_t i = 0; i < waiting->count; i++) {
        struct held *held = held_at(waiting, index, i);
        if (!are_one(held, row))
            continue;
        held->parts |= row->parts;
        held->nulls |= row->nulls;
        for (uint8_t at = 0; at < index->width; at++)
            held->values[at] |= row->values[at];
        return;
    }
    if (waiting->count == INDEX_WAITING)
        queue_lost();
    else
        memcpy(held_at(waiting, index, waiting->count++), row, length_of(index));
}

/* Owners have changed: what waits goes by the program that tells of it, which is held already.
 * False: there is no newer one. */
static bool superseded(const struct query_entry *entry, const struct indexed *index)
{
    struct indexed newest;
    const struct query_entry *other = indexed_find(index->index->index, &newest);
    if (other == entry || other == NULL || newest.width != index->width)
        return false;
    struct waiting *waiting = waiting_of(entry);
    for (uint8_t i = 0; i < waiting->count; i++)
        hold(other, &newest, held_at(waiting, index, i));
    waiting->count = 0;
    return true;
}

bool indexed_row(const struct query_entry *entry, const struct wire_result *row, uint8_t width)
{
    uint8_t bytes[HELD_MOST];
    struct held *held = (struct held *)bytes;
    struct indexed index;
    if (!indexed_read(entry, &index))
        return false;
    *held = (struct held){.parts = (uint8_t)((1U << index.index->parts) - 1U),
                          .node = row->node,
                          .session = tree_session(),
                          .epoch = row->epoch,
                          .nulls = (uint8_t)row->nulls};
    memcpy(held->values, row->values, width);
    hold(entry, &index, held);
    return true;
}

/* ---- the clause ---- */

static bool index_check(const struct program_field *field, struct program_facts *facts)
{
    facts->keeps |= PROGRAM_KEEPS_ROWS;
    return !(facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) &&
           facts->program->period >= WIRE_PERIOD_MINIMUM_MS &&
           field->code.length > sizeof(struct wire_index);
}

/* What only shows beside the columns. */
static uint8_t index_refusal(const struct query_entry *entry, const struct program_field *field,
                             uint16_t *missing)
{
    struct indexed found;
    (void)field, (void)missing;
    if (!indexed_read(entry, &found) || INDEXED_NUMBER(found.index->index) != found.index->index)
        return WIRE_REFUSAL_MALFORMED;
    for (uint8_t i = 0; i < found.owner_count; i++)
        if (!place_possible(found.owners[i].x, found.owners[i].y))
            return WIRE_REFUSAL_MALFORMED;
    return 0;
}

static uint16_t index_size(const struct query_entry *entry, const struct program_field *field)
{
    struct indexed found;
    (void)field;
    return indexed_read(entry, &found)
               ? (uint16_t)(sizeof(struct waiting) + INDEX_WAITING * length_of(&found))
               : 0;
}

static void index_close(const struct query_entry *entry)
{
    struct indexed index;
    if (indexed_read(entry, &index))
        (void)superseded(entry, &index);
}

const IN_FLASH struct clause clause_index = {WIRE_AGGREGATE_INDEX, index_check, index_refusal,
                                             index_size,           NULL,        index_close};

/* ---- who stores them ---- */

static const struct wire_index_owner *owner_of(const struct query_entry *entry,
                                               const struct indexed *index,
                                               const struct indexed_part *part,
                                               const struct held *row)
{
    uint16_t points[WIRE_INDEX_ATTRIBUTES_MAXIMUM];
    struct row_column column;
    uint8_t i = 0, count = 0;
    for (row_start(&column, entry); row_next_column(&column); i++)
        if (part->mask & column.bit)
            points[count++] = indexed_point(
                index, i, row_unpack(row->values + column.offset, column.field.format),
                (row->nulls & column.bit) != 0);
    return index_owner(part, index_code(points, count));
}

/* False: not now. Where nothing is stored nobody has sent it. */
static bool store(const struct query_entry *entry, const struct indexed *index,
                  const struct indexed_part *part, const struct held *row)
{
#ifdef BOARD_TUPLES
    struct tuple tuple = {.name = {row->node, row->session, row->epoch},
                          .attributes = part->columns};
    struct row_column column;
    uint8_t i = 0;
    for (row_start(&column, entry); row_next_column(&column);) {
        if (!(part->mask & column.bit))
            continue;
        tuple.values[i] = row_unpack(row->values + column.offset, column.field.format);
        tuple.nulls = (uint8_t)(tuple.nulls | ((row->nulls & column.bit) != 0) << i++);
    }
    switch (tuples_append(index->index->index, &tuple)) {
    case TUPLES_LATER: return false;
    case TUPLES_NEVER: queue_lost(); return true;
    default: return true;
    }
#else
    (void)entry, (void)index, (void)part, (void)row;
    return false;
#endif
}

/* ---- records: a mote's rows one after the other, as far as they go to the same owner ---- */

/* Copies a row's columns of the part to a tuple of a record or, `back`, from there. */
static NOT_INLINED void copy(const struct query_entry *entry, const struct indexed_part *part,
                             struct held *row, struct wire_index_tuple *tuple, bool back)
{
    struct row_column column;
    uint8_t bit = 1, nulls = 0, *at = tuple->values;
    for (row_start(&column, entry); row_next_column(&column);) {
        uint8_t *value = row->values + column.offset;
        if (part->mask & column.bit) {
            if (back ? tuple->nulls & bit : row->nulls & column.bit)
                nulls = (uint8_t)(nulls | (back ? column.bit : bit));
            memcpy(back ? value : at, back ? at : value, column.size);
            at += column.size;
            bit = (uint8_t)(bit << 1);
        }
    }
    *(back ? &row->nulls : &tuple->nulls) = nulls;
}

/* Sends the row at a place, with those behind it that may go with it, to an owner, or has the way
 * there opened: what has gone waits no more. A record that waits on a way takes room that others
 * need, so it is given none before the way leads there; what is sampled meanwhile goes with it. */
static void send(const struct query_entry *entry, const struct indexed *index,
                 const struct indexed_part *part, uint8_t place,
                 const struct wire_index_owner *owner)
{
    uint8_t bytes[WIRE_CARRIED_MAXIMUM];
    struct wire_index_tuples *record = (struct wire_index_tuples *)bytes;
    struct place at = {owner->x, owner->y};
    struct way_route route = {.place = &at};
    struct way *way = way_to(owner->node, &route, WAY_EVERY_LEAST);
    if (way == NULL || !way->ready || way_has_records(way))
        return;
    struct waiting *waiting = waiting_of(entry);
    const struct held *first = held_at(waiting, index, place);
    uint8_t bit = (uint8_t)(1U << part->number), length = sizeof *record;
    uint8_t one = (uint8_t)(sizeof(struct wire_index_tuple) + part->width);
    uint16_t taken = 0;
    uint32_t last = first->epoch;
    *record = (struct wire_index_tuples){
        .carries = WIRE_CARRIES_TUPLE,
        .index = (uint16_t)(index->index->index | (uint16_t)part->number << INDEXED_PART_SHIFT),
        .node = first->node,
        .session = first->session,
        .epoch = first->epoch};
    for (uint8_t i = place; i < waiting->count && length + one <= WIRE_CARRIED_MAXIMUM &&
                            carried_takes((uint8_t)(length + one));
         i++) {
        struct held *row = held_at(waiting, index, i);
        if (!(row->parts & bit) || row->node != first->node || row->session != first->session ||
            row->epoch - last > UINT8_MAX || owner_of(entry, index, part, row) != owner)
            continue;
        struct wire_index_tuple *tuple = (struct wire_index_tuple *)(bytes + length);
        tuple->epochs = (uint8_t)(row->epoch - last);
        copy(entry, part, row, tuple, false);
        last = row->epoch;
        length = (uint8_t)(length + one);
        taken |= (uint16_t)(1U << i);
    }
    if (!taken || carried_send(owner->node, &route, record, length, INDEX_SECONDS,
                               WAY_EVERY_LEAST) != CARRIED_WAITS)
        return;
    for (uint8_t i = place; i < waiting->count; i++)
        if (taken >> i & 1)
            held_at(waiting, index, i)->parts &= (uint8_t)~bit;
}

/* The columns of a part are stored or go on, if they can. */
static void pass_on(const struct query_entry *entry, const struct indexed *index, uint8_t number,
                    uint8_t place)
{
    struct indexed_part part;
    struct held *row = held_at(waiting_of(entry), index, place);
    indexed_part(entry, index, number, &part);
    const struct wire_index_owner *owner = owner_of(entry, index, &part, row);
    if (owner->node != settings()->nodeid)
        send(entry, index, &part, place, owner);
    else if (store(entry, index, &part, row))
        row->parts &= (uint8_t)~(1U << number);
}

/* A row that nobody has taken for so long never will be. */
static bool given_up(const struct query_entry *entry, const struct held *row)
{
    uint32_t seconds, milliseconds;
    if (!time_known() || !entry_epoch_start(entry, row->epoch, &seconds, &milliseconds))
        return false;
    uint32_t age = time_at(clock_now()).seconds - seconds;
    bool old = row->session != tree_session() || (age > INDEX_GIVEN_UP && age <= INT32_MAX);
    if (old)
        queue_lost();
    return old;
}

#ifdef BOARD_TUPLES
/* What came first is forgotten once the index does not keep it any more: some in each round, which
 * are more than can come in it. */
static void forget_old(const struct query_entry *entry, const struct indexed *index)
{
    struct tuple first;
    for (uint8_t i = 0; i < INDEX_FORGOTTEN && tuples_first(index->index->index, &first) &&
                        !indexed_kept(entry, index, &first);
         i++)
        tuples_forget_first(index->index->index);
}

bool indexed_waits(void)
{
    struct indexed index;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (indexed_read(entry, &index) && waiting_of(entry)->count > 0)
            return true;
    return false;
}
#endif

/* One row of each index, in turn: to find its owners takes an AVR some ms. */
void app_tuples_due(void)
{
    struct indexed index;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        if (!indexed_read(entry, &index) || superseded(entry, &index))
            continue;
#ifdef BOARD_TUPLES
        forget_old(entry, &index);
#endif
        struct waiting *waiting = waiting_of(entry);
        uint8_t length = length_of(&index);
        if (waiting->turn >= waiting->count)
            waiting->turn = 0;
        if (waiting->count == 0)
            continue;
        struct held *row = held_at(waiting, &index, waiting->turn);
        for (uint8_t number = 0; number < index.index->parts; number++)
            if (row->parts >> number & 1)
                pass_on(entry, &index, number, waiting->turn);
        if (row->parts && !given_up(entry, row)) {
            waiting->turn++;
            continue;
        }
        waiting->count--;
        memmove(row, (uint8_t *)row + length, (size_t)((waiting->count - waiting->turn) * length));
    }
}

/* Rows that have come, or come back. False: they are malformed, or of no index that is known. */
static bool take(const uint8_t *bytes, uint8_t length, bool stores)
{
    uint8_t held[HELD_MOST] = {0}; /* columns of other parts are not known */
    struct held *row = (struct held *)held;
    struct indexed index;
    struct indexed_part part;
    const struct wire_index_tuples *record = (const struct wire_index_tuples *)bytes;
    if (length <= sizeof *record)
        return false;
    const struct query_entry *entry = indexed_find(INDEXED_NUMBER(record->index), &index);
    uint8_t number = (uint8_t)(record->index >> INDEXED_PART_SHIFT);
    if (entry == NULL || number >= index.index->parts)
        return false;
    indexed_part(entry, &index, number, &part);
    uint8_t one = (uint8_t)(sizeof(struct wire_index_tuple) + part.width);
    if ((length - sizeof *record) % one != 0)
        return false;
    row->node = record->node;
    row->session = record->session;
    row->epoch = record->epoch;
    row->parts = (uint8_t)(1U << number);
    for (uint8_t at = sizeof *record; at < length; at = (uint8_t)(at + one)) {
        struct wire_index_tuple *tuple = (struct wire_index_tuple *)(uintptr_t)(bytes + at);
        row->epoch += tuple->epochs;
        copy(entry, &part, row, tuple, true);
        if (!stores || owner_of(entry, &index, &part, row)->node != settings()->nodeid ||
            !store(entry, &index, &part, row))
            hold(entry, &index, row);
    }
    return true;
}

bool app_tuple(const uint8_t *record, uint8_t length)
{
#ifdef BOARD_TUPLES
    return take(record, length, true);
#else
    (void)record, (void)length;
    return false;
#endif
}

void app_tuple_lost(const uint8_t *record, uint8_t length)
{
    if (!take(record, length, false))
        queue_lost();
}
