#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/clock.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/schedule/way_cells.h"
#include "net/transport/carried.h"
#include "net/transport/queue.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/operators/meet_pairs.h"
#include "query/query_conf.h"

static struct sending *sending_at(const struct meet *meet, unsigned place)
{
    return (struct sending *)(meet->waiting + place * meet_sending_size(meet));
}

static uint8_t row_length(const struct meet *meet)
{
    return (uint8_t)(sizeof(struct wire_result) + 1U + meet->width);
}

static bool says_nothing(const struct sending *sending)
{
    return (sending->row.values[0] & PAIRS_ROLES) == 0;
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
    uint8_t last = (uint8_t)(meet_sending_count(meet) - 1);
    memmove(sending_at(meet, place), sending_at(meet, place + 1U),
            (size_t)(last - place) * meet_sending_size(meet));
    sending_at(meet, last)->carries = 0;
}

/* Room for one more row; NULL: there is none. What only keeps ways open gives way. */
static struct sending *one_more(const struct meet *meet)
{
    uint8_t count = meet_sending_count(meet);
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

/* For how many seconds it is of use: until its hosts join its epoch. */
static uint16_t seconds_left(const struct meet *meet, const struct sending *sending)
{
    uint32_t seconds = 0, milliseconds = 0;
    if (says_nothing(sending) ||
        !entry_epoch_start(meet->entry, sending->row.epoch + meet->delay, &seconds, &milliseconds))
        return MEET_KEPT_OPEN;
    int32_t left = (int32_t)(seconds - time_at(clock_now()).seconds);
    return left < 1 ? 1 : left < INT16_MAX ? (uint16_t)left : INT16_MAX;
}

/* Cells in a row in which nothing has gone by a way, fewer than which an empty row has time until
 * the next one: the way does not lapse so soon. */
#define IN_USE 3

/* Hands a row to the way to a host, or has that opened; false: it is to be tried again. A record
 * waits for its way's cells in room that others need, so it is given none before its round. */
static bool hand_on(const struct meet *meet, const struct sending *sending, uint16_t host)
{
    struct way *way = way_to(host, NULL, every(meet));
    if (way != NULL && says_nothing(sending) && !way->opening && way->idle < IN_USE)
        return true;
    uint8_t length = (uint8_t)(sizeof sending->carries + row_length(meet));
    return way != NULL && way_cells_now(way) && !way_has_records(way) && carried_takes(length) &&
           carried_send(host, NULL, &sending->carries, length, seconds_left(meet, sending),
                        every(meet)) == CARRIED_WAITS;
}

/* Whether rows begin their ways here: this mote's own, or at the root those of all. */
static bool is_begun_here(const struct meet *meet, const struct sending *sending)
{
    return meet->way == WIRE_PAIRS_FROM_ROOT || sending->row.node == settings()->nodeid;
}

/* The same of all hosts to which a row goes from here: what keeps ways open goes by all. */
static bool hand_on_to_all(const struct meet *meet, struct sending *sending)
{
    uint16_t sent = says_nothing(sending) ? meet_sent_at_all(meet)
                                          : meet_sent_to(meet, meet_number(meet, sending->row.node),
                                                         sending->row.values[0] & PAIRS_ROLES,
                                                         is_begun_here(meet, sending));
    uint8_t host = 0;
    bool all = true;
    for (const uint8_t *at = meet->hosts; at < meet->end && host < MEET_HOSTS;
         at = meet_behind(at), host++) {
        uint16_t bit = (uint16_t)(1UL << host);
        if (sending->gone & bit || !(sent & bit))
            continue;
        if (hand_on(meet, sending, meet_mote(meet, *at)))
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
    memset(sending, 0, meet_sending_size(meet));
    sending->carries = WIRE_CARRIES_ROW;
    sending->row.query = meet->entry->query;
    sending->row.node = settings()->nodeid;
    sending->row.epoch = meet->entry->epoch;
}

static uint16_t quiet_rounds(const struct meet *meet)
{
    return (uint16_t)(MEET_KEPT_OPEN << (every(meet) - WAY_EVERY_LEAST));
}

void app_rows_due(bool begins)
{
    struct meet meet;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        struct meet_state *state = NULL;
        uint8_t count = 0;
        if (meet_look(entry, &meet) && (count = meet_sending_count(&meet)) > 0)
            state = meet_open(&meet);
        if (state == NULL || entry->state & ENTRY_FINISHED)
            continue;
        if (begins && state->quiet > 0)
            state->quiet--;
        else if (begins) {
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

/* The row of a record; NULL: it is too short for one. */
static const struct wire_result *row_of(const uint8_t *record, uint8_t length)
{
    const struct wire_pair_row *carried = (const struct wire_pair_row *)record;
    return length > sizeof *carried + sizeof(struct wire_result)
               ? (const struct wire_result *)carried->result
               : NULL;
}

/* The same, and what its query's pairs are; false: it is none, or of no query that runs here. */
static bool row_in(const uint8_t *record, uint8_t length, struct meet *meet)
{
    const struct wire_result *row = row_of(record, length);
    return row != NULL && meet_look(entry_of(row->query), meet) && meet->way != WIRE_PAIRS_CLIMB &&
           length == sizeof(struct wire_pair_row) + row_length(meet);
}

/* A mote that has just started may not know the query yet: its row is the gateway's, too. False:
 * it is none, or not of such a query. */
static bool is_strange(const uint8_t *record, uint8_t length)
{
    const struct wire_result *row = row_of(record, length);
    if (row == NULL || entry_of(row->query) != NULL)
        return false;
    if (row->values[0] & PAIRS_ROLES)
        queue_push(WIRE_PACKET_RESULT, row, (uint8_t)(length - sizeof(struct wire_pair_row)));
    return true;
}

/* A row that has come by a way is taken, passed on, or both; false: one of them fails, or is not to
 * be done here, and it is the gateway's. */
static bool arrives(struct meet *meet, const struct wire_result *row)
{
    uint8_t mote = meet_number(meet, row->node), roles = row->values[0] & PAIRS_ROLES;
    if (meet_open(meet) == NULL || mote == MEET_NO_NUMBER)
        return false;
    bool goes_on = meet->way == WIRE_PAIRS_SENT && meet_sent_to(meet, mote, roles, false) != 0,
         is_needed = meet_needs(meet, mote, roles);
    bool taken = is_needed ? meet_take(meet, row, mote) : goes_on;
    return goes_on ? wait(meet, row) && taken : taken;
}

bool app_row(const uint8_t *record, uint8_t length)
{
    struct meet meet;
    const struct wire_result *row =
        (const struct wire_result *)((const struct wire_pair_row *)record)->result;
    if (!row_in(record, length, &meet))
        return is_strange(record, length);
    if ((row->values[0] & PAIRS_ROLES) != 0 && !arrives(&meet, row))
        queue_push(WIRE_PACKET_RESULT, row, row_length(&meet));
    return true;
}

void app_row_lost(const uint8_t *record, uint8_t length)
{
    struct meet meet;
    const struct wire_result *row =
        (const struct wire_result *)((const struct wire_pair_row *)record)->result;
    if (!row_in(record, length, &meet))
        (void)is_strange(record, length);
    else if (row->values[0] & PAIRS_ROLES)
        queue_push(WIRE_PACKET_RESULT, row, row_length(&meet));
}

bool meet_sends(const struct meet *meet, struct meet_state *state, const struct wire_result *row,
                uint8_t mote, bool own)
{
    bool begins = own || meet->way == WIRE_PAIRS_FROM_ROOT;
    uint16_t sent = begins ? meet_sent_to(meet, mote, row->values[0] & PAIRS_ROLES, true) : 0;
    if (state == NULL || meet_sending_count(meet) == 0 || sent == 0)
        return true;
    /* A row that goes to all keeps the ways open itself. */
    if (sent == meet_sent_at_all(meet))
        state->quiet = quiet_rounds(meet);
    return wait(meet, row);
}
