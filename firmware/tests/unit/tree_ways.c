/* Ways to the root: who has left the tree, news of the root, no loops. sources: net/tree.c net/neighbours.c net/slots.c */
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
        CHECK_EQUAL(says, seldom ? 17 : 3);
    }
    slow = false;
}

static void news_of_the_root_is_asked_for_and_passed_on(void)
{
    tree_init();
    cut_off = false;
    hear(2, 1, ROOT, 16, 255);
    beacons = 0;
    sought_from = WIRE_NO_NODE;
    tree_sought((uint8_t)(root_sequence - 1)); /* this mote has some */
    CHECK_EQUAL(beacons, 1);
    CHECK(!tree_seeks());
    uint8_t wanted_after = root_sequence;
    tree_sought(wanted_after);
    CHECK_EQUAL(beacons, 1);
    CHECK(tree_seeks());
    CHECK_EQUAL(sought_from, 2);
    CHECK_EQUAL(sought_after, wanted_after);
    sought_from = WIRE_NO_NODE;
    tree_sought(wanted_after); /* that has been asked for */
    CHECK_EQUAL(sought_from, WIRE_NO_NODE);
    tree_sought((uint8_t)(wanted_after + 1));
    CHECK_EQUAL(sought_from, 2);
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 1);
    CHECK(tree_seeks());
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 2);
    CHECK(!tree_seeks());
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(beacons, 2);
    tree_sought(root_sequence);
    windows(1, NULL); /* who waits longer asks again */
    CHECK(!tree_seeks());
}

static void who_has_left_asks_whoever_may_have_a_way(void)
{
    for (int seldom = 0; seldom < 2; seldom++) {
        slow = seldom;
        tree_init();
        cut_off = false;
        uint16_t session = (uint16_t)(SESSION + 10 + seldom);
        beacon_of(2, 1, ROOT, 16, 255, session);
        cut_off = true;
        sought_from = WIRE_NO_NODE;
        tree_greeted(false);
        for (int i = 0; i < 8; i++) tree_sent(false);
        CHECK(!tree_joined());
        beacon_of(4, 3, ME, 48, 255, session);
        if (seldom) {
            CHECK(!tree_seek()); /* neither who has not answered nor who has its way from this mote */
            CHECK_EQUAL(sought_from, WIRE_NO_NODE);
        }
        beacon_of(3, 3, 5, 60, 255, session);
        beacon_of(6, 3, 5, 90, 255, session);
        CHECK(!tree_joined());
        CHECK_EQUAL(tree_seek(), seldom); /* in a fast network, news comes unasked */
        if (seldom) {
            CHECK_EQUAL(sought_from, 3);
            CHECK_EQUAL(sought_after, root_sequence);
        }
        tree_sought(root_sequence); /* nor is there anything to be had here */
        CHECK(!tree_seeks());
    }
    cut_off = slow = false;
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
        sought_from = WIRE_NO_NODE;
        beacon_of(2, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK_EQUAL(tree_own_parent(), 3);
        CHECK_EQUAL(sought_from, seldom ? 3 : WIRE_NO_NODE);
        sought_from = WIRE_NO_NODE;
        beacon_of(3, WIRE_NO_LEVEL, WIRE_NO_NODE, UINT16_MAX, 255, session);
        CHECK(!tree_joined());
        CHECK_EQUAL(sought_from, WIRE_NO_NODE);
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

static const struct test tests[] = {
    TEST(who_leaves_says_so_in_a_window_in_which_others_are_awake), TEST(news_of_the_root_is_asked_for_and_passed_on),
    TEST(who_has_left_asks_whoever_may_have_a_way), TEST(who_had_its_way_by_a_mote_that_has_left_asks_for_it),
    TEST(a_parent_that_takes_this_mote_for_its_own_is_dropped), TEST(what_was_joined_by_way_of_this_mote_is_no_way_for_it),
    TEST(news_that_one_neighbour_has_let_a_mote_without_children_join_any), TEST(numbers_of_the_root_that_have_come_round_do_not_keep_a_mote_out),
    TEST(a_parent_that_stands_below_this_mote_is_given_up_and_counted), TEST(a_link_is_as_good_as_before_when_its_mote_is_back_in_the_tree),
    TEST(levels_end_at_32),
};
UNIT_MAIN(tests)
