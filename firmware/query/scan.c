#include "query/scan.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "net/queue.h"
#include "query/attribute.h"
#include "query/epochs.h"
#include "query/output.h"
#include "query/row.h"
#include "query/storage.h"
#include "query/wide.h"

/* Pairs of rows between two looks at what else there is to do. */
#define PAIRS_AT_ONCE 8
/* Room that is left in the queue for others' records, in bytes. */
#define QUEUE_RESERVE 900
/* Ages of rows are reckoned up to so many s. */
#define AGE_SECONDS (40UL * 24 * 3600)
#define UNKNOWN UINT32_MAX
/* Rows of several queries are stored this much out of order at most: sampling takes a while. Clocks step back by less. */
#define DISORDER_SECONDS 2
/* Wait for the queue to drain. */
#define RETRY CLOCK_MS(500)

struct source {
    uint32_t next, first, end; /* numbers of rows */
} __attribute__((packed));

/* In the slot's memory, behind its windows. */
struct scan {
    bool any;       /* a row has been produced */
    uint32_t nulls; /* bit n: attribute n is NULL */
    struct source sources[WIRE_SOURCES_MAXIMUM];
    int32_t values[]; /* of the attributes that the query reads, by number */
} __attribute__((packed));

/* The rows met at this moment, and whose they are; NULL outside of a scan. */
static struct {
    const struct slot *point;
    struct stored_row row;
    uint32_t number;
    struct program_code combine; /* aggregate of each field that is combined; length 0: none is */
    uint32_t begin, end;                /* of the rows that are */
} met[WIRE_SOURCES_MAXIMUM];

/* No operand: it names a source that cannot be. */
#define NOTHING UINT8_MAX
/* What combining a field gave last: a condition asks for it again and again. */
static struct {
    uint8_t operand; /* of STORED; NOTHING: none */
    bool known;
    int32_t value;
} last = {.operand = NOTHING};

static void work(void);
static struct event working = {.handler = work};
static struct timer retry;

static uint8_t count_below(uint32_t mask, uint8_t bit)
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < bit; i++)
        count = (uint8_t)(count + (mask >> i & 1));
    return count;
}

uint16_t scan_size(const struct slot *slot)
{
    if (!scan_joins(slot))
        return 0;
    return (uint16_t)(sizeof(struct scan) + count_below(slot->attributes, WIRE_ATTRIBUTE_MAXIMUM + 1) * sizeof(int32_t));
}

static struct scan *scan_of(const struct slot *slot) { return (struct scan *)(slot_windows(slot) + slot->windows); }

static bool source(const struct slot *slot, uint8_t index, struct program_field *field)
{
    return slot_clause(slot, WIRE_AGGREGATE_FROM, index, field);
}

static const struct wire_from *from_of(const struct program_field *field) { return (const struct wire_from *)field->code.bytes; }

bool scan_joins(const struct slot *slot)
{
    struct program_field field;
    return source(slot, 0, &field);
}

/* How old a row is at the start of the slot's epoch, in ms; ages beyond 40 days are that. UNKNOWN: it is of a session of the root that is
 * over, whose time tells nothing now. */
static uint32_t age_of(const struct stored_row *row, const struct slot *slot)
{
    uint32_t seconds, milliseconds;
    epochs_start(slot, &seconds, &milliseconds);
    if (row->seconds > seconds || (row->seconds == seconds && row->milliseconds > milliseconds))
        return row->seconds - seconds > DISORDER_SECONDS ? UNKNOWN : 0;
    seconds -= row->seconds;
    return (seconds > AGE_SECONDS ? AGE_SECONDS : seconds) * 1000 + milliseconds - row->milliseconds;
}

/* The first of the point's newest rows, from `first` on, that are not older than so many ms. A row that seems younger than the next is of a
 * session before that one's. */
static uint32_t not_older(const struct slot *slot, const struct slot *point, uint32_t first, uint32_t age)
{
    struct stored_row row;
    uint32_t number = storage_end(point), oldest = 0, now;
    for (; number != first; number--) {
        if (!storage_row(point, number - 1, &row))
            continue;
        now = age_of(&row, slot);
        if (now > age || now + DISORDER_SECONDS * 1000 < oldest)
            break;
        oldest = now;
    }
    return number;
}

void scan_begin(struct slot *slot)
{
    struct scan *scan = scan_of(slot);
    struct program_field field;
    memset(scan->sources, 0, sizeof scan->sources);
    for (uint8_t i = 0; source(slot, i, &field); i++) {
        const struct slot *point = storage_find(from_of(&field)->point);
        struct source *rows = &scan->sources[i];
        if (point == NULL)
            continue;
        uint32_t lasts = storage_point(point)->seconds;
        rows->first = storage_first(point);
        rows->end = storage_end(point);
        if (lasts != 0 && lasts < AGE_SECONDS)
            rows->first = not_older(slot, point, rows->first, lasts * 1000);
        if (from_of(&field)->match == WIRE_MATCH_COMBINE)
            rows->first = not_older(slot, point, rows->first, slot_program(slot)->period);
        rows->next = rows->first;
    }
}

void scan_start(struct slot *slot)
{
    struct scan *scan = scan_of(slot);
    uint8_t index = 0;
    scan->any = false;
    scan->nulls = 0;
    for (uint8_t attribute = 0; attribute <= WIRE_ATTRIBUTE_MAXIMUM; attribute++) {
        int32_t value = 0;
        if (!(slot->attributes >> attribute & 1))
            continue;
        if (!attribute_read(attribute, &value, slot))
            scan->nulls |= (uint32_t)1 << attribute;
        scan->values[index++] = value;
    }
    slot->state = (uint8_t)((slot->state & ~SLOT_SAMPLING) | SLOT_SCANNING);
    event_post(&working);
}

bool scan_attribute(const struct slot *slot, uint8_t attribute, int32_t *value)
{
    const struct scan *scan = scan_of(slot);
    *value = scan->values[count_below(slot->attributes, attribute)];
    return !(scan->nulls >> attribute & 1);
}

/* An aggregate over one field of the rows that are combined, rounded to the field's own integers. */
static bool combined(uint8_t index, uint8_t aggregate, uint8_t field, int32_t *value)
{
    int64_t sum = 0;
    int32_t least = INT32_MAX, most = INT32_MIN;
    uint32_t count = 0, rest, quotient;
    for (uint32_t number = met[index].begin; number != met[index].end; number++) {
        struct stored_row row;
        int32_t one;
        board_watchdog(); /* a thousand rows in EEPROM take a second */
        if (!storage_row(met[index].point, number, &row) || !storage_value(met[index].point, &row, field, &one))
            continue;
        sum += one;
        least = one < least ? one : least;
        most = one > most ? one : most;
        count++;
    }
    switch (aggregate) {
    case WIRE_AGGREGATE_COUNT:
        *value = (int32_t)count;
        return true;
    case WIRE_AGGREGATE_MIN:
        *value = least;
        break;
    case WIRE_AGGREGATE_MAX:
        *value = most;
        break;
    case WIRE_AGGREGATE_SUM:
        *value = (int32_t)sum;
        return count > 0 && sum >= INT32_MIN && sum <= INT32_MAX;
    default: /* AVG, half away from zero */
        if (!wide_divide((uint64_t)(sum < 0 ? -sum : sum), count, &quotient, &rest))
            return false;
        quotient += rest >= count - rest;
        *value = sum < 0 ? (int32_t)-quotient : (int32_t)quotient;
    }
    return count > 0;
}

bool scan_stored(uint8_t operand, int32_t *value)
{
    uint8_t index = operand >> 4, field = operand & 15;
    if (index >= WIRE_SOURCES_MAXIMUM || met[index].point == NULL)
        return false;
    if (field == WIRE_STORED_NUMBER) {
        *value = (uint16_t)met[index].number;
        return true;
    }
    uint8_t aggregate = field < met[index].combine.length ? met[index].combine.bytes[field] : 0;
    if (aggregate == 0)
        return storage_value(met[index].point, &met[index].row, field, value);
    if (last.operand != operand) {
        last.known = combined(index, aggregate, field, &last.value);
        last.operand = operand;
    }
    *value = last.value;
    return last.known;
}

/* Rounded value at `at` on the line from a at 0 to b at `span`; 0 < at <= span. */
static int32_t between(int32_t a, int32_t b, uint32_t at, uint32_t span)
{
    uint32_t rise = b > a ? (uint32_t)b - (uint32_t)a : (uint32_t)a - (uint32_t)b, part, rest;
    wide_divide((uint64_t)rise * at, span, &part, &rest); /* at <= span: it fits */
    part += rest >= span - rest;
    return (int32_t)(b > a ? (uint32_t)a + part : (uint32_t)a - part);
}

/* Puts into met[index].row the point's values one of its periods ago, between two of its rows; false: there are no two around that
 * moment. */
static bool interpolate(const struct slot *slot, uint8_t index, const struct source *rows)
{
    const struct slot *point = met[index].point;
    struct stored_row after, *at = &met[index].row;
    uint32_t period = slot_program(point)->period, age = 0, newer = period;
    for (uint32_t number = rows->end; age < period; number--) {
        after = *at;
        newer = age;
        if (number == rows->first || !storage_row(point, number - 1, at))
            return false;
        met[index].number = number - 1;
        age = age_of(at, slot);
    }
    if (age == period)
        return true;
    if (met[index].number + 1 == rows->end)
        return false;
    struct program_field field;
    uint8_t used = 0, i = 0;
    for (program_start(&field); slot_next_column(point, &field); i++) {
        int32_t a, b;
        if (storage_value(point, at, i, &a) && storage_value(point, &after, i, &b)) {
            int32_t value = between(a, b, age - period, age - newer);
            memcpy(&at->values[used], &value, row_format_size(field.format)); /* little-endian, as wire.h makes sure */
        } else {
            at->nulls |= (uint16_t)(1U << i);
        }
        used = (uint8_t)(used + row_format_size(field.format));
    }
    return true;
}

/* The row of a source that is met next; false: there is none any more. Leaves `next` where it is. */
static bool load(const struct slot *slot, uint8_t index, const struct program_field *field)
{
    struct source *rows = &scan_of(slot)->sources[index];
    const struct slot *point = storage_find(from_of(field)->point);
    met[index].point = point;
    met[index].combine.length = 0;
    last.operand = NOTHING;
    if (point == NULL || rows->next == rows->end)
        return false;
    switch (from_of(field)->match) {
    case WIRE_MATCH_COMBINE:
        met[index].combine.bytes = field->code.bytes + sizeof(struct wire_from);
        met[index].combine.length = (uint8_t)(field->code.length - sizeof(struct wire_from));
        met[index].begin = rows->first;
        met[index].end = rows->end;
        rows->next = met[index].number = rows->end - 1; /* the newest stands for all */
        return storage_row(point, rows->next, &met[index].row);
    case WIRE_MATCH_LINEAR:
        rows->next = rows->end - 1;
        return interpolate(slot, index, rows);
    default:
        /* Rows that a newer one has displaced meanwhile are passed over. */
        while (rows->next != rows->end && !storage_row(point, rows->next, &met[index].row))
            rows->next++;
        met[index].number = rows->next;
        return rows->next != rows->end;
    }
}

/* Meets one pair, and goes on to the next; false: there is none. */
static bool pair(struct slot *slot)
{
    struct program_field outer, inner;
    struct scan *scan = scan_of(slot);
    bool two = source(slot, 1, &inner);
    if (!source(slot, 0, &outer) || !load(slot, 0, &outer))
        return false;
    if (two && !load(slot, 1, &inner)) {
        scan->sources[1].next = scan->sources[1].first;
        scan->sources[0].next++;
        return true;
    }
    if (row_passes(slot)) {
        output_joined(slot);
        scan->any = true;
    }
    scan->sources[two ? 1 : 0].next++;
    return true;
}

static void finish(struct slot *slot)
{
    slot->state &= (uint8_t)~SLOT_SCANNING;
    output_end(slot, scan_of(slot)->any);
}

static void work(void)
{
    uint8_t left = PAIRS_AT_ONCE;
    bool waiting = false, busy = false;
    for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
        while (slot->state & SLOT_SCANNING) {
            if (queue_room() < QUEUE_RESERVE) {
                waiting = true;
                break;
            }
            if (left == 0) {
                busy = true;
                break;
            }
            left--;
            if (!pair(slot))
                finish(slot);
        }
        met[0].point = met[1].point = NULL;
    }
    /* By a timer, which lets others that are due go first: events would keep them waiting. */
    if (busy || waiting)
        timer_start(&retry, clock_now() + (busy ? 0 : RETRY), work);
}
