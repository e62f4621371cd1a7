#include "query/operators/join.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/calls.h"
#include "lib/wide.h"
#include "net/transport/queue.h"
#include "query/expressions/attribute.h"
#include "query/operators/meet.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/operators/storage.h"
#include "query/program/clauses.h"
#include "query/query_conf.h"

/* Ages of rows are reckoned up to so many s. */
#define AGE_SECONDS ((uint32_t)40 * 24 * 3600)
#define UNKNOWN UINT32_MAX

struct source {
    uint32_t next, first, end; /* numbers of rows */
} __attribute__((packed));

/* The clause's state. */
struct join_state {
    bool any;       /* a row has been produced */
    uint32_t nulls; /* bit n: attribute n is NULL */
    struct source sources[WIRE_SOURCES_MAXIMUM];
    int32_t values[]; /* of the attributes that the query reads, by number */
} __attribute__((packed));

/* A row met at this moment. */
struct met {
    const struct query_entry *point; /* whose it is; NULL outside of a join */
    struct stored_row row;
    struct program_code combine;  /* aggregate of each field that is combined; length 0: none is */
    const struct source *numbers; /* of the rows that are */
};

/* No operand: it names a source that cannot be. */
#define NOTHING UINT8_MAX

static void work(void);
static struct {
    struct met met[WIRE_SOURCES_MAXIMUM];
    /* what combining a field gave last: a condition asks for it again and again */
    struct {
        uint8_t operand; /* of STORED; NOTHING: none */
        bool known;
        int32_t value;
    } last;
    struct event working; /* goes on in the background */
    struct timer retry;   /* when the queue has no room, or others are to go first */
} joining = {.last = {.operand = NOTHING}, .working = {.handler = work}};

static uint8_t count_below(uint32_t mask, uint8_t bit)
{
    uint8_t count = 0;
    for (; bit > 0; bit--, mask >>= 1)
        count = (uint8_t)(count + (mask & 1));
    return count;
}

static bool from_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_from *from = (const struct wire_from *)field->code.bytes;
    facts->keeps |= PROGRAM_KEEPS_JOIN;
    return ++facts->sources <= WIRE_SOURCES_MAXIMUM && field->code.length >= sizeof *from &&
           field->code.length <= sizeof *from + WIRE_FIELDS_MAXIMUM &&
           from->match <= WIRE_MATCH_COMBINE;
}

static uint16_t from_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    return (uint16_t)(sizeof(struct join_state) +
                      count_below(entry->attributes, WIRE_ATTRIBUTE_MAXIMUM + 1) * sizeof(int32_t));
}

static struct join_state *state_of(const struct query_entry *entry)
{
    return (struct join_state *)clauses_state(entry, WIRE_AGGREGATE_FROM);
}

static bool source(const struct query_entry *entry, uint8_t index, struct program_field *field)
{
    return entry_clause(entry, WIRE_AGGREGATE_FROM, index, field);
}

static const struct wire_from *from_of(const struct program_field *field)
{
    return (const struct wire_from *)field->code.bytes;
}

bool joins_rows(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_FROM) != NULL;
}

/* How old a row is at the start of the entry's epoch, in ms; ages beyond 40 days are that. UNKNOWN:
 * it is of a session of the root that is over, whose time tells nothing now. */
static uint32_t age_of(const struct stored_row *row, const struct query_entry *entry)
{
    uint32_t seconds, milliseconds;
    entry_epoch_start(entry, entry->epoch, &seconds, &milliseconds);
    uint32_t apart = seconds - row->seconds;
    int16_t rest = (int16_t)((uint16_t)milliseconds - row->milliseconds);
    if (row->seconds > seconds || (apart == 0 && rest < 0))
        return 0U - apart > DISORDER_SECONDS ? UNKNOWN : 0;
    return (apart > AGE_SECONDS ? AGE_SECONDS : apart) * 1000 + (uint32_t)rest;
}

/* Leaves out the point's rows before the newest that are not older than so many ms. A row that
 * seems younger than the next is of a session before that one's. */
static NOT_INLINED void leave_older(const struct query_entry *entry,
                                    const struct query_entry *point, struct source *rows,
                                    uint32_t age)
{
    struct stored_row row;
    uint32_t number = rows->end, oldest = 0, now;
    for (; number != rows->first; number--) {
        if (!storage_row(point, number - 1, &row))
            continue;
        now = age_of(&row, entry);
        if (now > age || now + DISORDER_SECONDS * 1000 < oldest)
            break;
        oldest = now;
    }
    rows->first = number;
}

void join_begin(struct query_entry *entry)
{
    struct source *rows = state_of(entry)->sources;
    struct program_field field;
    memset(rows, 0, sizeof state_of(entry)->sources);
    for (uint8_t i = 0; source(entry, i, &field); i++, rows++) {
        const struct query_entry *point = storage_find(from_of(&field)->point);
        if (point == NULL)
            continue;
        uint32_t lasts = storage_point(point)->seconds,
                 age = lasts != 0 && lasts < AGE_SECONDS ? lasts * 1000 : UNKNOWN;
        uint16_t shown;
        rows->end = storage_end(point, &shown);
        rows->first = rows->end - shown;
        if (from_of(&field)->match == WIRE_MATCH_COMBINE && entry_program(entry)->period < age)
            age = entry_program(entry)->period;
        if (age != UNKNOWN)
            leave_older(entry, point, rows, age);
        rows->next = rows->first;
    }
}

void join_start(struct query_entry *entry)
{
    struct join_state *state = state_of(entry);
    struct eval_context now = entry_context(entry);
    uint8_t index = 0;
    state->any = false;
    state->nulls = 0;
    uint32_t bit = 1;
    for (uint8_t attribute = 0; attribute <= WIRE_ATTRIBUTE_MAXIMUM; attribute++, bit <<= 1) {
        int32_t value = 0;
        if (!(entry->attributes & bit))
            continue;
        if (!attribute_read(attribute, &value, &now))
            state->nulls |= bit;
        state->values[index++] = value;
    }
    entry->progress = EPOCH_JOINING;
    event_post(&joining.working);
}

void meet_due(void) { event_post(&joining.working); }

/* What is sampled, as it was when the epoch began. */
static bool read_attribute(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    const struct query_entry *entry = context->query;
    if (attribute >= WIRE_ATTRIBUTE_EVENT_NODEID)
        return attribute_read(attribute, value, context);
    const struct join_state *state = state_of(entry);
    *value = state->values[count_below(entry->attributes, attribute)];
    return !(state->nulls >> attribute & 1);
}

/* An aggregate over one field of the rows that are combined, rounded to the field's own integers.
 */
static bool combined(const struct met *of, uint8_t aggregate, uint8_t field, int32_t *value)
{
    int64_t sum = 0;
    uint16_t count = 0;
    for (uint32_t number = of->numbers->first; number != of->numbers->end; number++) {
        struct stored_row row;
        int32_t one;
        board_watchdog(); /* a thousand rows in EEPROM take a second */
        if (!storage_row(of->point, number, &row) || !storage_value(of->point, &row, field, &one))
            continue;
        if (count == 0 || (aggregate == WIRE_AGGREGATE_MIN ? one < *value : one > *value))
            *value = one;
        wide_add(&sum, one, 1);
        count++;
    }
    switch (aggregate) {
    case WIRE_AGGREGATE_COUNT: *value = count; return true;
    case WIRE_AGGREGATE_MIN:
    case WIRE_AGGREGATE_MAX: return count > 0;
    default: /* SUM; AVG, half away from zero */
        return count > 0 &&
               wide_quotient(sum, 0, aggregate == WIRE_AGGREGATE_SUM ? 1 : count, value);
    }
}

/* A field of the rows met at this moment. */
static bool read_stored(uint8_t operand, int32_t *value, const struct eval_context *context)
{
    (void)context;
    uint8_t index = operand >> 4, field = operand & 15;
    const struct met *of = &joining.met[index];
    if (index >= WIRE_SOURCES_MAXIMUM || of->point == NULL)
        return false;
    if (field == WIRE_STORED_NUMBER) {
        *value = (uint16_t)of->row.number;
        return true;
    }
    uint8_t aggregate = field < of->combine.length ? of->combine.bytes[field] : 0;
    if (aggregate == 0)
        return storage_value(of->point, &of->row, field, value);
    if (joining.last.operand != operand) {
        joining.last.known = combined(of, aggregate, field, &joining.last.value);
        joining.last.operand = operand;
    }
    *value = joining.last.value;
    return joining.last.known;
}

static const IN_FLASH struct vm_readers join_readers = {read_attribute, row_changes, read_stored};

/* Makes the values of a row those that are `at` of `span` on the way to the next one's; NULL where
 * one of both is. */
static NOT_INLINED void blend(const struct query_entry *point, struct stored_row *row,
                              const struct stored_row *next, uint32_t at, uint32_t span)
{
    struct row_column column;
    row->nulls |= next->nulls;
    for (row_start(&column, point); row_next_column(&column);) {
        uint8_t *bytes = &row->values[column.offset];
        int32_t value =
            wide_between(row_unpack(bytes, column.field.format),
                         row_unpack(&next->values[column.offset], column.field.format), at, span);
        memcpy(bytes, &value, column.size); /* little-endian, as wire.h makes sure */
    }
}

/* Puts into `to` the point's values one of its periods ago, between two of its rows; false: there
 * are no two of this session around that moment. */
static NOT_INLINED bool interpolate(const struct query_entry *entry, struct met *to,
                                    const struct source *rows)
{
    struct stored_row next;
    uint32_t period = entry_program(to->point)->period, age = 0, newer;
    to->row.number = rows->end;
    do {
        next = to->row;
        newer = age;
        if (next.number == rows->first || !storage_row(to->point, next.number - 1, &to->row))
            return false;
        age = age_of(&to->row, entry);
    } while (age < period);
    if (age == period)
        return true;
    if (next.number == rows->end || age == UNKNOWN)
        return false;
    blend(to->point, &to->row, &next, age - period, age - newer);
    return true;
}

/* The row of a source that is met next; false: there is none any more. Leaves `next` where it is.
 */
static bool load(const struct query_entry *entry, uint8_t index)
{
    struct source *rows = &state_of(entry)->sources[index];
    struct met *to = &joining.met[index];
    struct program_field field;
    (void)source(entry, index, &field);
    to->point = storage_find(from_of(&field)->point);
    to->combine.length = 0;
    to->numbers = rows;
    joining.last.operand = NOTHING;
    if (to->point == NULL || rows->next == rows->end)
        return false;
    if (from_of(&field)->match != WIRE_MATCH_ALL)
        rows->next = rows->end - 1; /* the newest stands for all */
    switch (from_of(&field)->match) {
    case WIRE_MATCH_LINEAR: return interpolate(entry, to, rows);
    case WIRE_MATCH_COMBINE:
        to->combine.bytes = field.code.bytes + sizeof(struct wire_from);
        to->combine.length = (uint8_t)(field.code.length - sizeof(struct wire_from));
        return storage_row(to->point, rows->next, &to->row);
    default:
        /* Rows that a newer one has displaced meanwhile are passed over. */
        do {
            if (storage_row(to->point, rows->next, &to->row))
                return true;
        } while (++rows->next != rows->end);
        return false;
    }
}

/* Meets one pair, and goes on to the next; false: there is none. */
static bool pair(struct query_entry *entry)
{
    struct program_field field;
    struct join_state *state = state_of(entry);
    bool two = source(entry, 1, &field);
    if (!load(entry, 0))
        return false;
    if (two && !load(entry, 1)) {
        state->sources[1].next = state->sources[1].first;
        state->sources[0].next++;
        return true;
    }
    struct eval_context context = row_context(entry);
    context.readers = &join_readers;
    if (program_passes(entry_program(entry), &context)) {
        output_joined(&context);
        state->any = true;
    }
    state->sources[two ? 1 : 0].next++;
    return true;
}

static void finish(struct query_entry *entry)
{
    entry->progress = EPOCH_DONE;
    output_end(entry, state_of(entry)->any);
}

/* Rows of motes, as far as `left` goes; false: there is more. */
static bool work_on_pairs(struct query_entry *entry, uint8_t *left, bool *waiting)
{
    for (;; --*left)
        switch (meet_go_on(entry)) {
        case MEET_WAITS: *waiting = true; return true;
        case MEET_OVER: return true;
        default:
            if (*left == 0)
                return false;
        }
}

static void work(void)
{
    uint8_t left = PAIRS_AT_ONCE;
    bool waiting = false, busy = false;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        busy |= !work_on_pairs(entry, &left, &waiting);
        while (entry->progress == EPOCH_JOINING) {
            if (queue_room() < JOIN_QUEUE_RESERVE) {
                waiting = true;
                break;
            }
            if (left == 0) {
                busy = true;
                break;
            }
            left--;
            if (!pair(entry))
                finish(entry);
        }
        joining.met[0].point = joining.met[1].point = NULL;
    }
    /* By a timer, which lets others that are due go first: events would keep them waiting. */
    if (busy || waiting)
        timer_start(&joining.retry, clock_now() + (busy ? 0 : CLOCK_MS(JOIN_RETRY_MS)), work);
}

const IN_FLASH struct clause clause_from = {WIRE_AGGREGATE_FROM, from_check, NULL,
                                            from_size,           NULL,       NULL};
