/* Records on their way to the root: kept in order, merged, counted when lost. sources:
 * net/transport/queue.c query/operators/index_states.c query/operators/gather_cell.c lib/random.c
 */
#include "unit.h"

#include "lib/random.h"
#include "net/app.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/transport_ops.h"
#include "query/operators/index_states.h"

static int grew;
void queue_grew(void) { grew++; }

/* Last byte that merging leaves, where there are states. */
static uint8_t state;

/* Merges by adding up the motes; refuses beyond 100 of them. */
bool app_merge(struct wire_partial *into, uint8_t size, const struct wire_partial *from,
               uint8_t length)
{
    (void)length;
    if (size > sizeof *into && state)
        ((uint8_t *)into)[size - 1] = state;
    if (into->motes + from->motes > 100)
        return false;
    into->motes = (uint16_t)(into->motes + from->motes);
    return true;
}

/* Query 3's records have two states, the others' none. */
uint8_t app_state_size(uint8_t query)
{
    return (uint8_t)(sizeof(struct wire_partial) +
                     (query == 3 ? 2 * sizeof(struct wire_aggregate_state) : 0));
}

/* What fewer motes say than were heard of. */
bool app_superfluous(const struct wire_partial *own, uint8_t own_length,
                     const struct wire_partial *heard, uint8_t heard_length)
{
    (void)own_length, (void)heard_length;
    return own->query == heard->query && own->epoch == heard->epoch && own->motes < heard->motes;
}

static int count(void)
{
    int n = 0;
    for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r))
        n++;
    CHECK_EQUAL(n, queue_length());
    return n;
}

static void records_come_out_as_they_went_in(void)
{
    for (uint8_t i = 1; i < 20; i++) {
        uint8_t body[20];
        memset(body, i, sizeof body);
        CHECK(queue_push(WIRE_PACKET_RESULT, body, i));
    }
    CHECK_EQUAL(grew, 19);
    uint8_t i = 1;
    for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r), i++) {
        CHECK_EQUAL(r->length, i);
        CHECK_EQUAL(r->body[i - 1], i);
    }
    CHECK_EQUAL(i, 20);
}

static void a_full_queue_refuses_counts_and_keeps_what_it_has(void)
{
    uint8_t body[50] = {7};
    int taken = 0;
    while (queue_push(WIRE_PACKET_RESULT, body, sizeof body))
        taken++;
    CHECK(taken > 20);
    CHECK_EQUAL(queue_dropped(), 1);
    CHECK_EQUAL(count(), taken);
    CHECK(queue_room() < sizeof body + sizeof(struct queue_record));
    for (int i = 0; i < 70000; i++)
        queue_lost();
    CHECK_EQUAL(queue_dropped(), 65535);
    queue_remove(queue_next(NULL));
    CHECK(queue_push(WIRE_PACKET_RESULT, body, sizeof body));
}

static void removing_from_anywhere_keeps_the_order_of_the_rest(void)
{
    random_seed(1, 1);
    uint8_t expected[100], held = 0;
    for (int step = 0; step < 20000; step++) {
        uint8_t value = (uint8_t)step, body[3] = {value, value, value};
        if (random_below(2) && held < 100 && queue_push(WIRE_PACKET_RESULT, body, sizeof body))
            expected[held++] = value;
        else if (held) {
            uint8_t which = (uint8_t)random_below(held);
            struct queue_record *r = queue_next(NULL);
            for (uint8_t i = 0; i < which; i++)
                r = queue_next(r);
            CHECK_EQUAL(r->body[0], expected[which]);
            queue_remove(r);
            memmove(expected + which, expected + which + 1, (size_t)(held - which - 1));
            held--;
        }
        uint8_t i = 0;
        for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r))
            CHECK_EQUAL(r->body[0], expected[i++]);
        CHECK_EQUAL(i, held);
    }
}

static void push_partial(uint8_t query, uint32_t epoch, uint16_t motes)
{
    struct wire_partial partial = {.query = query, .epoch = epoch, .motes = motes};
    CHECK(queue_push(WIRE_PACKET_PARTIAL, &partial, sizeof partial));
}

static void partial_states_of_one_epoch_are_one_record_unless_they_are_on_their_way(void)
{
    push_partial(1, 5, 2);
    push_partial(1, 5, 3);
    push_partial(1, 6, 4);
    push_partial(2, 5, 5);
    CHECK_EQUAL(count(), 3);
    CHECK_EQUAL(((struct wire_partial *)queue_next(NULL)->body)->motes, 5);
    queue_next(NULL)->in_flight = 1;
    push_partial(1, 5, 1);
    CHECK_EQUAL(count(), 4);
    push_partial(1, 6, 99); /* will not merge: 103 */
    CHECK_EQUAL(count(), 5);
}

static void partial_states_at_the_end_that_are_zero_take_no_room_until_they_are_merged(void)
{
    uint8_t body[sizeof(struct wire_partial) + 2 * sizeof(struct wire_aggregate_state)] = {3},
                                                                 row[5] = {9, 9, 9, 9, 9};
    CHECK(queue_push(WIRE_PACKET_PARTIAL, body, sizeof body));
    CHECK(queue_push(WIRE_PACKET_RESULT, row, sizeof row));
    struct queue_record *record = queue_next(NULL);
    CHECK_EQUAL(record->length, sizeof(struct wire_partial));
    state = 1; /* merging makes the last one something */
    uint16_t room = queue_room();
    CHECK(queue_push(WIRE_PACKET_PARTIAL, body, sizeof body));
    state = 0;
    CHECK_EQUAL(count(), 2);
    CHECK_EQUAL(record->length, sizeof body);
    CHECK_EQUAL(record->body[sizeof body - 1], 1);
    CHECK_EQUAL(queue_room(), room - 2 * sizeof(struct wire_aggregate_state));
    CHECK_EQUAL(memcmp(queue_next(record)->body, row, sizeof row), 0);
    queue_remove(queue_next(record));
    queue_remove(record);
    body[0] = 1; /* a query unknown here, or no aggregate: as it came */
    body[sizeof body - 1] = 1;
    CHECK(queue_push(WIRE_PACKET_PARTIAL, body, sizeof body));
    CHECK_EQUAL(queue_next(NULL)->length, sizeof body);
    queue_remove(queue_next(NULL));
}

static void forgetting_leaves_what_is_no_row(void)
{
    uint8_t body[4] = {0};
    push_partial(1, 5, 2);
    queue_push(WIRE_PACKET_STATUS, body, 4);
    queue_push(WIRE_PACKET_RESULT, body, 4);
    queue_push(WIRE_PACKET_RESULT, body, 4);
    queue_push(WIRE_PACKET_COMMAND_ACK, body, 4);
    queue_push(WIRE_PACKET_RESULT, body, 4);
    queue_forget();
    CHECK_EQUAL(count(), 2);
    CHECK_EQUAL(queue_dropped(), 4);
    CHECK_EQUAL(queue_next(NULL)->type, WIRE_PACKET_STATUS);
}

static void states_that_change_nothing_in_those_heard_are_withheld(void)
{
    struct wire_partial heard = {.query = 1, .epoch = 5, .motes = 4};
    push_partial(1, 5, 2);
    push_partial(2, 5, 1);
    push_partial(1, 6, 1);
    /* a record of its own, beside that of this mote */
    CHECK(queue_push(QUEUE_HEARD, &heard, sizeof heard));
    CHECK(queue_push(QUEUE_HEARD, &heard, sizeof heard));
    CHECK_EQUAL(count(), 4);
    queue_withhold();
    CHECK_EQUAL(count(), 3);
    for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r)) {
        const struct wire_partial *left = (const struct wire_partial *)r->body;
        CHECK(r->type == QUEUE_HEARD ? left->motes == 8 : left->query == 2 || left->epoch == 6);
    }
}

/* A mote's states of a question: a sum, a least value and a number of tuples. */
static void push_states(uint16_t token, uint16_t mote, int16_t sum, int16_t least, uint8_t count)
{
    static const uint8_t kinds[] = {WIRE_AGGREGATE_SUM, WIRE_AGGREGATE_MIN, WIRE_AGGREGATE_COUNT};
    union {
        struct wire_states states;
        uint8_t bytes[100];
    } own;
    uint8_t length = index_states_begin(&own.states, token, mote, sizeof kinds, kinds);
    gather_add(&index_states_cells(&own.states)[0], kinds[0], sum, count);
    gather_add(&index_states_cells(&own.states)[1], kinds[1], least, count);
    gather_add(&index_states_cells(&own.states)[2], kinds[2], 0, count);
    CHECK(queue_push(WIRE_PACKET_STATES, own.bytes, length));
}

static void states_of_one_question_are_put_together_with_their_motes(void)
{
    push_states(7, 3, -20, 5, 2);
    push_states(8, 3, 100, 1, 1);
    push_states(7, 4, 0, 0, 0); /* has none */
    push_states(7, 5, 50, -9, 3);
    CHECK_EQUAL(count(), 2);
    struct queue_record *first = queue_next(NULL);
    struct wire_states *states = (struct wire_states *)first->body;
    CHECK_EQUAL(states->token, 7);
    CHECK_EQUAL(states->motes, 3);
    struct gather_cell *cells = index_states_cells(states);
    CHECK_EQUAL(cells[0].value, 30);
    CHECK_EQUAL(cells[1].value, -9);
    CHECK_EQUAL(cells[2].count, 5);
    uint16_t motes[3];
    CHECK_EQUAL(first->length, sizeof *states + 3 * (1 + sizeof *cells) + sizeof motes);
    memcpy(motes, first->body + first->length - sizeof motes, sizeof motes);
    CHECK(motes[0] == 3 && motes[1] == 4 && motes[2] == 5);
    first->in_flight = true;
    push_states(7, 6, 1, 1, 1);
    CHECK_EQUAL(count(), 3);
}

/* As many as a frame has room for, and what is no such record goes as it is. */
static void states_go_on_side_by_side_where_they_cannot_be_put_together(void)
{
    for (uint16_t mote = 1; mote <= 100; mote++)
        push_states(7, mote, 1, 1, 1);
    long tuples = 0, motes = 0;
    int before = count();
    CHECK(before > 1 && before < 6);
    for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r)) {
        struct wire_states *states = (struct wire_states *)r->body;
        CHECK(r->length + sizeof(struct wire_header) + sizeof(struct wire_bundle) +
                  sizeof(struct wire_record) <=
              WIRE_PACKET_MAXIMUM);
        tuples += (long)index_states_cells(states)[2].count;
        motes += states->motes;
    }
    CHECK_EQUAL(tuples, 100);
    CHECK_EQUAL(motes, 100);
    const uint8_t malformed[] = {7, 0, 3, 200, 1};
    for (uint8_t length = 1; length <= sizeof malformed; length++)
        CHECK(queue_push(WIRE_PACKET_STATES, malformed, length));
    CHECK_EQUAL(count(), before + (int)sizeof malformed);
}

static const struct test tests[] = {
    TEST(records_come_out_as_they_went_in),
    TEST(a_full_queue_refuses_counts_and_keeps_what_it_has),
    TEST(removing_from_anywhere_keeps_the_order_of_the_rest),
    TEST(partial_states_of_one_epoch_are_one_record_unless_they_are_on_their_way),
    TEST(partial_states_at_the_end_that_are_zero_take_no_room_until_they_are_merged),
    TEST(forgetting_leaves_what_is_no_row),
    TEST(states_that_change_nothing_in_those_heard_are_withheld),
    TEST(states_of_one_question_are_put_together_with_their_motes),
    TEST(states_go_on_side_by_side_where_they_cannot_be_put_together),
};
UNIT_MAIN(tests)
