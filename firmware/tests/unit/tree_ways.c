/* Ways to the root: motes that leave the tree, sequence numbers of the root, no loops.
 * sources: lib/random.c net/mac/clocksync.c net/mac/frames.c net/mac/slot_table.c
 * net/routing/ageing.c net/routing/beacon_due.c net/routing/beacon_receive.c
 * net/routing/beacon_send.c net/routing/namesake.c net/routing/neighbours.c
 * net/routing/positions.c net/routing/parent_choice.c net/routing/parent_loss.c
 * net/routing/sequence_request.c net/routing/tree.c */
#include "tree_mote.h"

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
    parent_join_sent(true);
    cut_off = true;
    hear(3, 3, 5, 60, 255); /* a child's child, that this mote does not know as such */
    hear(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    for (int i = 0; i < 20; i++) {
        hear(3, 3, 5, 60, 255);
        routing_age();
    }
    CHECK(!tree_joined());
    cut_off = false; /* it has another way */
    hear(3, 3, 5, 60, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(tree_own_level(), 4);
}

static void a_parent_has_no_older_number(void)
{
    tree_init();
    cut_off = false;
    hear(2, 2, 4, 60, 255);
    parent_join_sent(true);
    uint8_t before = root_sequence;
    hear(3, 1, ROOT, 90, 255); /* dearer, but closer */
    hear(2, 2, 4, 60, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    slow = true; /* the next window is far */
    cut_off = true;
    hear(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    /* 3 may have its way by this mote: the level was told with a number before this one's */
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK(tree_joined());
    CHECK_EQUAL(requested_of, 3);
    CHECK_EQUAL(requested_after, root_sequence);
    CHECK(root_sequence != before);
    hear(3, 1, ROOT, 90, 255); /* by the same number, and closer */
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(tree_own_level(), 2);
    CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    cut_off = slow = false;
}

static void a_parent_that_has_not_answered_gives_no_number_to_a_mote_without_children(void)
{
    for (int children = 0; children < 2; children++) {
        tree_init();
        uint16_t session = (uint16_t)(SESSION + 40 + children);
        beacon_of(3, 1, ROOT, 90, 255, session);
        if (children)
            tree_child_heard(8, 255);
        beacon_of(2, 1, ROOT, 16, 255, session); /* later, and hears nothing */
        CHECK_EQUAL(tree_own_parent(), 2);
        cut_off = true;
        for (int i = 0; i < 6; i++)
            parent_join_sent(false);
        /* whose number is earlier than that of 2 */
        CHECK_EQUAL(tree_own_parent(), children ? 2 : 3);
        cut_off = false;
    }
}

/* Of motes of each level, by each number around the mote's own: those alone become its parent that
 * have a later one, or stand closer by the same. */
static void no_way_leads_in_a_circle(void)
{
    enum { LEVEL = 4 };
    for (int ahead = -3; ahead <= 3; ahead++)
        for (uint8_t level = 1; level < 8; level++) {
            tree_init();
            cut_off = false;
            uint16_t session = (uint16_t)(SESSION + 100 + 10 * (ahead + 3) + level);
            beacon_of(2, LEVEL - 1, ROOT, 900, 255, session);
            CHECK_EQUAL(tree_own_level(), LEVEL);
            parent_join_sent(true);
            cut_off = true;
            root_sequence = (uint8_t)(root_sequence + ahead);
            beacon_of(3, level, 5, 16, 255, session);
            root_sequence = (uint8_t)(root_sequence - ahead);
            beacon_of(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
            windows(1, NULL);
            CHECK_EQUAL(tree_own_parent() == 3, ahead > 0 || (ahead == 0 && level < LEVEL));
            windows(3, NULL);
            CHECK_EQUAL(tree_joined(), ahead > 0 || (ahead == 0 && level < LEVEL));
        }
    cut_off = false;
}

static void who_leaves_says_so_for_as_long_as_others_may_be_asleep(void)
{
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    hear(ROOT, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255);
    int says = 0;
    for (int window = 0; window < 20; window++, routing_age())
        says += tree_leave_notice_due();
    CHECK_EQUAL(says, 17);
}

static void news_of_the_root_is_asked_for_and_passed_on(void)
{
    tree_init();
    cut_off = false;
    hear(2, 1, ROOT, 16, 255);
    parent_join_sent(true);
    windows(1, NULL);
    beacons = 0;
    requested_of = WIRE_NO_NODE;
    CHECK(!sequence_request_pending());
    tree_sequence_requested((uint8_t)(root_sequence - 1)); /* this mote has some */
    CHECK_EQUAL(beacons, 1);
    CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    CHECK(sequence_request_pending()); /* awake: its beacon may be lost */
    uint8_t wanted_after = root_sequence;
    tree_sequence_requested(wanted_after);
    CHECK_EQUAL(beacons, 1);
    CHECK_EQUAL(requested_of, 2);
    CHECK_EQUAL(requested_after, wanted_after);
    requested_of = WIRE_NO_NODE;
    tree_sequence_requested(wanted_after); /* that has been asked for */
    CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    for (int i = 0; i < 3; i++)
        CHECK(sequence_request_pending());
    CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    CHECK(sequence_request_pending());
    CHECK_EQUAL(requested_of, 2); /* again */
    requested_of = WIRE_NO_NODE;
    windows(1, NULL);
    CHECK_EQUAL(requested_of, 2); /* … in the next window */
    tree_sequence_requested((uint8_t)(wanted_after + 1));
    CHECK_EQUAL(requested_after, (uint8_t)(wanted_after + 1));
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 1);
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 2);
    CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 2);
    tree_sequence_requested(root_sequence);
    for (int window = 0; window < 3; window++) {
        CHECK(sequence_request_pending());
        windows(1, NULL);
    }
    CHECK(!sequence_request_pending()); /* who waits longer asks again */
}

static void who_loses_its_parent_asks_before_it_leaves(void)
{
    for (int seldom = 0; seldom < 2; seldom++) {
        slow = seldom;
        tree_init();
        cut_off = false;
        uint16_t session = (uint16_t)(SESSION + 10 + seldom);
        beacon_of(2, 1, ROOT, 16, 255, session);
        parent_join_sent(true);
        cut_off = true;
        beacon_of(3, 3, 5, 60, 255, session);
        beacon_of(6, 3, 5, 90, 255, session);
        beacon_of(4, 3, ME, 48, 255, session); /* that has its way from this mote */
        requested_of = WIRE_NO_NODE;
        parent_join_sent(false);
        for (int i = 0; i < 3; i++)
            parent_frame_sent(false);
        CHECK(!sequence_request_pending());
        parent_frame_sent(false);
        CHECK(tree_joined());
        CHECK(sequence_request_pending());
        CHECK_EQUAL(requested_of, 3);
        CHECK_EQUAL(requested_after, root_sequence);
        windows(1, NULL);
        CHECK(tree_joined());
        windows(1, NULL);
        CHECK(!tree_joined());
        CHECK(tree_leave_notice_due());
        CHECK(parent_choice_request_number()); /* outside, in whatever network */
        CHECK_EQUAL(requested_of, 3);
        tree_sequence_requested(root_sequence); /* here is nothing to be had */
        CHECK(!sequence_request_pending());
        cut_off = false;
        beacon_of(6, 3, 5, 90, 255, session);
        CHECK_EQUAL(tree_own_parent(), 6);
    }
    slow = false;
}

static void a_parent_that_answers_after_all_stays_one(void)
{
    tree_init();
    cut_off = false;
    hear(2, 1, ROOT, 16, 255);
    cut_off = true;
    hear(3, 3, 5, 60, 255);
    parent_join_sent(false);
    for (int i = 0; i < 8; i++)
        parent_frame_sent(false);
    parent_frame_sent(true);
    windows(3, NULL);
    CHECK_EQUAL(tree_own_parent(), 2);
    cut_off = false;
}

static void who_was_tried_in_vain_waits_until_others_have_been_asked(void)
{
    tree_init();
    cut_off = false;
    hear(3, 3, 5, 60, 255);
    hear(2, 1, ROOT, 16, 255);
    parent_join_sent(true);
    parent_join_sent(false);
    for (int i = 0; i < 8; i++)
        parent_frame_sent(false);
    hear(2, 1, ROOT, 16, 255); /* which does not hear this mote */
    windows(2, NULL);
    CHECK(!tree_joined());
    hear(2, 1, ROOT, 16, 255);
    CHECK(!tree_joined());
    hear(3, 3, 5, 60, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
}

static void who_had_its_way_by_a_mote_that_has_left_asks_for_it(void)
{
    for (int seldom = 0; seldom < 2; seldom++) {
        slow = seldom;
        tree_init();
        cut_off = false;
        uint16_t session = (uint16_t)(SESSION + 20 + seldom);
        beacon_of(2, 1, ROOT, 16, 255, session);
        beacon_of(3, 1, ROOT, 90, 255, session);
        cut_off = true;
        beacon_of(2, 1, ROOT, 16, 255, session);
        beacon_of(3, 1, ROOT, 90, 255, session);
        requested_of = WIRE_NO_NODE;
        beacon_of(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK_EQUAL(tree_own_parent(), 3);
        CHECK_EQUAL(requested_of, seldom ? 3 : WIRE_NO_NODE);
        requested_of = WIRE_NO_NODE;
        beacon_of(3, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK(!tree_joined()); /* and nobody to be asked */
        CHECK_EQUAL(requested_of, WIRE_NO_NODE);
    }
    cut_off = slow = false;
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
    parent_join_sent(true);
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

static const struct test tests[] = {
    TEST(a_parent_has_no_older_number),
    TEST(a_parent_that_has_not_answered_gives_no_number_to_a_mote_without_children),
    TEST(no_way_leads_in_a_circle),
    TEST(who_leaves_says_so_for_as_long_as_others_may_be_asleep),
    TEST(news_of_the_root_is_asked_for_and_passed_on),
    TEST(who_loses_its_parent_asks_before_it_leaves),
    TEST(a_parent_that_answers_after_all_stays_one),
    TEST(who_was_tried_in_vain_waits_until_others_have_been_asked),
    TEST(who_had_its_way_by_a_mote_that_has_left_asks_for_it),
    TEST(a_parent_that_takes_this_mote_for_its_own_is_dropped),
    TEST(what_was_joined_by_way_of_this_mote_is_no_way_for_it),
    TEST(numbers_of_the_root_that_have_come_round_do_not_keep_a_mote_out),
    TEST(a_parent_that_stands_below_this_mote_is_given_up_and_counted),
    TEST(a_link_is_as_good_as_before_when_its_mote_is_back_in_the_tree),
    TEST(levels_end_at_32),
};
UNIT_MAIN(tests)
