#include "query/operators/meet.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "join/pairs.h"
#include "kernel/calls.h"
#include "net/app.h"
#include "net/transport/queue.h"
#include "query/expressions/vm.h"
#include "query/program/clauses.h"
#include "query/program/row_layout.h"

/* Bytes of a row's values at most, without the first: two rows travel in one record. */
#define WIDTH_MAXIMUM 24
#define DELAY_MAXIMUM 30
/* What STORED reads of a row besides its columns. */
#define FIELD_MOTE WIRE_STORED_NUMBER

/* The clause's state; behind it the places of rows, and for each a struct values. */
struct meet_state {
    uint32_t joined; /* rows of epochs before that are */
} __attribute__((packed));

struct values {
    uint16_t nulls;
    uint8_t bytes[]; /* of all columns but the first */
} __attribute__((packed));

/* What a program says of its pairs, and what of that is this mote's. It lies in the memory of
 * queries, which moves when a query comes or goes. */
struct meet {
    struct query_entry *entry;
    struct program_code condition;
    const uint8_t *motes; /* two bytes each */
    uint8_t motes_count, base, delay;
    uint8_t width;        /* bytes of a row's values without the first */
    const uint8_t *above; /* hosts that are farther up than this mote; … */
    const uint8_t *end;   /* … up to here */
    struct pairs pairs;
    uint8_t *values;
};

/* A moment of the join: what code is evaluated against. */
struct moment {
    struct eval_context context; /* the first, so that a reader finds the rest */
    const struct meet *meet;
    uint8_t entries[2]; /* of the rows of s and t */
};

static uint16_t half(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

/* The pairs of a host, which begins at `host`. */
static const struct pairs_pair *pairs_of(const uint8_t *host)
{
    return (const struct pairs_pair *)(host + sizeof(struct wire_pairs_host));
}
static uint8_t count_of(const uint8_t *host)
{
    return ((const struct wire_pairs_host *)host)->pairs;
}
static const uint8_t *behind(const uint8_t *host)
{
    return (const uint8_t *)(pairs_of(host) + count_of(host));
}

static bool pairs_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_pairs *clause = (const struct wire_pairs *)field->code.bytes;
    const uint8_t *at = (const uint8_t *)(clause + 1),
                  *end = field->code.bytes + field->code.length;
    uint32_t read = 0;
    if (field->code.length < sizeof *clause || facts->keeps & PROGRAM_KEEPS_PAIRS ||
        facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE) ||
        facts->program->period < WIRE_PERIOD_MINIMUM_MS || clause->delay == 0 ||
        clause->delay > DELAY_MAXIMUM || clause->base > clause->motes ||
        clause->width > WIDTH_MAXIMUM || clause->condition + 2 * clause->motes > end - at)
        return false;
    facts->keeps |= PROGRAM_KEEPS_PAIRS;
    /* It knows nothing but the two rows. */
    if (clause->condition > 0 &&
        (!vm_check(at, clause->condition, &read) || read & (VM_POINT(0) - 1)))
        return false;
    for (at += clause->condition + 2 * clause->motes; at < end; at = behind(at)) {
        if (end - at < (ptrdiff_t)sizeof(struct wire_pairs_host) || count_of(at) == 0 ||
            end - (const uint8_t *)pairs_of(at) < 2 * count_of(at))
            return false;
        for (uint8_t i = 0; i < count_of(at); i++)
            if (pairs_of(at)[i].s >= clause->motes || pairs_of(at)[i].t >= clause->motes)
                return false;
    }
    return true;
}

/* What a query's pairs are; false: it has none. Rows have no places yet. */
static bool look(struct query_entry *entry, struct meet *meet)
{
    struct program_field field;
    if (entry == NULL || !entry_clause(entry, WIRE_AGGREGATE_PAIRS, 0, &field))
        return false;
    const struct wire_pairs *clause = (const struct wire_pairs *)field.code.bytes;
    memset(meet, 0, sizeof *meet);
    meet->entry = entry;
    meet->condition = (struct program_code){(const uint8_t *)(clause + 1), clause->condition};
    meet->motes = meet->condition.bytes + clause->condition;
    meet->motes_count = clause->motes;
    meet->base = clause->base;
    meet->delay = clause->delay;
    meet->width = clause->width;
    meet->pairs.window = (struct pairs_window){clause->epochs, clause->rows};
    meet->end = field.code.bytes + field.code.length;
    const uint8_t *at = meet->motes + 2 * clause->motes;
    for (; at < meet->end && half(at) != settings()->nodeid;)
        at = behind(at);
    if (at < meet->end) {
        meet->pairs.pairs = pairs_of(at);
        meet->pairs.pairs_count = count_of(at);
        meet->pairs.rows_room = ((const struct wire_pairs_host *)at)->rows;
        at = behind(at);
    }
    meet->above = at;
    return true;
}

static uint16_t place_size(const struct meet *meet)
{
    return (uint16_t)(sizeof(struct values) + meet->width);
}

static uint16_t pairs_size(const struct query_entry *entry, const struct program_field *field)
{
    struct meet meet;
    (void)field;
    if (!look((struct query_entry *)entry, &meet) || meet.pairs.pairs_count == 0)
        return 0;
    return (uint16_t)(sizeof(struct meet_state) +
                      meet.pairs.rows_room * (sizeof(struct pairs_row) + place_size(&meet)));
}

/* Finds where the rows are, if this mote has pairs. */
static struct meet_state *open_places(struct meet *meet)
{
    if (meet->pairs.pairs_count == 0)
        return NULL;
    struct meet_state *state =
        (struct meet_state *)clauses_state(meet->entry, WIRE_AGGREGATE_PAIRS);
    meet->pairs.joined = state->joined;
    meet->pairs.rows = (struct pairs_row *)(state + 1);
    meet->values = (uint8_t *)(meet->pairs.rows + meet->pairs.rows_room);
    return state;
}

static struct values *values_at(const struct meet *meet, uint8_t place)
{
    return (struct values *)(meet->values + place * place_size(meet));
}

/* Whether somebody farther up has a pair of the mote. */
static bool needed_above(const struct meet *meet, uint8_t mote)
{
    if (mote < meet->base)
        return true;
    for (const uint8_t *at = meet->above; at < meet->end; at = behind(at))
        for (uint8_t i = 0; i < count_of(at); i++)
            if (pairs_of(at)[i].s == mote || pairs_of(at)[i].t == mote)
                return true;
    return false;
}

bool meet_passes(const struct wire_result *row, uint8_t length, bool own)
{
    struct meet meet;
    struct pairs_row waits = {.epoch = row->epoch};
    uint8_t place = 0;
    if (!look(entry_of(row->query), &meet) || meet.motes_count == 0)
        return true;
    while (waits.mote < meet.motes_count && half(meet.motes + 2 * waits.mote) != row->node)
        waits.mote++;
    if (waits.mote == meet.motes_count)
        return !own; /* it is of no pair; of others the gateway may not have known */
    if (length < sizeof *row + 1 + meet.width || open_places(&meet) == NULL)
        return true;
    waits.roles = row->values[0] & (PAIRS_S | PAIRS_T);
    switch (pairs_put(&meet.pairs, &waits, &place)) {
    case PAIRS_PUT: {
        struct values *values = values_at(&meet, place);
        values->nulls = row->nulls;
        memcpy(values->bytes, &row->values[1], meet.width);
        break;
    }
    case PAIRS_DOUBLED: break;
    default: return true;
    }
    return needed_above(&meet, waits.mote);
}

bool app_child_row(const struct wire_result *row, uint8_t length)
{
    return length < sizeof *row || meet_passes(row, length, false);
}

/* A field of one of the two rows. */
static bool read_row(uint8_t operand, int32_t *value, const struct eval_context *context)
{
    const struct moment *now = (const struct moment *)context;
    uint8_t role = operand >> 4, field = operand & 15;
    struct row_column column;
    if (role > 1)
        return false;
    uint8_t place = now->entries[role];
    if (field == FIELD_MOTE) {
        *value = half(now->meet->motes + 2 * now->meet->pairs.rows[place].mote);
        return true;
    }
    const struct values *values = values_at(now->meet, place);
    for (row_start(&column, context->query); row_next_column(&column); field--)
        if (field == 0) {
            if (column.offset == 0 || column.offset + column.size > now->meet->width + 1 ||
                values->nulls & column.bit)
                return false;
            *value = row_unpack(&values->bytes[column.offset - 1], column.field.format);
            return true;
        }
    return false;
}

static const IN_FLASH struct vm_readers meet_readers = {.stored = read_row};

struct joined {
    struct wire_joined record;
    uint8_t values[2 * WIDTH_MAXIMUM];
} __attribute__((packed));

/* What travels of two rows. */
static NOT_INLINED void tell(const struct meet *meet, uint8_t s, uint8_t t)
{
    const struct pairs_row *of_s = &meet->pairs.rows[s], *of_t = &meet->pairs.rows[t];
    const struct values *values_s = values_at(meet, s), *values_t = values_at(meet, t);
    struct joined joined = {.record = {.query = meet->entry->query,
                                       .s = half(meet->motes + 2 * of_s->mote),
                                       .s_epoch = of_s->epoch,
                                       .s_nulls = values_s->nulls,
                                       .t = half(meet->motes + 2 * of_t->mote),
                                       .t_epoch = of_t->epoch,
                                       .t_nulls = values_t->nulls}};
    memcpy(joined.values, values_s->bytes, meet->width);
    memcpy(joined.values + meet->width, values_t->bytes, meet->width);
    queue_push(WIRE_PACKET_JOINED, &joined, (uint8_t)(sizeof joined.record + 2U * meet->width));
}

static void met(uint8_t s, uint8_t t, void *context)
{
    const struct meet *meet = context;
    struct moment now = {{&meet_readers, meet->entry, 0, NULL}, meet, {s, t}};
    int32_t value;
    if (meet->condition.length == 0 ||
        (program_compute(&meet->condition, &now.context, &value) && value != 0))
        tell(meet, s, t);
}

void meet_epoch(struct query_entry *entry)
{
    struct meet meet;
    struct meet_state *state;
    if (!look(entry, &meet) || (state = open_places(&meet)) == NULL)
        return;
    pairs_join(&meet.pairs, entry->epoch + 1 - meet.delay, met, &meet);
    state->joined = meet.pairs.joined;
}

const IN_FLASH struct clause clause_pairs = {WIRE_AGGREGATE_PAIRS, pairs_check, NULL,
                                             pairs_size,           NULL,        NULL};
