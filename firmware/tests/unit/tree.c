/* The choice of a parent, and when it is given up. sources: net/tree.c net/neighbours.c net/slots.c */
#include "unit.h"

#include "drivers/settings.h"
#include "net/clocksync.h"
#include "net/dissemination.h"
#include "net/mac.h"
#include "net/neighbours.h"
#include "net/schedule.h"
#include "net/slots.h"
#include "net/tree.h"
#include "net/uplink.h"
#include "query/query.h"
#include "query/srt.h"

enum { ME = 9, ROOT = 1, SESSION = 3 };

static struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC, .nodeid = ME};
static bool clock_is_known;
static int joined, left, changed, stale, stamped, restarted;
static uint16_t greeted;
static int asked_again;

const struct wire_settings *settings(void) { return &own; }
bool time_known(void) { return clock_is_known; }
bool clocksync_stamp(uint16_t source, const struct wire_beacon *beacon, ticks_t local)
{
    (void)source; (void)beacon; (void)local;
    stamped++;
    clock_is_known = true;
    return false;
}
static bool clock_is_stale;
bool clocksync_stale(void) { return clock_is_stale; }
struct clocksync_relation clocksync_relation(void) { return (struct clocksync_relation){0}; }
void clocksync_lose(void) { clock_is_known = false; }
void dissemination_forget(void) {}
void dissemination_greet(uint16_t to, bool again) { greeted = to; asked_again += again; }
uint16_t dissemination_version(void) { return 0; }
static int wanted, beacons;
void dissemination_want(void) { wanted++; }
void schedule_beacon_now(void) { beacons++; }
static bool slow;
bool schedule_slow(void) { return slow; }
void schedule_session(bool again) { (void)again; restarted++; }
void uplink_forget(void) {}
static bool doubtful;
bool uplink_doubtful(void) { return doubtful; }
void query_time_changed(void) {}
void net_joined(void) { joined++; }
void net_left(void) { left++; }
void net_parent_changed(void) { changed++; }
void net_stale_neighbour(void) { stale++; }
void net_clock_jumped(void) {}

struct mac_counters mac_counters;
static bool wider;
static uint8_t told[WIRE_PACKET_MAXIMUM], told_length;
bool srt_heard(uint8_t neighbour, const uint8_t *entries, uint8_t length, bool whole)
{
    (void)neighbour;
    (void)whole;
    memcpy(told, entries, told_length = length);
    return length != 1;
}
void srt_forget(uint8_t neighbour) { (void)neighbour; }
bool srt_refresh(bool window) { return window && wider; }
uint8_t srt_write(uint8_t *entries) { memset(entries, 0x55, sizeof(struct wire_srt_entry)); return sizeof(struct wire_srt_entry); }

static bool by_values;
static uint16_t distances[256]; /* by node */
bool srt_chooses(void) { return by_values; }
uint16_t srt_distance(uint8_t neighbour, bool parent)
{
    CHECK_EQUAL(parent, neighbours()[neighbour].node == tree_own_parent());
    return distances[neighbours()[neighbour].node & 255];
}
uint16_t random_below(uint16_t limit) { (void)limit; return 0; }

static uint8_t sequence[256];
/* Of the root's latest beacon, that all others of a test have heard of; it stands still while a test says so. */
static uint8_t root_sequence;
static bool cut_off;

/* A beacon of `node`, heard with `lqi`, that says it hears this mote as well. */
static bool beacon_of(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi, uint16_t session)
{
    root_sequence += !cut_off;
    uint8_t bytes[sizeof(struct wire_beacon) + sizeof(struct wire_neighbour_entry)] = {0};
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    *beacon = (struct wire_beacon){.root = ROOT, .session = session, .sequence = sequence[node & 255]++, .root_sequence = root_sequence, .level = level, .parent = parent, .cost = cost};
    beacon->neighbours[0].node = ME;
    beacon->neighbours[0].heard = lqi;
    struct radio_frame frame = {.lqi = lqi};
    return tree_beacon(&frame, node, beacon, sizeof bytes);
}

static void hear(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi) { CHECK(beacon_of(node, level, parent, cost, lqi, SESSION)); }

static void windows(int count, int (*each)(void))
{
    for (int i = 0; i < count; i++) {
        if (each) (void)each();
        tree_age();
    }
}

static void the_first_beacon_of_a_root_is_joined(void)
{
    tree_init();
    CHECK(!tree_joined());
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    CHECK(tree_joined());
    CHECK_EQUAL(tree_own_level(), 1);
    CHECK_EQUAL(tree_own_parent(), ROOT);
    CHECK_EQUAL(joined, 1);
    CHECK(stamped >= 1);
}

static void a_mote_that_lacks_the_time_takes_it_of_others_closer_to_the_root(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    stamped = 0;
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(stamped, 0);
    clock_is_stale = true;
    hear(5, 3, 4, 40, 255); /* as deep as this one: it could have its time of this one */
    CHECK_EQUAL(stamped, 0);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(stamped, 1);
    CHECK_EQUAL(tree_own_parent(), 2);
    clock_is_stale = false;
}

static void a_better_parent_must_be_better_by_one_and_a_half_transmissions(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    hear(3, 2, 4, 40 - 23, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    hear(5, 2, 4, 40 - 25, 255);
    CHECK_EQUAL(tree_own_parent(), 5);
    CHECK_EQUAL(changed, 1);
}

static void a_frame_that_the_parent_may_have_is_settled_before_a_better_one_is_taken(void)
{
    tree_init();
    hear(2, 2, 4, 200, 255);
    doubtful = true;
    hear(3, 2, 4, 10, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    doubtful = false;
    hear(3, 2, 4, 10, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
}

static void nobody_at_the_same_depth_or_below_becomes_the_parent(void)
{
    tree_init();
    hear(2, 3, 4, 200, 255);
    CHECK_EQUAL(tree_own_level(), 4);
    hear(3, 4, 7, 0, 255); /* as deep as this one: perhaps its own child's child */
    hear(6, 3, ME, 0, 255); /* its own child */
    CHECK_EQUAL(tree_own_parent(), 2);
}

static void a_weak_neighbour_is_not_taken(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 15);
    CHECK(!tree_joined());
    hear(3, 5, 4, 100, 200);
    CHECK_EQUAL(tree_own_parent(), 3);
}

static int parent_beacon(void) { hear(2, 1, ROOT, 16, 255); return 0; }

static void whose_parent_hardly_hears_it_may_go_a_level_down(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(tree_own_level(), 2);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 30; i++) tree_sent(false);
    tree_child_heard(6, 255);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2); /* its child may be above that one */
    windows(30, parent_beacon);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(tree_own_level(), 3);
    CHECK_EQUAL(left, 0);
}

static int root_beacon(void) { hear(ROOT, 0, WIRE_NO_NODE, 0, 255); return 0; }
static int other_beacon(void) { hear(2, 1, ROOT, 16, 255); return 0; }

static void a_silent_parent_is_given_up_for_another_and_without_one_the_mote_leaves(void)
{
    tree_init();
    windows(10, root_beacon);
    CHECK_EQUAL(tree_own_parent(), ROOT);
    windows(15, other_beacon); /* the root is silent */
    CHECK_EQUAL(tree_own_parent(), WIRE_NO_NODE); /* 2 stands no closer than this mote did: it may not follow it at once */
    CHECK_EQUAL(left, 1);
    CHECK(tree_farewell());
    windows(4, other_beacon);
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK_EQUAL(tree_own_level(), 2);
}

static void a_parent_that_does_not_acknowledge_is_kept_while_it_is_heard_up_to_a_limit(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    hear(3, 0, WIRE_NO_NODE, 8, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 3; i++) tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 37; i++) tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(greeted, 3);
    CHECK(asked_again > 1);
}

static void a_parent_that_is_heard_well_and_answers_nothing_at_all_is_given_up_soon(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    hear(3, 0, WIRE_NO_NODE, 8, 255);
    for (int i = 0; i < 20; i++) tree_sent(false); /* the slot may be crowded */
    CHECK_EQUAL(tree_own_parent(), 2);
    tree_sent(true);
    tree_greeted(false);
    for (int i = 0; i < 7; i++) tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    hear(4, 0, WIRE_NO_NODE, 16, 255);
    for (int i = 0; i < 8; i++) tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    tree_greeted(false); /* before the next epoch's rows */
    CHECK_EQUAL(tree_own_parent(), 4);
}

static void a_parent_that_is_not_heard_is_asked_before_it_is_given_up(void)
{
    tree_init();
    windows(10, root_beacon);
    greeted = WIRE_NO_NODE;
    windows(8, NULL);
    CHECK_EQUAL(greeted, ROOT);
    for (int i = 0; i < 8; i++) tree_sent(false); /* its slots were missed, and so were its beacons */
    CHECK_EQUAL(tree_own_parent(), ROOT);
    for (int answered = 0; answered < 5; answered++) {
        tree_greeted(true);
        windows(12, NULL);
        CHECK_EQUAL(tree_own_parent(), ROOT);
    }
    tree_greeted(false);
    tree_sent(false);
    CHECK_EQUAL(tree_own_parent(), WIRE_NO_NODE);
}

static void a_parent_that_takes_this_mote_for_its_own_is_dropped(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    hear(2, 1, ME, 16, 255);
    CHECK_EQUAL(tree_own_parent(), WIRE_NO_NODE);
}

static void what_was_joined_by_way_of_this_mote_is_no_way_for_it(void)
{
    tree_init();
    cut_off = false;
    hear(2, 1, ROOT, 16, 255);
    cut_off = true;
    hear(3, 3, 5, 60, 255); /* a child's child, that this mote does not know as such */
    hear(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    CHECK(!tree_joined());
    for (int i = 0; i < 20; i++) {
        hear(3, 3, 5, 60, 255);
        tree_age();
    }
    CHECK(!tree_joined());
    cut_off = false; /* it has another way */
    hear(3, 3, 5, 60, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(tree_own_level(), 4);
}

static void news_that_one_neighbour_has_let_a_mote_without_children_join_any(void)
{
    for (int children = 0; children < 2; children++) {
        tree_init();
        cut_off = false;
        beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 15, (uint16_t)(SESSION + 1 + children)); /* too weak for a parent */
        uint16_t session = (uint16_t)(SESSION + 1 + children);
        beacon_of(3, 2, 4, 90, 255, session);
        beacon_of(2, 1, ROOT, 16, 255, session);
        CHECK_EQUAL(tree_own_parent(), 2);
        if (children) tree_child_heard(8, 255);
        beacon_of(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK(!tree_joined());
        beacon_of(5, 2, 4, 900, 255, session);
        CHECK_EQUAL(tree_own_parent(), children ? 5 : 3);
        if (children) continue;
        cut_off = true; /* once by the same news */
        beacon_of(3, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK_EQUAL(tree_own_parent(), 5); /* closer to the root than this mote was */
        beacon_of(5, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        for (int i = 0; i < 20; i++) {
            beacon_of(3, 2, 4, 90, 255, session);
            tree_age();
        }
        CHECK(!tree_joined());
    }
    cut_off = false;
}

static void who_leaves_says_so_in_a_window_in_which_others_are_awake(void)
{
    for (int seldom = 0; seldom < 2; seldom++) {
        slow = seldom;
        tree_init();
        hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
        hear(ROOT, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
        int says = 0; /* windows of a search are as often as in a fast network */
        for (int window = 0; window < 20; window++, tree_age()) says += tree_farewell();
        CHECK_EQUAL(says, seldom ? 9 : 3);
    }
    slow = false;
}

static void numbers_of_the_root_that_have_come_round_do_not_keep_a_mote_out(void)
{
    tree_init();
    cut_off = false;
    hear(2, 1, ROOT, 16, 255);
    hear(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    root_sequence += 200; /* of 256: less than before, as it seems */
    cut_off = true;
    windows(99, other_beacon);
    CHECK(!tree_joined());
    windows(2, other_beacon);
    CHECK_EQUAL(tree_own_parent(), 2);
    cut_off = false;
}

static void a_parent_that_stands_below_this_mote_is_given_up_and_counted(void)
{
    tree_init();
    cut_off = false;
    uint16_t loops = mac_counters.loops;
    hear(2, 1, ROOT, 16, 255);
    hear(2, 4, 7, 70, 255); /* by another way, with news of the root */
    CHECK_EQUAL(tree_own_level(), 5);
    CHECK_EQUAL(mac_counters.loops, loops);
    cut_off = true;
    hear(2, 6, 3, 99, 255);
    CHECK(!tree_joined());
    CHECK_EQUAL(mac_counters.loops, loops + 1);
    cut_off = false;
}

static void a_link_is_as_good_as_before_when_its_mote_is_back_in_the_tree(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    hear(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    CHECK(!tree_joined());
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK(neighbour_link_cost(neighbour_find(2)) < 2 * COST_UNIT);
}

static void levels_end_at_32(void)
{
    tree_init();
    hear(2, 31, 4, 500, 255);
    CHECK_EQUAL(tree_own_level(), 32);
    hear(2, 32, 4, 500, 255);
    CHECK(!tree_joined());
    hear(3, 200, 4, 500, 255);
    CHECK(!tree_joined());
}

static void a_newer_session_of_the_root_starts_anew_and_an_older_one_is_told(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    CHECK(!beacon_of(5, 1, ROOT, 16, 255, SESSION - 1));
    CHECK_EQUAL(stale, 1);
    CHECK_EQUAL(tree_own_parent(), 2);
    restarted = 0;
    CHECK(beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 255, SESSION + 1));
    CHECK_EQUAL(restarted, 1);
    CHECK_EQUAL(left, 1);
}

static void the_table_keeps_the_parent_and_those_closer_to_the_root(void)
{
    tree_init();
    hear(2, 3, 4, 60, 255);
    for (uint16_t node = 100; node < 140; node++) hear(node, 4, 2, 90, 255);
    CHECK_EQUAL(neighbour_count(), NEIGHBOURS);
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK(neighbour_find(2) != NULL);
    hear(7, 2, 4, 50, 100);
    CHECK(neighbour_find(7) != NULL);
}

static void a_child_without_a_place_counts_for_a_while(void)
{
    tree_init();
    hear(2, 3, 4, 60, 255);
    for (uint16_t node = 100; node < 100 + NEIGHBOURS - 1; node++) tree_child_heard(node, 255);
    CHECK(!neighbours_crowded());
    tree_child_heard(200, 255);
    CHECK(neighbours_crowded());
    CHECK(neighbour_find(200) == NULL && neighbour_find(2) != NULL);
    for (int window = 0; window < 30; window++) {
        CHECK(neighbours_crowded());
        neighbours_age();
    }
    CHECK(!neighbours_crowded());
}

static void values_decide_among_parents_that_are_about_as_good(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    hear(3, 2, 4, 70, 255);
    hear(5, 2, 4, 120, 255); /* too far away */
    hear(6, 3, 4, 40, 255);  /* no closer to the root than this mote */
    distances[2] = 9;
    distances[3] = 7;
    distances[5] = distances[6] = 0;
    by_values = true;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 2); /* not by so little */
    distances[3] = 6;
    doubtful = true;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 2);
    doubtful = false;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 3);
    hear(2, 2, 4, 40, 255); /* the better link does not take it back */
    CHECK_EQUAL(tree_own_parent(), 3);
}

static int both_parents(void)
{
    hear(2, 2, 4, 40, 255);
    hear(3, 2, 4, 40, 255);
    return 0;
}

static void once_a_tree_has_stood_for_minutes_only_what_fits_far_better_is_taken(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    hear(3, 2, 4, 40, 255);
    distances[2] = distances[3] = 40;
    by_values = true;
    windows(59, both_parents);
    distances[3] = 37;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 2);
    distances[3] = 17;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 2);
    distances[3] = 16;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 3);
    distances[2] = 13; /* … not so of the next tree */
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 3);
    by_values = false;
    tree_age();
    by_values = true;
    tree_age();
    CHECK_EQUAL(tree_own_parent(), 2);
}

static void more_below_is_news(void)
{
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    windows(10, root_beacon);
    CHECK(!tree_beacon_due(4));
    wider = true;
    tree_age();
    wider = false;
    CHECK(tree_beacon_due(4));
    tree_age();
    CHECK(!tree_beacon_due(4));
}

static void beacons_carry_trees(void)
{
    uint8_t bytes[WIRE_PACKET_MAXIMUM];
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    uint8_t length = tree_write_beacon(beacon);
    CHECK_EQUAL(beacon->srts_length, sizeof(struct wire_srt_entry));
    CHECK_EQUAL(length, sizeof *beacon + sizeof(struct wire_srt_entry) + sizeof(struct wire_neighbour_entry));
    struct wire_neighbour_entry *entry = (struct wire_neighbour_entry *)((uint8_t *)beacon->neighbours + sizeof(struct wire_srt_entry));
    CHECK_EQUAL(entry->node, ROOT);
    beacon->parent = ROOT;
    beacon->level = 2;
    struct radio_frame frame = {.lqi = 255};
    CHECK(tree_beacon(&frame, 8, beacon, length));
    CHECK_EQUAL(told_length, sizeof(struct wire_srt_entry));
    CHECK_EQUAL(told[0], 0x55);
    uint16_t malformed = mac_counters.malformed;
    beacon->srts_length = (uint8_t)(length - sizeof *beacon + 1);
    CHECK(!tree_beacon(&frame, 8, beacon, length));
    beacon->srts_length = 1; /* the stub takes it for none that can be */
    CHECK(tree_beacon(&frame, 8, beacon, length));
    CHECK_EQUAL(mac_counters.malformed, malformed + 2);
}

static void slots_are_told_on_and_those_that_cannot_be_are_refused(void)
{
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    windows(10, root_beacon);
    CHECK(!tree_beacon_due(4));
    uint8_t bytes[WIRE_PACKET_MAXIMUM], told_bytes[WIRE_PACKET_MAXIMUM] = {0};
    struct wire_beacon *heard = (struct wire_beacon *)told_bytes;
    struct wire_slots_entry *slots = (struct wire_slots_entry *)heard->neighbours;
    *heard = (struct wire_beacon){.root = ROOT, .session = SESSION, .level = 0, .parent = WIRE_NO_NODE, .srts_length = sizeof *slots};
    *slots = (struct wire_slots_entry){.version = 1, .table = 0x0200002F};
    uint8_t length = sizeof *heard + sizeof *slots;
    struct radio_frame frame = {.lqi = 255};
    uint16_t malformed = mac_counters.malformed;
    CHECK(!tree_beacon(&frame, 8, heard, length));
    CHECK_EQUAL(mac_counters.malformed, malformed + 1);
    CHECK(neighbour_find(8) == NULL);
    CHECK_EQUAL(slots_cells(1), 36);
    slots->table = 0x0200001F;
    heard->root++;
    CHECK(!tree_beacon(&frame, 8, heard, length)); /* another network's */
    CHECK_EQUAL(slots_cells(1), 36);
    heard->root--;
    CHECK(tree_beacon(&frame, 8, heard, length));
    CHECK_EQUAL(slots_cells(1), 88);
    CHECK_EQUAL(told_length, 0); /* no entries of trees */
    CHECK(!tree_beacon_due(4)); /* with the next beacon that it sends anyway */
    length = tree_write_beacon((struct wire_beacon *)bytes);
    CHECK_EQUAL(((struct wire_beacon *)bytes)->srts_length, sizeof *slots + sizeof(struct wire_srt_entry));
    CHECK_EQUAL(memcmp(((struct wire_beacon *)bytes)->neighbours, slots, sizeof *slots), 0);
    for (uint16_t node = 100; node < 140; node++) hear(node, 2, 4, 90, 255);
    CHECK(tree_write_beacon((struct wire_beacon *)bytes) <= sizeof *heard + sizeof(struct wire_srt_entry) + 12 * sizeof(struct wire_neighbour_entry));
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255); /* one that has told nothing */
    CHECK_EQUAL(slots_cells(1), 88);
    beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 255, SESSION + 1);
    CHECK_EQUAL(slots_cells(1), 36);
}

static void beacons_that_cannot_be_change_nothing(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    uint16_t malformed = mac_counters.malformed;
    uint8_t bytes[sizeof(struct wire_beacon)] = {0};
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    *beacon = (struct wire_beacon){.root = ROOT, .session = SESSION, .ticks = 32768};
    struct radio_frame frame = {.lqi = 255};
    CHECK(!tree_beacon(&frame, 8, beacon, sizeof bytes));
    beacon->ticks = 0;
    beacon->skew = CLOCKSYNC_SKEW_MAXIMUM + 1;
    CHECK(!tree_beacon(&frame, 8, beacon, sizeof bytes));
    beacon->skew = -CLOCKSYNC_SKEW_MAXIMUM - 1;
    CHECK(!tree_beacon(&frame, 8, beacon, sizeof bytes));
    beacon->skew = 0;
    CHECK_EQUAL(mac_counters.malformed, malformed + 3);
    CHECK(!tree_beacon(&frame, ME, beacon, sizeof bytes));
    beacon->root = 77;
    CHECK(!tree_beacon(&frame, 8, beacon, sizeof bytes));
    CHECK(neighbour_find(8) == NULL);
    CHECK_EQUAL(tree_own_parent(), 2);
}

static const struct test tests[] = {
    TEST(the_first_beacon_of_a_root_is_joined), TEST(a_mote_that_lacks_the_time_takes_it_of_others_closer_to_the_root),
    TEST(a_better_parent_must_be_better_by_one_and_a_half_transmissions),
    TEST(a_frame_that_the_parent_may_have_is_settled_before_a_better_one_is_taken),
    TEST(nobody_at_the_same_depth_or_below_becomes_the_parent), TEST(a_weak_neighbour_is_not_taken), TEST(whose_parent_hardly_hears_it_may_go_a_level_down),
    TEST(a_silent_parent_is_given_up_for_another_and_without_one_the_mote_leaves),
    TEST(a_parent_that_does_not_acknowledge_is_kept_while_it_is_heard_up_to_a_limit),
    TEST(a_parent_that_is_not_heard_is_asked_before_it_is_given_up), TEST(who_leaves_says_so_in_a_window_in_which_others_are_awake),
   
    TEST(a_parent_that_is_heard_well_and_answers_nothing_at_all_is_given_up_soon),
    TEST(a_parent_that_takes_this_mote_for_its_own_is_dropped), TEST(what_was_joined_by_way_of_this_mote_is_no_way_for_it),
    TEST(news_that_one_neighbour_has_let_a_mote_without_children_join_any),
    TEST(numbers_of_the_root_that_have_come_round_do_not_keep_a_mote_out), TEST(a_parent_that_stands_below_this_mote_is_given_up_and_counted),
    TEST(a_link_is_as_good_as_before_when_its_mote_is_back_in_the_tree), TEST(levels_end_at_32),
    TEST(a_newer_session_of_the_root_starts_anew_and_an_older_one_is_told), TEST(the_table_keeps_the_parent_and_those_closer_to_the_root), TEST(a_child_without_a_place_counts_for_a_while),
    TEST(beacons_that_cannot_be_change_nothing), TEST(values_decide_among_parents_that_are_about_as_good),
    TEST(once_a_tree_has_stood_for_minutes_only_what_fits_far_better_is_taken), TEST(more_below_is_news),
    TEST(beacons_carry_trees), TEST(slots_are_told_on_and_those_that_cannot_be_are_refused),
};
UNIT_MAIN(tests)
