#include "query/operators/meet.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/clock.h"
#include "lib/calls.h"
#include "net/app.h"
#include "net/transport/queue.h"
#include "query/events/raising.h"
#include "query/operators/meet_pairs.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"

/* What STORED reads of a row besides its columns. */
#define FIELD_MOTE WIRE_STORED_NUMBER
/* What a row's bits from WIRE_RESULT_NONE_BEFORE on say at most. */
#define NONE_BEFORE 15

/* A moment of the join: what code is evaluated against. */
struct moment {
    struct eval_context context; /* the first, so that a reader finds the rest */
    const struct meet *meet;
    uint8_t entries[2]; /* of the rows of s and t */
};

/* Whether a host joins a mote's rows that have passed as `roles`. */
static bool hosted(const struct meet *meet, uint8_t mote, uint8_t roles)
{
    return meet_needs(meet, mote, roles) || meet_needed(meet, meet->hosts, mote, roles);
}

/* Whether a row that climbs has passed a host farther down, as its mote has found another parent,
 * or was late there: it goes up to the gateway, too, which joins it for that host. */
static bool has_passed_one(const struct meet *meet, const struct wire_result *row, uint8_t mote)
{
    uint8_t hosts = meet_needed_below(meet, mote, row->values[0] & PAIRS_ROLES);
    return hosts % 2 != (row->nulls >> WIRE_RESULT_TAKEN & 1);
}

/* A row of this mote, or of one below it, some of whose values may be cut off. *taken: it climbs,
 * and those farther up are to be told that one more host has it. */
static bool passes(const struct wire_result *row, uint8_t length, bool own, bool *taken)
{
    struct meet meet;
    *taken = false;
    if (!meet_look(entry_of(row->query), &meet) || meet_all_come(&meet) ||
        length < sizeof *row + 1 + meet.width)
        return true;
    uint8_t mote = meet_number(&meet, row->node), roles = row->values[0] & PAIRS_ROLES;
    bool base = meet_base(&meet, row->node) & roles;
    if (!base && !hosted(&meet, mote, roles))
        return !own; /* it is of no pair; of others the gateway may not have known */
    struct meet_state *state = meet_open(&meet);
    if (meet.way == WIRE_PAIRS_CLIMB) {
        *taken = state != NULL && meet_take(&meet, row, mote);
        return !*taken || base || meet_needed(&meet, meet.above, mote, roles) ||
               has_passed_one(&meet, row, mote);
    }
    if (own)
        (void)meet_take(&meet, row, mote);
    if (!meet_sends(&meet, state, row, mote, own) || base)
        return true;
    if (meet.way == WIRE_PAIRS_FROM_ROOT && !settings()->root)
        return !own || meet_needed(&meet, meet.hosts, mote, roles);
    /* Of others: it is the gateway's, as no way has led to its host. */
    return !own && (!settings()->root || meet.way == WIRE_PAIRS_SENT);
}

/* One more host has it. */
static void mark(struct wire_result *row) { row->nulls ^= 1U << WIRE_RESULT_TAKEN; }

/* Queues a row of a mote below as one that one more host has. */
static NOT_INLINED void pass_on(const struct wire_result *row, uint8_t length)
{
    struct {
        struct wire_result row;
        uint8_t values[1 + MEET_WIDTH_MAXIMUM + sizeof(struct wire_tally)];
    } marked;
    if (length > sizeof marked)
        length = sizeof marked;
    memcpy(&marked, row, length);
    mark(&marked.row);
    queue_push(WIRE_PACKET_RESULT, &marked, length);
}

/* Epochs right before a row, one by one up to NONE_BEFORE, that have begun since this mote started;
 * 0: there are more. */
static uint16_t epochs_up(const struct meet *meet)
{
    /* Of the last second not all is over, and the row may be as late. */
    uint32_t up = clock_uptime() - 2, seconds = (entry_program(meet->entry)->period + 999) / 1000;
    uint16_t epochs = 0;
    for (; (int32_t)up >= (int32_t)seconds && epochs <= NONE_BEFORE; up -= seconds)
        epochs++;
    return epochs > NONE_BEFORE ? 0 : epochs;
}

/* Of its first row in a role a mote says since when it may have had one: those from before it
 * started may be lost. */
static bool is_first(uint8_t passed)
{
    return (passed & PAIRS_S && pairs_number(passed, PAIRS_S) == 0) ||
           (passed & PAIRS_T && pairs_number(passed, PAIRS_T) == 0);
}

bool meet_own_passes(struct wire_result *row, uint8_t length)
{
    struct meet meet;
    struct meet_state *state;
    if (meet_look(entry_of(row->query), &meet) && length > sizeof *row &&
        (state = meet_open(&meet)) != NULL) {
        row->values[0] = pairs_count(&state->next, row->values[0]);
        if (is_first(row->values[0]))
            row->nulls = (uint16_t)(row->nulls | epochs_up(&meet) << WIRE_RESULT_NONE_BEFORE);
        for (uint8_t i = 0; i < 2; i++)
            state->passed[i] = (uint8_t)(state->passed[i] + (row->values[0] >> i & 1));
    }
    bool taken, goes_on = passes(row, length, true, &taken);
    if (taken)
        mark(row);
    return goes_on;
}

bool app_child_row(const struct wire_result *row, uint8_t length)
{
    bool taken;
    if (length < sizeof *row)
        return true;
    if (!passes(row, length, false, &taken))
        return false;
    if (taken)
        pass_on(row, length);
    return !taken;
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
        *value = meet_mote(now->meet, now->meet->pairs.rows[place].mote);
        return true;
    }
    const struct values *values = meet_values(now->meet, place);
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
    uint8_t values[2 * MEET_WIDTH_MAXIMUM];
} __attribute__((packed));

/* With the row's number, in bits that no column has. */
static uint16_t nulls_of(uint16_t nulls, const struct pairs_row *row, uint8_t role)
{
    return (uint16_t)(nulls | (uint16_t)pairs_number(row->passed, role) << WIRE_JOINED_NUMBER);
}

/* What travels of two rows. */
static NOT_INLINED void tell(const struct meet *meet, uint8_t s, uint8_t t)
{
    const struct pairs_row *of_s = &meet->pairs.rows[s], *of_t = &meet->pairs.rows[t];
    const struct values *values_s = meet_values(meet, s), *values_t = meet_values(meet, t);
    struct joined joined = {.record = {.query = meet->entry->query,
                                       .s = meet_mote(meet, of_s->mote),
                                       .s_epoch = of_s->epoch,
                                       .s_nulls = nulls_of(values_s->nulls, of_s, PAIRS_S),
                                       .t = meet_mote(meet, of_t->mote),
                                       .t_epoch = of_t->epoch,
                                       .t_nulls = nulls_of(values_t->nulls, of_t, PAIRS_T)}};
    memcpy(joined.values, values_s->bytes, meet->width);
    memcpy(joined.values + meet->width, values_t->bytes, meet->width);
    queue_push(WIRE_PACKET_JOINED, &joined, (uint8_t)(sizeof joined.record + 2U * meet->width));
}

static NOT_INLINED bool matches(const struct meet *meet, const struct moment *now)
{
    int32_t value;
    return meet->condition.length == 0 ||
           (program_compute(&meet->condition, &now->context, &value) && value != 0);
}

/* Answers leave most of the queue to other records, and wait until there is room: nobody else has
 * them. */
static bool met(uint8_t s, uint8_t t, void *context)
{
    struct meet *meet = context;
    struct moment now = {{&meet_readers, meet->entry, 0, NULL}, meet, {s, t}};
    if (!matches(meet, &now))
        return true;
    if (queue_room() < JOIN_QUEUE_RESERVE)
        return false;
    tell(meet, s, t);
    ((struct meet_state *)meet->pairs.at)->matched = true;
    events_row(&now.context);
    return true;
}

/* Who joins this mote's rows without the gateway's seeing them says nothing of how many there are:
 * it counts them itself, and motes tell in different epochs. */
static void tell_passed(const struct meet *meet, struct meet_state *state)
{
    uint16_t node = settings()->nodeid;
    if (!hosted(meet, meet->own, PAIRS_ROLES & ~meet_base(meet, node)))
        return;
    state->epochs++;
    if ((uint8_t)(meet->entry->epoch + node) % WIRE_PASSED_EPOCHS != 0)
        return;
    struct wire_passed told = {.query = meet->entry->query,
                               .node = node,
                               .epoch = meet->entry->epoch,
                               .epochs = state->epochs,
                               .s = state->passed[0],
                               .t = state->passed[1]};
    queue_push(WIRE_PACKET_PASSED, &told, sizeof told);
    state->epochs = state->passed[0] = state->passed[1] = 0;
}

/* What this mote joins of a query; NULL: nothing. */
static struct meet_state *joins_here(struct query_entry *entry, struct meet *meet)
{
    return meet_look(entry, meet) && meet->pairs.groups_length > 0 ? meet_open(meet) : NULL;
}

enum meet_step meet_go_on(struct query_entry *entry)
{
    struct meet meet;
    struct meet_state *state = joins_here(entry, &meet);
    if (state == NULL)
        return MEET_OVER;
    bool began = state->at.under_way != 0;
    enum pairs_step step = pairs_join(&meet.pairs, entry->epoch + 1 - meet.delay, met, &meet);
    if (began && state->at.under_way == 0) {
        if (!state->matched)
            events_no_row(entry);
        state->matched = false;
    }
    return step == PAIRS_NO_ROOM ? MEET_WAITS : step == PAIRS_MORE ? MEET_MORE : MEET_OVER;
}

bool meet_is_under_way(struct query_entry *entry)
{
    struct meet meet;
    const struct meet_state *state = joins_here(entry, &meet);
    return state != NULL && state->at.under_way != 0;
}

bool app_expects_more(void)
{
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (meet_is_under_way(entry))
            return true;
    return false;
}

void meet_epoch(struct query_entry *entry)
{
    struct meet meet;
    struct meet_state *state;
    if (!meet_look(entry, &meet) || (state = meet_open(&meet)) == NULL)
        return;
    tell_passed(&meet, state);
    if (meet.pairs.groups_length > 0)
        meet_due();
}

bool meet_joins(struct query_entry *entry)
{
    struct program_field field;
    return entry_clause(entry, WIRE_AGGREGATE_PAIRS, 0, &field);
}
