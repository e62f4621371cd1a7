#include "query/operators/meet.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "join/pairs.h"
#include "kernel/calls.h"
#include "net/app.h"
#include "net/schedule/way_cells.h"
#include "net/transport/carried.h"
#include "net/transport/queue.h"
#include "net/transport/trails.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/expressions/vm.h"
#include "query/program/clauses.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"

/* Bytes of a row's values at most, without the first: two rows travel in one record. */
#define WIDTH_MAXIMUM 24
#define DELAY_MAXIMUM 30
/* Motes that join, where rows go to them by ways: bits of struct sending. */
#define HOSTS_MAXIMUM 16
/* What STORED reads of a row besides its columns. */
#define FIELD_MOTE WIRE_STORED_NUMBER

/* The clause's state; behind it rows that wait for ways, the places of rows that are joined here,
 * and for each of these a struct values. */
struct meet_state {
    uint32_t joined; /* rows of epochs before that are */
    uint16_t quiet;  /* rounds until its ways are to be kept open */
} __attribute__((packed));

/* A row that waits for ways to its hosts, as it goes to them. */
struct sending {
    uint16_t gone;   /* bit n: to the program's host n it has, or need not go */
    uint8_t carries; /* 0: there is none */
    struct wire_result row;
    /* behind it values[]: all columns */
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
    uint8_t way;          /* enum wire_pairs */
    const uint8_t *hosts; /* all; … */
    const uint8_t *above; /* those whose mote is farther up than this one, where rows climb; … */
    const uint8_t *end;   /* … up to here */
    uint8_t *waiting;     /* struct sending, of sending_count() places */
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
        clause->way > WIRE_PAIRS_FROM_ROOT || clause->width > WIDTH_MAXIMUM ||
        clause->condition + 2 * clause->motes > end - at)
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
    meet->way = clause->way;
    meet->hosts = meet->motes + 2 * clause->motes;
    const uint8_t *at = meet->hosts;
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

/* Whether a host needs rows of a mote that have passed as `roles`; of PAIRS_S and PAIRS_T, any. */
static bool host_needs(const uint8_t *host, uint8_t mote, uint8_t roles)
{
    for (uint8_t i = 0; i < count_of(host); i++)
        if ((roles & PAIRS_S && pairs_of(host)[i].s == mote) ||
            (roles & PAIRS_T && pairs_of(host)[i].t == mote))
            return true;
    return false;
}

/* Whether a host from `at` on, but for this mote, does. */
static bool needed(const struct meet *meet, const uint8_t *at, uint8_t mote, uint8_t roles)
{
    for (; at < meet->end; at = behind(at))
        if (half(at) != settings()->nodeid && host_needs(at, mote, roles))
            return true;
    return false;
}

/* The program's number for a mote; motes_count: it has none. */
static uint8_t number_of(const struct meet *meet, uint16_t node)
{
    uint8_t mote = 0;
    while (mote < meet->motes_count && half(meet->motes + 2 * mote) != node)
        mote++;
    return mote;
}

/* Rows for which there is room until they go by ways from here. */
static uint8_t sending_count(const struct meet *meet)
{
    if (meet->way == WIRE_PAIRS_FROM_ROOT)
        return settings()->root ? MEET_SENDING_ROOT : 0;
    bool sends = meet->way == WIRE_PAIRS_SENT &&
                 needed(meet, meet->hosts, number_of(meet, settings()->nodeid), PAIRS_S | PAIRS_T);
    return sends ? MEET_SENDING : 0;
}

static uint8_t sending_size(const struct meet *meet)
{
    return (uint8_t)(sizeof(struct sending) + 1U + meet->width);
}

static uint16_t pairs_size(const struct query_entry *entry, const struct program_field *field)
{
    struct meet meet;
    (void)field;
    if (!look((struct query_entry *)entry, &meet))
        return 0;
    uint16_t size =
        (uint16_t)(sending_count(&meet) * (unsigned)sending_size(&meet) +
                   meet.pairs.rows_room * (sizeof(struct pairs_row) + place_size(&meet)));
    return size ? (uint16_t)(sizeof(struct meet_state) + size) : 0;
}

/* Finds where the rows are; NULL: this mote has no part in it beyond sampling. */
static struct meet_state *open_places(struct meet *meet)
{
    uint8_t sending = sending_count(meet);
    if (meet->pairs.pairs_count == 0 && sending == 0)
        return NULL;
    struct meet_state *state =
        (struct meet_state *)clauses_state(meet->entry, WIRE_AGGREGATE_PAIRS);
    meet->pairs.joined = state->joined;
    meet->waiting = (uint8_t *)(state + 1);
    meet->pairs.rows = (struct pairs_row *)(meet->waiting + sending * sending_size(meet));
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
    return mote < meet->base ||
           (meet->way == WIRE_PAIRS_CLIMB && needed(meet, meet->above, mote, PAIRS_S | PAIRS_T));
}

/* Takes a row for the pairs of this mote; false: it is for none of them, or too late, or there is
 * no room. */
static bool take(struct meet *meet, const struct wire_result *row, uint8_t mote)
{
    struct pairs_row waits = {
        .epoch = row->epoch, .mote = mote, .roles = row->values[0] & (PAIRS_S | PAIRS_T)};
    uint8_t place = 0;
    switch (pairs_put(&meet->pairs, &waits, &place)) {
    case PAIRS_PUT: {
        struct values *values = values_at(meet, place);
        values->nulls = row->nulls;
        memcpy(values->bytes, &row->values[1], meet->width);
        return true;
    }
    case PAIRS_DOUBLED: return true;
    default: return false;
    }
}

/* ---- rows that go by ways ---- */

static struct sending *sending_at(const struct meet *meet, unsigned place)
{
    return (struct sending *)(meet->waiting + place * sending_size(meet));
}

static uint8_t row_length(const struct meet *meet)
{
    return (uint8_t)(sizeof(struct wire_result) + 1U + meet->width);
}

static bool says_nothing(const struct sending *sending)
{
    return (sending->row.values[0] & (PAIRS_S | PAIRS_T)) == 0;
}

/* A row that cannot go to its hosts is the gateway's to join, as far as it can. */
static void send_up(const struct meet *meet, const struct sending *sending)
{
    if (!says_nothing(sending))
        queue_push(WIRE_PACKET_RESULT, &sending->row, row_length(meet));
}

/* Those behind it move up: rows lie, and so go, in the order in which they came. */
static void forget(const struct meet *meet, uint8_t place)
{
    uint8_t last = (uint8_t)(sending_count(meet) - 1);
    memmove(sending_at(meet, place), sending_at(meet, place + 1U),
            (size_t)(last - place) * sending_size(meet));
    sending_at(meet, last)->carries = 0;
}

/* Room for one more row; NULL: there is none. What only keeps ways open gives way. */
static struct sending *one_more(const struct meet *meet)
{
    uint8_t count = sending_count(meet);
    for (uint8_t i = 0; i < count; i++)
        if (sending_at(meet, i)->carries == 0)
            return sending_at(meet, i);
    for (uint8_t i = 0; i < count; i++)
        if (says_nothing(sending_at(meet, i))) {
            forget(meet, i);
            return sending_at(meet, count - 1U);
        }
    return NULL;
}

static bool wait(const struct meet *meet, const struct wire_result *row)
{
    struct sending *sending = one_more(meet);
    if (sending == NULL)
        return false;
    sending->gone = 0;
    sending->carries = WIRE_CARRIES_ROW;
    memcpy(&sending->row, row, row_length(meet));
    return true;
}

/* Cells of a way are in one round of 2 to this power: several come in each sample period. */
static uint8_t every(const struct meet *meet)
{
    uint32_t seconds = entry_program(meet->entry)->period / 1000;
    uint8_t power = WAY_EVERY_LEAST;
    while (power < WAY_EVERY_MOST && (uint32_t)8 << power <= seconds)
        power++;
    return power;
}

/* Hands a row to the way to a host, or has that opened; false: it is to be tried again. A record
 * waits for its way's cells in room that others need, so it is given none before its round. */
static bool hand_on(const struct meet *meet, const struct sending *sending, uint16_t host)
{
    struct way *way = way_to(host, NULL, every(meet));
    uint8_t length = (uint8_t)(sizeof sending->carries + row_length(meet));
    uint32_t seconds = entry_program(meet->entry)->period / 1000 * meet->delay + MEET_KEPT_OPEN;
    return way != NULL && way_cells_now(way) && !way_has_records(way) && carried_takes(length) &&
           carried_send(host, NULL, &sending->carries, length,
                        (uint16_t)(seconds < INT16_MAX ? seconds : INT16_MAX),
                        every(meet)) == CARRIED_WAITS;
}

/* The same of all its hosts. */
static bool hand_on_to_all(const struct meet *meet, struct sending *sending)
{
    uint8_t mote = number_of(meet, sending->row.node),
            roles = sending->row.values[0] & (PAIRS_S | PAIRS_T);
    uint8_t host = 0;
    bool all = true;
    for (const uint8_t *at = meet->hosts; at < meet->end && host < HOSTS_MAXIMUM;
         at = behind(at), host++) {
        uint16_t bit = (uint16_t)(1UL << host);
        bool needs =
            half(at) != settings()->nodeid && half(at) != sending->row.node &&
            (host_needs(at, mote, roles ? roles : PAIRS_S | PAIRS_T) || mote == meet->motes_count);
        if (sending->gone & bit || !needs)
            continue;
        if (hand_on(meet, sending, half(at)))
            sending->gone |= bit;
        else
            all = false;
    }
    return all;
}

/* An empty row to all hosts, so that ways are open when a row passes. */
static void keep_open(const struct meet *meet)
{
    struct sending *sending = one_more(meet);
    if (sending == NULL)
        return;
    memset(sending, 0, sending_size(meet));
    sending->carries = WIRE_CARRIES_ROW;
    sending->row.query = meet->entry->query;
    sending->row.node = settings()->nodeid;
    sending->row.epoch = meet->entry->epoch;
}

static uint16_t quiet_rounds(const struct meet *meet)
{
    return (uint16_t)(MEET_KEPT_OPEN << (every(meet) - WAY_EVERY_LEAST));
}

void app_rows_due(void)
{
    struct meet meet;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        struct meet_state *state = NULL;
        uint8_t count = 0;
        if (look(entry, &meet) && (count = sending_count(&meet)) > 0)
            state = open_places(&meet);
        if (state == NULL || entry->state & ENTRY_FINISHED)
            continue;
        if (state->quiet > 0)
            state->quiet--;
        else {
            keep_open(&meet);
            state->quiet = quiet_rounds(&meet);
        }
        for (uint8_t i = 0; i < count && sending_at(&meet, i)->carries != 0;) {
            struct sending *sending = sending_at(&meet, i);
            int32_t age = (int32_t)(entry->epoch - sending->row.epoch);
            bool late = age >= meet.delay && !says_nothing(sending);
            if (late)
                send_up(&meet, sending);
            if (late || hand_on_to_all(&meet, sending))
                forget(&meet, i);
            else
                i++;
        }
    }
}

/* The row that a record of a way carries, and what its query's pairs are; false: it is none, or of
 * no query that runs here. */
static bool row_in(const uint8_t *record, uint8_t length, struct meet *meet)
{
    const struct wire_pair_row *carried = (const struct wire_pair_row *)record;
    const struct wire_result *row = (const struct wire_result *)carried->result;
    return length > sizeof *carried + sizeof *row && look(entry_of(row->query), meet) &&
           meet->way != WIRE_PAIRS_CLIMB && length == sizeof *carried + row_length(meet);
}

bool app_row(const uint8_t *record, uint8_t length)
{
    struct meet meet;
    const struct wire_result *row =
        (const struct wire_result *)((const struct wire_pair_row *)record)->result;
    if (!row_in(record, length, &meet))
        return length > sizeof(struct wire_pair_row) + sizeof *row && entry_of(row->query) == NULL;
    uint8_t mote = number_of(&meet, row->node);
    if ((row->values[0] & (PAIRS_S | PAIRS_T)) == 0)
        return true;
    if (open_places(&meet) == NULL || mote == meet.motes_count || !take(&meet, row, mote))
        queue_push(WIRE_PACKET_RESULT, row, row_length(&meet));
    return true;
}

void app_row_lost(const uint8_t *record, uint8_t length)
{
    struct meet meet;
    const struct wire_result *row =
        (const struct wire_result *)((const struct wire_pair_row *)record)->result;
    if (row_in(record, length, &meet) && row->values[0] & (PAIRS_S | PAIRS_T))
        queue_push(WIRE_PACKET_RESULT, row, row_length(&meet));
}

/* A row that is to go by ways from here; false: it goes on up the tree. */
static bool goes_by_ways(const struct meet *meet, struct meet_state *state,
                         const struct wire_result *row, uint8_t mote, bool own)
{
    uint8_t roles = row->values[0] & (PAIRS_S | PAIRS_T);
    if (state == NULL || sending_count(meet) == 0 || !(own || settings()->root) ||
        !needed(meet, meet->hosts, mote, roles))
        return true;
    /* A row that goes to all keeps the ways open itself. */
    if (own && !needed(meet, meet->hosts, mote, (uint8_t)(~roles & (PAIRS_S | PAIRS_T))))
        state->quiet = quiet_rounds(meet);
    return wait(meet, row);
}

/* ---- rows that come up the tree, and this mote's own ---- */

bool meet_passes(const struct wire_result *row, uint8_t length, bool own)
{
    struct meet meet;
    if (!look(entry_of(row->query), &meet) || meet.motes_count == 0)
        return true;
    uint8_t mote = number_of(&meet, row->node);
    if (mote == meet.motes_count)
        return !own; /* it is of no pair; of others the gateway may not have known */
    if (length < sizeof *row + 1 + meet.width)
        return true;
    struct meet_state *state = open_places(&meet);
    if (meet.way == WIRE_PAIRS_CLIMB)
        return state == NULL || !take(&meet, row, mote) || needed_above(&meet, mote);
    if (own && meet.pairs.pairs_count > 0)
        (void)take(&meet, row, mote);
    if (!goes_by_ways(&meet, state, row, mote, own))
        return true;
    if (meet.way == WIRE_PAIRS_FROM_ROOT && !settings()->root)
        return !own || needed_above(&meet, mote) ||
               needed(&meet, meet.hosts, mote, row->values[0] & (PAIRS_S | PAIRS_T));
    /* Of others: it is the gateway's, as no way has led to its host. */
    return needed_above(&meet, mote) || (!own && !settings()->root) ||
           (!own && meet.way == WIRE_PAIRS_SENT);
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
    if (!look(entry, &meet) || (state = open_places(&meet)) == NULL || meet.pairs.pairs_count == 0)
        return;
    pairs_join(&meet.pairs, entry->epoch + 1 - meet.delay, met, &meet);
    state->joined = meet.pairs.joined;
}

/* A host is to be found. */
static void pairs_open(struct query_entry *entry, const struct program_field *field)
{
    struct meet meet;
    (void)field;
    if (look(entry, &meet) && meet.pairs.pairs_count > 0 && meet.way != WIRE_PAIRS_CLIMB)
        trails_lay();
}

const IN_FLASH struct clause clause_pairs = {WIRE_AGGREGATE_PAIRS, pairs_check, NULL,
                                             pairs_size,           pairs_open,  NULL};
