/* Which frame the parent may have, though it has not said so, and by which number it would.
 * sources: net/transport/uplink.c net/mac/frames.c */
#include "unit.h"

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/parent_loss.h"
#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/uplink.h"

enum { PARENT = 4, OTHER = 6 };

struct mac_counters mac_counters;
static struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC, .nodeid = 1};
static uint8_t next;   /* number of a frame */
static uint8_t number; /* … of what the radio has */
static uint16_t parent = PARENT;
static struct {
    struct queue_record record;
    uint8_t body[8];
} only = {.record = {.length = 8, .type = WIRE_PACKET_RESULT}};
static bool queued;
static mac_handler *under_way; /* of what the radio has */
static uint16_t destination;   /* … and its way */

const struct wire_settings *settings(void) { return &own; }
uint16_t tree_own_parent(void) { return parent; }
uint8_t tree_own_level(void) { return 2; }
static uint16_t session;
uint16_t tree_session(void) { return session; }
bool tree_is_root(void) { return false; }
void parent_frame_sent(bool acknowledged) { (void)acknowledged; }
struct queue_record *discipline_next(bool partials)
{
    (void)partials;
    return queued ? &only.record : NULL;
}
uint8_t discipline_length(const struct queue_record *record) { return record->length; }
void discipline_on_transmit(struct queue_record *record) { (void)record; }
void discipline_on_acked(struct queue_record *record)
{
    (void)record;
    queued = false;
}
struct queue_record *queue_append(uint8_t type, const void *body, uint8_t length)
{
    (void)type;
    (void)body;
    (void)length;
    return NULL;
}
bool queue_push(uint8_t type, const void *body, uint8_t length)
{
    (void)type;
    (void)body;
    (void)length;
    return true;
}
void queue_lost(void) {}
void queue_forget(void) {}
uint16_t queue_room(void) { return 100; }
uint8_t app_child_state(uint16_t node, const struct wire_partial *state, uint8_t length)
{
    (void)node;
    (void)state;
    return length;
}
bool uplink_expects_more(void) { return false; }
uint8_t slot_table_cells(uint8_t level)
{
    (void)level;
    return 20;
}
void slot_table_mote(uint8_t level) { (void)level; }
void uplink_done(void) {}
void uplink_sent(uint8_t flags) { (void)flags; }
uint16_t random_below(uint16_t bound)
{
    (void)bound;
    return 0;
}
ticks_t clock_now(void) { return 0; }
void timer_after(struct timer *timer, uint16_t ticks, timer_handler *handler)
{
    (void)timer;
    (void)ticks;
    (void)handler;
}
void timer_stop(struct timer *timer) { (void)timer; }
void mac_cell_begins(void) {}
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

static void says(enum radio_outcome outcome)
{
    mac_handler *handler = under_way;
    under_way = NULL;
    handler(outcome);
}

static void begin(void)
{
    queued = true;
    uplink_start();
    CHECK(under_way && uplink_outstanding() && !uplink_doubtful());
}

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
    parent = OTHER;
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
    only.record.type = WIRE_PACKET_PARTIAL;
    begin();
    CHECK(uplink_partials());
    says(RADIO_SENT);
    CHECK(!uplink_partials());
}

static void a_bundle_tells_of_which_session_it_is(void)
{
    for (session = 0x10FE; session < 0x1101; session++) {
        begin();
        uint8_t flags =
            role_frames.uplink.bytes[sizeof(struct wire_mac_header) + sizeof(struct wire_header)];
        CHECK(uplink_of_session(flags));
        CHECK(uplink_of_session(flags ^ (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER)));
        says(RADIO_SENT);
        session++;
        CHECK(!uplink_of_session(flags));
        session--;
    }
    session = 0;
}

/* `step`: from one of four motes to the next. */
static void check_apart(uint16_t step)
{
    uint8_t by[256] = {0};
    for (uint8_t mote = 0; mote < 4; mote++) {
        own.nodeid = (uint16_t)(1 + step * mote);
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

static const struct test tests[] = {
    TEST(a_cell_that_ends_while_the_radio_has_the_frame_leaves_it_in_doubt),
    TEST(what_was_not_acknowledged_is_in_doubt),
    TEST(what_was_never_on_the_air_may_take_another_way),
    TEST(a_frame_after_one_in_doubt_is_in_none),
    TEST(what_holds_partial_states_says_so),
    TEST(a_bundle_tells_of_which_session_it_is),
    TEST(who_meets_in_a_cell_numbers_frames_apart),
    TEST(so_does_who_follows_in_the_next_cell),
};
UNIT_MAIN(tests)
