/* Which frame the parent may have, though it has not said so, and by which number it would; what is
 * taken of a child's. The queue and what chooses from it, the tree, timers, slots and random
 * numbers are the real ones, and the board is the host's. Replaced are the MAC, what routing and
 * transport ask of the layers above them, the application, and the policies of QUEUE clauses.
 * sources: net/transport/uplink.c net/transport/queue.c query/queueing/queue_discipline.c
 * net/routing/ageing.c net/routing/beacon_due.c net/routing/beacon_receive.c
 * net/routing/namesake.c net/routing/neighbours.c net/routing/positions.c
 * net/routing/parent_choice.c net/routing/parent_loss.c net/routing/sequence_request.c
 * net/routing/tree.c net/mac/clocksync.c net/mac/frames.c net/mac/slot_table.c kernel/kernel.c
 * query/operators/index_states.c query/operators/gather_cell.c lib/random.c boards/host/board.c
 * boards/host/settings.c */
#include "above_routing.h"

#include "host.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/queue_discipline.h"
#include "net/transport/transport_ops.h"
#include "net/transport/uplink.h"
#include "query/queueing/policy.h"

enum { PARENT = 104, OTHER = 106, CHILD = 110, ME = 9 };

/* ---- the MAC ---- */
struct mac_counters mac_counters;
static uint8_t next;           /* number of a frame */
static uint8_t number;         /* … of what the radio has */
static mac_handler *under_way; /* of what the radio has */
static uint16_t destination;   /* … and its way */

void mac_cell_begins(void) {}
bool mac_busy(void) { return under_way; }
void mac_cancel(void) { under_way = NULL; }
void *mac_begin(struct mac_frame *frame, uint16_t to, uint8_t type)
{
    (void)to;
    (void)type;
    ((struct wire_mac_header *)frame->bytes)->sequence = next++;
    return frame->bytes + sizeof(struct wire_mac_header) + sizeof(struct wire_header);
}
void mac_finish(struct mac_frame *frame, uint8_t body)
{
    frame->length = (uint8_t)(body + sizeof(struct wire_mac_header) + sizeof(struct wire_header));
}
bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done)
{
    (void)tries;
    if (under_way)
        return false;
    under_way = done;
    const struct wire_mac_header *header = (const struct wire_mac_header *)frame->bytes;
    destination = header->destination;
    number = header->sequence;
    return true;
}

/* ---- what transport asks of the layers above it ---- */
static int finished;     /* cells in which nothing was left to send, or that were over */
static int acknowledged; /* frames */

void queue_grew(void) {}
void uplink_done(void) { finished++; }
void uplink_sent(uint8_t flags)
{
    (void)flags;
    acknowledged++;
}
bool uplink_expects_more(void) { return false; }

/* ---- the application: partial states that do not merge ---- */
bool app_child_row(const struct wire_result *row, uint8_t length)
{
    (void)row;
    (void)length;
    return true;
}
uint8_t app_child_state(uint16_t node, const struct wire_partial *state, uint8_t length)
{
    CHECK_EQUAL(node, CHILD);
    return state->motes ? length : 0;
}
uint8_t app_state_size(uint8_t query)
{
    (void)query;
    return 0;
}
bool app_merge(struct wire_partial *into, uint8_t size, const struct wire_partial *from,
               uint8_t length)
{
    (void)into, (void)size, (void)from, (void)length;
    return false;
}
bool app_superfluous(const struct wire_partial *mine, uint8_t length,
                     const struct wire_partial *heard, uint8_t heard_length)
{
    (void)mine, (void)length, (void)heard, (void)heard_length;
    return false;
}

/* ---- policies: no query has a QUEUE clause ---- */
const struct wire_queue *policy_of(uint8_t query)
{
    (void)query;
    return NULL;
}
uint16_t policy_left_out(uint8_t query, uint16_t rows)
{
    (void)query, (void)rows;
    return 0;
}
bool policy_may_go(uint8_t query)
{
    (void)query;
    return true;
}
void policy_gone(uint8_t query) { (void)query; }
uint16_t policy_difference(const struct wire_result *a, const struct wire_result *b)
{
    (void)a, (void)b;
    return 0;
}
void policy_average(struct wire_result *into, uint16_t weight, const struct wire_result *from,
                    uint16_t rest)
{
    (void)into, (void)weight, (void)from, (void)rest;
}

static void be(uint16_t node)
{
    host_settings(&(struct wire_settings){.magic = WIRE_SETTINGS_MAGIC, .nodeid = node});
}

/* At level 2. */
static void join(uint16_t session)
{
    CHECK(beacon_of(PARENT, 1, ROOT, 60, 255, session));
    CHECK_EQUAL(tree_own_parent(), PARENT);
    CHECK_EQUAL(tree_own_level(), 2);
    CHECK_EQUAL(tree_session(), session);
}

static void put(uint8_t type)
{
    static const struct wire_partial any = {.query = 1, .motes = 1};
    CHECK(queue_push(type, &any, sizeof any));
}

static void says(enum radio_outcome outcome)
{
    mac_handler *handler = under_way;
    under_way = NULL;
    handler(outcome);
}

/* A cell in which there is one record of this type. */
static void begin_with(uint8_t type)
{
    if (!tree_joined()) {
        be(ME);
        tree_init();
        join(SESSION);
    }
    put(type);
    uplink_start();
    CHECK(under_way && uplink_outstanding() && !uplink_doubtful());
    CHECK_EQUAL(queue_length(), 0);
}

static void begin(void) { begin_with(WIRE_PACKET_RESULT); }

static void a_cell_that_ends_while_the_radio_has_the_frame_leaves_it_in_doubt(void)
{
    begin();
    uplink_stop();
    CHECK(uplink_doubtful());
    uplink_start();
    CHECK_EQUAL(destination, PARENT);
    CHECK(uplink_doubtful()); /* until the parent has said that it has it */
    says(RADIO_SENT);
    CHECK(!uplink_outstanding() && !uplink_doubtful());
}

static void what_was_not_acknowledged_is_in_doubt(void)
{
    begin();
    says(RADIO_NO_ACK);
    CHECK(uplink_doubtful());
    uplink_stop();
    CHECK(uplink_doubtful());
}

static void what_was_never_on_the_air_may_take_another_way(void)
{
    begin();
    says(RADIO_BUSY);
    uplink_stop();
    CHECK(uplink_outstanding() && !uplink_doubtful());
    hear(OTHER, 1, ROOT, 16, 255);
    CHECK_EQUAL(tree_own_parent(), OTHER);
    uplink_start();
    CHECK_EQUAL(destination, OTHER);
}

static void a_frame_after_one_in_doubt_is_in_none(void)
{
    begin();
    uplink_stop();
    uplink_start();
    says(RADIO_SENT);
    uplink_stop();
    begin();
}

/* The gateway drops a row that comes twice; a partial state counts twice where two parents have it.
 */
static void what_holds_partial_states_says_so(void)
{
    begin();
    CHECK(!uplink_partials());
    says(RADIO_SENT);
    uplink_stop();
    begin_with(WIRE_PACKET_PARTIAL);
    CHECK(uplink_partials());
    says(RADIO_SENT);
    CHECK(!uplink_partials());
    begin_with(WIRE_PACKET_STATES);
    CHECK(uplink_partials());
    says(RADIO_SENT);
}

static void a_bundle_tells_of_which_session_it_is(void)
{
    begin();
    says(RADIO_SENT);
    for (uint16_t session = 0x10FE; session < 0x1101; session++) {
        join(session);
        begin();
        uint8_t flags =
            role_frames.uplink.bytes[sizeof(struct wire_mac_header) + sizeof(struct wire_header)];
        CHECK(uplink_of_session(flags));
        CHECK(uplink_of_session(flags ^ (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER)));
        says(RADIO_SENT);
        join((uint16_t)(session + 1));
        CHECK(!uplink_of_session(flags));
    }
}

/* `step`: from one of four motes to the next. */
static void check_apart(uint16_t step)
{
    uint8_t by[256] = {0};
    begin();
    says(RADIO_SENT);
    uplink_stop();
    CHECK_EQUAL(slot_table_cells(tree_own_level()), 20);
    for (uint8_t mote = 0; mote < 4; mote++) {
        be((uint16_t)(1 + step * mote));
        for (uint8_t i = 0; i < 64; i++) {
            begin();
            CHECK_EQUAL(by[number], 0);
            by[number] = 1;
            says(RADIO_SENT);
            uplink_stop();
        }
    }
}

/* the numbers of motes that share the first of 20 cells at times */
static void who_meets_in_a_cell_numbers_frames_apart(void) { check_apart(20); }

/* From one number to the next are seven of 20 cells (schedule.c), so from one cell to the next
 * three numbers. */
static void so_does_who_follows_in_the_next_cell(void) { check_apart(3); }

/* A parent would take it for the bundle before, and drop it. */
static void no_bundle_has_the_number_of_the_one_before_whatever_was_sent_between(void)
{
    begin();
    for (uint16_t others = 0; others < 600; others++) {
        uint8_t before = number;
        says(RADIO_SENT);
        uplink_stop();
        next = (uint8_t)(next + others);
        begin();
        CHECK(number != before);
    }
}

/* Of two of one address each would take the other's acknowledgements, for as long as their numbers
 * went together; of 64 numbers one meets. */
static void numbers_of_motes_that_send_bundles_at_one_pace_do_not_stay_equal(void)
{
    enum { BUNDLES = 128 };
    uint8_t numbers[2][BUNDLES];
    begin();
    for (uint8_t mote = 0; mote < 2; mote++)
        for (uint8_t i = 0; i < BUNDLES; i++) {
            says(RADIO_SENT);
            uplink_stop();
            next = (uint8_t)(next + (i * (mote + 3)) % 7);
            begin();
            numbers[mote][i] = number;
        }
    int equal = 0;
    for (uint8_t i = 0; i < BUNDLES; i++)
        equal += numbers[0][i] == numbers[1][i];
    CHECK(equal < BUNDLES / 10);
}

/* Records in the frame that the radio has. */
static int records(void)
{
    const uint8_t *body =
        role_frames.uplink.bytes + sizeof(struct wire_mac_header) + sizeof(struct wire_header);
    uint8_t length = (uint8_t)(role_frames.uplink.length - sizeof(struct wire_mac_header) -
                               sizeof(struct wire_header)),
            at = sizeof(struct wire_bundle);
    CHECK_EQUAL(!(*body & WIRE_BUNDLE_PENDING), queue_length() == 0);
    int count = 0;
    while (uplink_record(body, length, &at))
        count++;
    CHECK_EQUAL(at, length);
    return count;
}

/* To a parent that has been told of more, and so goes on listening. */
static void what_fits_no_frame_follows_in_the_next_of_the_same_cell(void)
{
    begin();
    says(RADIO_SENT);
    uplink_stop();
    int sent = 0, frames = 0;
    finished = acknowledged = 0;
    for (int i = 0; i < 40; i++)
        put(WIRE_PACKET_RESULT);
    for (uplink_start(); under_way; frames++) {
        uint8_t before = number;
        bool lost = frames == 1;
        sent += lost ? 0 : records();
        CHECK_EQUAL(finished, 0);
        says(lost ? RADIO_NO_ACK : RADIO_SENT);
        CHECK(!under_way);
        host_run(CLOCK_MS(20), 1);
        if (lost) {
            CHECK(under_way && uplink_doubtful());
            CHECK_EQUAL(number, before);
        }
    }
    CHECK(frames > 3);
    CHECK_EQUAL(sent, 40);
    CHECK_EQUAL(acknowledged, frames - 1);
    CHECK_EQUAL(finished, 1);
    CHECK(!uplink_outstanding() && !uplink_waiting());
}

/* Two rows and a partial state, of so many motes. */
static uint8_t bundle_of_a_child(uint8_t *bytes, uint16_t motes)
{
    static const uint8_t types[] = {WIRE_PACKET_RESULT, WIRE_PACKET_PARTIAL, WIRE_PACKET_RESULT};
    uint8_t at = sizeof(struct wire_bundle);
    bytes[0] = 0;
    for (uint8_t i = 0; i < sizeof types; i++) {
        struct wire_record *record = (struct wire_record *)(bytes + at);
        struct wire_partial *body = (struct wire_partial *)(record + 1);
        *record = (struct wire_record){.type = types[i], .body_length = sizeof *body};
        *body = (struct wire_partial){.query = (uint8_t)(i + 1), .motes = motes};
        at = (uint8_t)(at + sizeof *record + sizeof *body);
    }
    return at;
}

static void a_childs_records_are_taken_in_their_order_but_what_need_not_go_on(void)
{
    uint8_t bytes[WIRE_PACKET_MAXIMUM];
    uplink_bundle(CHILD, bytes, bundle_of_a_child(bytes, 2));
    CHECK_EQUAL(queue_length(), 3);
    uint8_t query = 1;
    for (struct queue_record *r = queue_next(NULL); r; r = queue_next(r))
        CHECK_EQUAL(r->body[0], query++);
    uplink_bundle(CHILD, bytes, bundle_of_a_child(bytes, 0));
    CHECK_EQUAL(queue_length(), 5);
    CHECK_EQUAL(queue_dropped() + mac_counters.malformed, 0);
}

static void of_a_bundle_that_is_cut_off_or_finds_no_room_nothing_is_taken(void)
{
    uint8_t bytes[WIRE_PACKET_MAXIMUM], length = bundle_of_a_child(bytes, 2);
    uplink_bundle(CHILD, bytes, (uint8_t)(length - 1));
    CHECK_EQUAL(mac_counters.malformed, 1);
    CHECK_EQUAL(queue_length(), 0);
    uint8_t before = 0;
    for (int i = 0; i < 100; i++) {
        before = queue_length();
        uplink_bundle(CHILD, bytes, length);
        CHECK(queue_length() == before + 3 || queue_length() == before);
    }
    CHECK_EQUAL(queue_length(), before);
    CHECK(before > 30 && queue_room() < length + 3);
    /* Each bundle that was not taken whole counts as one. */
    CHECK_EQUAL(queue_dropped(), 100 - queue_length() / 3);
}

static const struct test tests[] = {
    TEST(a_cell_that_ends_while_the_radio_has_the_frame_leaves_it_in_doubt),
    TEST(what_was_not_acknowledged_is_in_doubt),
    TEST(what_was_never_on_the_air_may_take_another_way),
    TEST(a_frame_after_one_in_doubt_is_in_none),
    TEST(what_holds_partial_states_says_so),
    TEST(a_bundle_tells_of_which_session_it_is),
    TEST(who_meets_in_a_cell_numbers_frames_apart),
    TEST(so_does_who_follows_in_the_next_cell),
    TEST(no_bundle_has_the_number_of_the_one_before_whatever_was_sent_between),
    TEST(numbers_of_motes_that_send_bundles_at_one_pace_do_not_stay_equal),
    TEST(what_fits_no_frame_follows_in_the_next_of_the_same_cell),
    TEST(a_childs_records_are_taken_in_their_order_but_what_need_not_go_on),
    TEST(of_a_bundle_that_is_cut_off_or_finds_no_room_nothing_is_taken),
};
UNIT_MAIN(tests)
