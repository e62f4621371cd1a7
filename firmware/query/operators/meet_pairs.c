#include "query/operators/meet_pairs.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/transport/trails.h"
#include "query/program/clauses.h"
#include "query/query_conf.h"

#define DELAY_MAXIMUM 30

/* The groups of a host, which begins at `host`. */
static const uint8_t *groups_of(const uint8_t *host)
{
    return host + sizeof(struct wire_pairs_host);
}
static uint8_t length_of(const uint8_t *host)
{
    return ((const struct wire_pairs_host *)host)->groups;
}
const uint8_t *meet_behind(const uint8_t *host) { return groups_of(host) + length_of(host); }

/* Which of the hosts passes rows on to this one: motes of no role stand before its groups, and the
 * first of these bytes says it. MEET_HOSTS: none does. */
static uint8_t by_of(const uint8_t *host)
{
    uint8_t first = *groups_of(host);
    return length_of(host) > 0 && first < MEET_HOSTS ? first : MEET_HOSTS;
}
static bool is_own(const struct meet *meet, const uint8_t *host) { return *host == meet->own; }

uint8_t meet_number(const struct meet *meet, uint16_t node)
{
    uint16_t number = mote_set_number(meet->motes, node);
    return (uint8_t)(number < PAIRS_MOTES ? number : MEET_NO_NUMBER);
}

uint16_t meet_mote(const struct meet *meet, uint8_t number)
{
    return mote_set_mote(meet->motes, number);
}

/* What the clause says, without the entry that has it. */
static void look(const struct program_code *code, struct meet *meet)
{
    const struct wire_pairs *clause = (const struct wire_pairs *)code->bytes;
    memset(meet, 0, sizeof *meet);
    meet->clause = clause;
    meet->delay = clause->delay;
    meet->width = clause->width;
    meet->way = clause->way;
    meet->condition = (struct program_code){(const uint8_t *)(clause + 1), clause->condition};
    meet->motes = (struct mote_set){meet->condition.bytes + clause->condition, clause->motes};
    meet->own = meet_number(meet, settings()->nodeid);
    meet->pairs.window = (struct pairs_window){clause->epochs, clause->rows};
    meet->end = code->bytes + code->length;
    meet->hosts = meet->motes.bytes + clause->motes + clause->s + clause->t;
    const uint8_t *at = meet->hosts;
    for (; at < meet->end && !is_own(meet, at);)
        at = meet_behind(at);
    if (at < meet->end) {
        meet->pairs.groups = groups_of(at);
        meet->pairs.groups_length = length_of(at);
        meet->pairs.rows_room = ((const struct wire_pairs_host *)at)->rows;
        at = meet_behind(at);
    }
    meet->above = at;
}

static bool pairs_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_pairs *clause = (const struct wire_pairs *)field->code.bytes;
    const uint8_t *at = (const uint8_t *)(clause + 1),
                  *end = field->code.bytes + field->code.length;
    uint32_t read = 0;
    uint8_t place = 0, farthest = 0;
    if (field->code.length < sizeof *clause || facts->keeps & PROGRAM_KEEPS_PAIRS ||
        facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE) ||
        facts->program->period < WIRE_PERIOD_MINIMUM_MS || clause->delay == 0 ||
        clause->delay > DELAY_MAXIMUM || clause->way > WIRE_PAIRS_FROM_ROOT ||
        clause->width > MEET_WIDTH_MAXIMUM ||
        clause->condition + clause->motes + clause->s + clause->t > end - at)
        return false;
    facts->keeps |= PROGRAM_KEEPS_PAIRS;
    /* It knows nothing but the two rows. */
    if (clause->condition > 0 &&
        (!vm_check(at, clause->condition, &read) || read & (VM_POINT(0) - 1)))
        return false;
    at += clause->condition;
    struct mote_set motes = {at, clause->motes};
    at += clause->motes + clause->s + clause->t;
    for (; at < end; at = meet_behind(at), place++) {
        if (end - at < (ptrdiff_t)sizeof(struct wire_pairs_host) ||
            end - groups_of(at) < length_of(at) || *at >= PAIRS_MOTES ||
            mote_set_mote(motes, *at) == MOTE_SET_NONE)
            return false;
        /* So that rows never go round. */
        uint8_t by = by_of(at), relayed = length_of(at) > 0 && pairs_role(*groups_of(at)) == 0;
        if (relayed && (by <= place || by == MEET_HOSTS))
            return false;
        if (relayed && by > farthest)
            farthest = by;
        for (uint8_t i = relayed; i < length_of(at); i++)
            if (mote_set_mote(motes, pairs_mote(groups_of(at)[i])) == MOTE_SET_NONE)
                return false;
    }
    return farthest == 0 || farthest < place;
}

bool meet_look(struct query_entry *entry, struct meet *meet)
{
    struct program_field field;
    if (entry == NULL || !entry_clause(entry, WIRE_AGGREGATE_PAIRS, 0, &field))
        return false;
    look(&field.code, meet);
    meet->entry = entry;
    return true;
}

bool meet_all_come(const struct meet *meet)
{
    return meet->clause->motes + meet->clause->s + meet->clause->t == 0;
}

uint8_t meet_base(const struct meet *meet, uint16_t node)
{
    struct mote_set s = {meet->motes.bytes + meet->clause->motes, meet->clause->s},
                    t = {s.bytes + s.length, meet->clause->t};
    return (uint8_t)((mote_set_number(s, node) == MOTE_SET_NONE ? 0 : PAIRS_S) |
                     (mote_set_number(t, node) == MOTE_SET_NONE ? 0 : PAIRS_T));
}

static uint16_t place_size(const struct meet *meet)
{
    return (uint16_t)(sizeof(struct values) + meet->width);
}

static bool host_needs(const uint8_t *host, uint8_t mote, uint8_t roles)
{
    return pairs_roles(groups_of(host), length_of(host), mote) & roles;
}

bool meet_needs(const struct meet *meet, uint8_t mote, uint8_t roles)
{
    return pairs_roles(meet->pairs.groups, meet->pairs.groups_length, mote) & roles;
}

bool meet_needed(const struct meet *meet, const uint8_t *at, uint8_t mote, uint8_t roles)
{
    for (; at < meet->end; at = meet_behind(at))
        if (!is_own(meet, at) && host_needs(at, mote, roles))
            return true;
    return false;
}

uint8_t meet_needed_below(const struct meet *meet, uint8_t mote, uint8_t roles)
{
    uint8_t count = 0;
    for (const uint8_t *at = meet->hosts; at < meet->end && !is_own(meet, at); at = meet_behind(at))
        if (host_needs(at, mote, roles))
            count++;
    return count;
}

/* Whether rows of a mote come to a host by another one. */
static bool comes_by_host(const uint8_t *host, uint8_t mote)
{
    for (uint8_t i = 1; by_of(host) != MEET_HOSTS && i < length_of(host); i++)
        if (groups_of(host)[i] == mote)
            return true;
    return false;
}

/* Whether this mote passes rows on to a host, that of number `place`. */
static bool passes_on_to(const struct meet *meet, const uint8_t *host, uint8_t place)
{
    const uint8_t *at = host;
    if (by_of(host) == MEET_HOSTS)
        return false;
    for (; place < by_of(host); place++)
        at = meet_behind(at);
    return is_own(meet, at);
}

/* … to any. */
static bool passes_on(const struct meet *meet)
{
    uint8_t place = 0;
    for (const uint8_t *at = meet->hosts; at < meet->end; at = meet_behind(at))
        if (passes_on_to(meet, at, place++))
            return true;
    return false;
}

uint16_t meet_sent_to(const struct meet *meet, uint8_t mote, uint8_t roles, bool own)
{
    uint16_t sent = 0, needed = 0;
    uint8_t place = 0;
    for (const uint8_t *at = meet->hosts; at < meet->end && place < MEET_HOSTS;
         at = meet_behind(at), place++) {
        uint16_t bit = (uint16_t)(1UL << place);
        if ((!(needed & bit) && !host_needs(at, mote, roles)) || *at == mote)
            continue;
        bool by_host = comes_by_host(at, mote);
        if (by_host)
            needed = (uint16_t)(needed | 1UL << by_of(at));
        if (!is_own(meet, at) && (by_host ? passes_on_to(meet, at, place) : own))
            sent |= bit;
    }
    return sent;
}

/* Whether a host joins rows of other motes, which need ways to it; its own it has. */
static bool joins_others(const uint8_t *host)
{
    for (uint8_t i = 0; i < length_of(host); i++)
        if (pairs_role(groups_of(host)[i]) != 0 && pairs_mote(groups_of(host)[i]) != *host)
            return true;
    return false;
}

uint16_t meet_sent_at_all(const struct meet *meet)
{
    uint8_t place = 0;
    uint16_t sent = meet_sent_to(meet, meet->own, PAIRS_ROLES, true);
    for (const uint8_t *at = meet->hosts; at < meet->end && place < MEET_HOSTS;
         at = meet_behind(at), place++)
        if (meet->way == WIRE_PAIRS_FROM_ROOT
                ? settings()->root && !is_own(meet, at) && joins_others(at)
                : passes_on_to(meet, at, place))
            sent = (uint16_t)(sent | 1UL << place);
    return sent;
}

/* Rows for which there is room until they go by ways from here: this mote's own of all epochs that
 * are not late, and the newest one; of others as many as there may be. */
uint8_t meet_sending_count(const struct meet *meet)
{
    if (meet->way == WIRE_PAIRS_FROM_ROOT)
        return settings()->root ? MEET_SENDING_ROOT : 0;
    if (meet->way != WIRE_PAIRS_SENT)
        return 0;
    if (passes_on(meet))
        return MEET_SENDING;
    if (!meet_needed(meet, meet->hosts, meet->own, PAIRS_ROLES))
        return 0;
    return meet->delay < MEET_SENDING ? (uint8_t)(meet->delay + 1) : MEET_SENDING;
}

uint8_t meet_sending_size(const struct meet *meet)
{
    return (uint8_t)(sizeof(struct sending) + 1U + meet->width);
}

/* Whether it has rows to send, which are numbered, or to join. */
static bool has_part(const struct meet *meet)
{
    return meet_all_come(meet) || meet->own != MEET_NO_NUMBER || meet_sending_count(meet) > 0 ||
           meet_base(meet, settings()->nodeid) != 0;
}

static uint16_t pairs_size(const struct query_entry *entry, const struct program_field *field)
{
    struct meet meet;
    (void)entry;
    look(&field->code, &meet);
    uint16_t size =
        (uint16_t)(meet_sending_count(&meet) * (unsigned)meet_sending_size(&meet) +
                   meet.pairs.rows_room * (sizeof(struct pairs_row) + place_size(&meet)));
    return has_part(&meet) ? (uint16_t)(sizeof(struct meet_state) + size) : 0;
}

struct meet_state *meet_open(struct meet *meet)
{
    uint8_t sending = meet_sending_count(meet);
    if (!has_part(meet))
        return NULL;
    struct meet_state *state =
        (struct meet_state *)clauses_state(meet->entry, WIRE_AGGREGATE_PAIRS);
    meet->pairs.at = &state->at;
    meet->waiting = (uint8_t *)(state + 1);
    meet->pairs.rows = (struct pairs_row *)(meet->waiting + sending * meet_sending_size(meet));
    meet->values = (uint8_t *)(meet->pairs.rows + meet->pairs.rows_room);
    return state;
}

struct values *meet_values(const struct meet *meet, uint8_t place)
{
    return (struct values *)(meet->values + place * place_size(meet));
}

bool meet_take(struct meet *meet, const struct wire_result *row, uint8_t mote)
{
    struct pairs_row waits = {.epoch = row->epoch, .mote = mote, .passed = row->values[0]};
    uint8_t place = 0;
    switch (pairs_put(&meet->pairs, &waits, &place)) {
    case PAIRS_PUT: {
        struct values *values = meet_values(meet, place);
        values->nulls =
            row->nulls & ((1U << WIRE_RESULT_NONE_BEFORE) - 1U) & ~(1U << WIRE_RESULT_TAKEN);
        memcpy(values->bytes, &row->values[1], meet->width);
        return true;
    }
    case PAIRS_DOUBLED: return true;
    default: return false;
    }
}

/* A host is to be found, also one that only passes rows on. */
static void pairs_open(struct query_entry *entry, const struct program_field *field)
{
    struct meet meet;
    (void)field;
    if (meet_look(entry, &meet) && meet.pairs.groups != NULL && meet.way != WIRE_PAIRS_CLIMB)
        trails_lay();
}

const IN_FLASH struct clause clause_pairs = {WIRE_AGGREGATE_PAIRS, pairs_check, NULL,
                                             pairs_size,           pairs_open,  NULL};
