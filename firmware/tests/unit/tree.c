/* The choice of a parent, and when it is given up.
 * sources: lib/random.c net/mac/clocksync.c net/mac/frames.c net/mac/slot_table.c
 * net/routing/ageing.c net/routing/beacon_due.c net/routing/beacon_receive.c
 * net/routing/beacon_send.c net/routing/namesake.c net/routing/neighbours.c
 * net/routing/positions.c net/routing/parent_choice.c net/routing/parent_loss.c
 * net/routing/sequence_request.c net/routing/tree.c */
#include "tree_mote.h"

static void the_first_beacon_of_a_root_is_joined(void)
{
    tree_init();
    CHECK(!tree_joined());
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    CHECK(tree_joined());
    CHECK_EQUAL(tree_own_level(), 1);
    CHECK_EQUAL(tree_own_parent(), ROOT);
    CHECK_EQUAL(joined, 1);
    CHECK(time_known());
}

static void a_mote_that_lacks_the_time_takes_it_of_others_closer_to_the_root(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    now = CLOCK_TICKS_PER_SECOND * 20;
    stamp = (struct net_time){20, 1000};
    hear(3, 2, 4, 40, 255); /* the parent's stamp is not old yet */
    CHECK_EQUAL(time_at(now).ticks, 0);
    now = CLOCK_TICKS_PER_SECOND * 40;
    stamp.seconds = 40;
    hear(5, 3, 4, 40, 255); /* as deep as this one: it could have its time of this one */
    CHECK_EQUAL(time_at(now).ticks, 0);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(time_at(now).seconds, 40);
    CHECK_EQUAL(time_at(now).ticks, 1000);
    CHECK_EQUAL(tree_own_parent(), 2);
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
    hear(3, 4, 7, 0, 255);  /* as deep as this one: perhaps its own child's child */
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

static void whose_parent_hardly_hears_it_may_go_a_level_down(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(tree_own_level(), 2);
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    tree_child_heard(6, 255);
    hear(2, 1, ROOT, 16, 255);
    for (int i = 0; i < 30; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    cut_off = true;
    hear(3, 2, 6, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2); /* by no later number: it may be below this mote */
    cut_off = false;
    hear(3, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(tree_own_level(), 3);
    CHECK_EQUAL(left, 0);
}

static int root_beacon(void)
{
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    return 0;
}

static void a_silent_parent_is_given_up_for_another_and_without_one_the_mote_leaves(void)
{
    tree_init();
    windows(10, root_beacon);
    CHECK_EQUAL(tree_own_parent(), ROOT);
    windows(15, other_beacon); /* the root is silent */
    /* 2 stands no closer than this mote: by later news alone it may follow it */
    CHECK_EQUAL(tree_own_parent(), ROOT);
    windows(1, other_beacon);
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK_EQUAL(tree_own_level(), 2);
    CHECK_EQUAL(left, 0);
    windows(17, NULL);
    CHECK_EQUAL(left, 1);
    CHECK(tree_leave_notice_due());
    windows(4, other_beacon);
    CHECK_EQUAL(tree_own_parent(), 2);
}

static void a_parent_that_does_not_acknowledge_is_kept_while_it_is_heard_up_to_a_limit(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    hear(3, 0, WIRE_NO_NODE, 8, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 3; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 37; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(join_parent, 3);
    CHECK(joins_again > 1);
}

static void a_new_parent_that_does_not_answer_is_left_in_the_same_window(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    hear(3, 0, WIRE_NO_NODE, 8, 255);
    hear(4, 0, WIRE_NO_NODE, 16, 255);
    CHECK_EQUAL(join_parent, 2);
    for (int i = 1; i < 4; i++) {
        parent_join_sent(false);
        CHECK_EQUAL(tree_own_parent(), 2);
        CHECK_EQUAL(joins_repeated, i); /* once more */
    }
    parent_join_sent(false);
    CHECK_EQUAL(join_parent, 3);
    parent_join_sent(true);
    for (int i = 0; i < 4; i++)
        parent_join_sent(false); /* who has answered once may be busy for a while */
    CHECK_EQUAL(tree_own_parent(), 3);
    CHECK_EQUAL(joins_repeated, 3);
    parent_frame_sent(true);
    CHECK_EQUAL(tree_own_parent(), 3);
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    CHECK_EQUAL(tree_own_parent(), 3); /* not where it was in vain a moment ago */
}

static void whom_a_mote_hears_first_is_taken_to_be_heard_seldom(void)
{
    tree_init();
    hear(2, 2, 4, 40, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    /* closer, cheaper, and does not say that it hears this mote */
    struct wire_beacon first = {.root = ROOT,
                                .session = SESSION,
                                .sequence = sequence[ROOT]++,
                                .root_sequence = root_sequence,
                                .parent = WIRE_NO_NODE};
    struct radio_frame frame = {.lqi = 255};
    CHECK(beacon_receive(&frame, ROOT, &first, sizeof first));
    CHECK(neighbour_link_cost(neighbour_find(ROOT)) > 6 * COST_UNIT);
    CHECK_EQUAL(tree_own_parent(), 2);
    for (int i = 0; i < 4; i++)
        hear(ROOT, 0, WIRE_NO_NODE, 0, 255); /* now it does */
    CHECK_EQUAL(tree_own_parent(), ROOT);
}

static void a_parent_that_is_not_heard_well_is_left_within_two_epochs(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 100);
    hear(3, 0, WIRE_NO_NODE, 90, 255);
    parent_join_sent(true);
    CHECK_EQUAL(tree_own_parent(), 2);
    doubtful = true;
    for (int i = 0; i < 17; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    doubtful = false;
}

static void a_parent_that_is_heard_well_and_answers_nothing_at_all_is_given_up_soon(void)
{
    tree_init();
    hear(2, 0, WIRE_NO_NODE, 0, 255);
    hear(3, 0, WIRE_NO_NODE, 8, 255);
    for (int i = 0; i < 20; i++)
        parent_frame_sent(false); /* the slot may be crowded */
    CHECK_EQUAL(tree_own_parent(), 2);
    parent_frame_sent(true);
    parent_join_sent(false);
    for (int i = 0; i < 3; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 2);
    parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    hear(4, 0, WIRE_NO_NODE, 16, 255);
    for (int i = 0; i < 8; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), 3);
    parent_join_sent(false); /* before the next epoch's rows */
    CHECK_EQUAL(tree_own_parent(), 4);
}

static void a_parent_that_is_not_heard_is_asked_before_it_is_given_up(void)
{
    tree_init();
    windows(10, root_beacon);
    join_parent = WIRE_NO_NODE;
    windows(8, NULL);
    CHECK_EQUAL(join_parent, ROOT);
    /* its slots were missed, and so were its beacons */
    for (int i = 0; i < 8; i++)
        parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), ROOT);
    for (int answered = 0; answered < 5; answered++) {
        parent_join_sent(true);
        windows(12, NULL);
        CHECK_EQUAL(tree_own_parent(), ROOT);
    }
    parent_join_sent(false);
    parent_frame_sent(false);
    CHECK_EQUAL(tree_own_parent(), WIRE_NO_NODE);
}

static void a_newer_session_of_the_root_starts_anew_and_an_older_one_is_told(void)
{
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    beacons = 0;
    CHECK(!beacon_of(5, 1, ROOT, 16, 255, SESSION - 1));
    CHECK_EQUAL(beacons, 1);
    CHECK_EQUAL(tree_own_parent(), 2);
    restarted = 0;
    CHECK(beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 255, SESSION + 1));
    CHECK_EQUAL(restarted, 1);
    CHECK_EQUAL(left, 1);
}

static void a_beacon_of_a_mote_of_the_own_number_is_told_and_no_parents(void)
{
    own = (struct wire_settings){.nodeid = ME};
    tree_init();
    CHECK(!beacon_of(ME, 1, ROOT, 16, 255, SESSION));
    CHECK_EQUAL(namesakes, 1);
    CHECK(!tree_joined());
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(tree_own_parent(), 2);
    CHECK(!beacon_of(ME, 1, ROOT, 16, 255, SESSION)); /* it has just been told */
    CHECK_EQUAL(namesakes, 1);
    windows(NAMESAKE_WINDOWS, other_beacon);
    CHECK(!beacon_of(ME, 1, ROOT, 16, 255, SESSION));
    CHECK_EQUAL(namesakes, 2);
    CHECK_EQUAL(tree_own_parent(), 2);
}

static void who_has_the_roots_number_is_in_no_network(void)
{
    own = (struct wire_settings){.nodeid = ROOT};
    tree_init();
    CHECK(!beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 255, SESSION));
    CHECK_EQUAL(namesakes, 1);
    windows(NAMESAKE_WINDOWS, NULL);
    CHECK(!beacon_of(2, 1, ROOT, 16, 255, SESSION));
    CHECK_EQUAL(namesakes, 2);
    CHECK(!tree_joined());
}

/* Once: two roots of one number would outdo each other for ever. */
static void a_root_at_its_first_start_passes_the_session_that_its_network_lives_in(void)
{
    own = (struct wire_settings){.nodeid = ROOT, .root = 1, .boots = 1, .session = SESSION};
    tree_init();
    hear(2, 1, ROOT, 16, 255);
    CHECK_EQUAL(renewed, 0);
    beacon_of(5, 1, ROOT, 16, 255, SESSION + 700);
    CHECK_EQUAL(renewed, 1);
    CHECK_EQUAL(renewed_after, SESSION + 700);
    own.boots = 2;
    beacon_of(5, 1, ROOT, 16, 255, SESSION + 700);
    CHECK_EQUAL(renewed, 1);
}

static void the_table_keeps_the_parent_and_those_closer_to_the_root(void)
{
    tree_init();
    hear(2, 3, 4, 60, 255);
    for (uint16_t node = 100; node < 140; node++)
        hear(node, 4, 2, 90, 255);
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
    for (uint16_t node = 100; node < 100 + NEIGHBOURS - 1; node++)
        tree_child_heard(node, 255);
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

/* A mote chooses by values in one window of four, drawn at random: it does in some of so many. */
enum { WINDOWS_OF_A_CHOICE = 24 };

static int several_parents(void)
{
    hear(2, 2, 4, 40, 255);
    hear(3, 2, 4, 70, 255);
    hear(5, 2, 4, 120, 255); /* too far away */
    hear(6, 3, 4, 40, 255);  /* no closer to the root than this mote */
    return 0;
}

static void values_decide_among_parents_that_are_about_as_good(void)
{
    tree_init();
    several_parents();
    cut_off = true; /* all by one number */
    distances[2] = 9;
    distances[3] = 7;
    distances[5] = distances[6] = 0;
    by_values = true;
    windows(WINDOWS_OF_A_CHOICE, several_parents);
    CHECK_EQUAL(tree_own_parent(), 2); /* not by so little */
    distances[3] = 6;
    doubtful = true;
    windows(WINDOWS_OF_A_CHOICE, several_parents);
    CHECK_EQUAL(tree_own_parent(), 2);
    doubtful = false;
    windows(11, several_parents); /* it has chosen before it is settled */
    CHECK_EQUAL(tree_own_parent(), 3);
    hear(2, 2, 4, 40, 255); /* the better link does not take it back */
    CHECK_EQUAL(tree_own_parent(), 3);
    cut_off = false;
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
    both_parents();
    cut_off = true; /* both by one number */
    distances[2] = distances[3] = 40;
    by_values = true;
    windows(60, both_parents);
    distances[3] = 37;
    windows(WINDOWS_OF_A_CHOICE, both_parents);
    CHECK_EQUAL(tree_own_parent(), 2);
    distances[3] = 17;
    windows(WINDOWS_OF_A_CHOICE, both_parents);
    CHECK_EQUAL(tree_own_parent(), 2);
    distances[3] = 16;
    windows(WINDOWS_OF_A_CHOICE, both_parents);
    CHECK_EQUAL(tree_own_parent(), 3);
    distances[2] = 13; /* … not so of the next tree */
    windows(WINDOWS_OF_A_CHOICE, both_parents);
    CHECK_EQUAL(tree_own_parent(), 3);
    by_values = false;
    windows(1, both_parents);
    by_values = true;
    windows(WINDOWS_OF_A_CHOICE, both_parents);
    CHECK_EQUAL(tree_own_parent(), 2);
    cut_off = false;
}

static void more_below_is_news(void)
{
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    windows(10, root_beacon);
    CHECK(!beacon_due(4));
    wider = true;
    routing_age();
    wider = false;
    CHECK(beacon_due(4));
    routing_age();
    CHECK(!beacon_due(4));
}

static void beacons_carry_trees(void)
{
    uint8_t bytes[WIRE_PACKET_MAXIMUM] = {0}; /* the time is stamped as it goes */
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    uint8_t length = beacon_write(beacon);
    CHECK_EQUAL(beacon->srts_length, sizeof(struct wire_srt_entry));
    CHECK_EQUAL(length, sizeof *beacon + sizeof(struct wire_srt_entry) +
                            sizeof(struct wire_neighbour_entry));
    struct wire_neighbour_entry *entry =
        (struct wire_neighbour_entry *)((uint8_t *)beacon->neighbours +
                                        sizeof(struct wire_srt_entry));
    CHECK_EQUAL(entry->node, ROOT);
    beacon->parent = ROOT;
    beacon->level = 2;
    struct radio_frame frame = {.lqi = 255};
    CHECK(beacon_receive(&frame, 8, beacon, length));
    CHECK_EQUAL(told_length, sizeof(struct wire_srt_entry));
    CHECK_EQUAL(told[0], 0x55);
    uint16_t malformed = mac_counters.malformed;
    beacon->srts_length = (uint8_t)(length - sizeof *beacon + 1);
    CHECK(!beacon_receive(&frame, 8, beacon, length));
    beacon->srts_length = 1; /* the stub takes it for none that can be */
    CHECK(beacon_receive(&frame, 8, beacon, length));
    CHECK_EQUAL(mac_counters.malformed, malformed + 2);
}

static void slots_are_told_on_and_those_that_cannot_be_are_refused(void)
{
    tree_init();
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255);
    windows(10, root_beacon);
    CHECK(!beacon_due(4));
    uint8_t bytes[WIRE_PACKET_MAXIMUM], told_bytes[WIRE_PACKET_MAXIMUM] = {0};
    struct wire_beacon *heard = (struct wire_beacon *)told_bytes;
    struct wire_slots_entry *entry = (struct wire_slots_entry *)heard->neighbours;
    *heard = (struct wire_beacon){.root = ROOT,
                                  .session = SESSION,
                                  .level = 0,
                                  .parent = WIRE_NO_NODE,
                                  .srts_length = sizeof *entry};
    *entry = (struct wire_slots_entry){.version = 1, .table = 0x0200002F};
    uint8_t length = sizeof *heard + sizeof *entry;
    struct radio_frame frame = {.lqi = 255};
    uint16_t malformed = mac_counters.malformed;
    CHECK(!beacon_receive(&frame, 8, heard, length));
    CHECK_EQUAL(mac_counters.malformed, malformed + 1);
    CHECK(neighbour_find(8) == NULL);
    CHECK_EQUAL(slot_table_cells(1), 36);
    entry->table = 0x0200001F;
    heard->root++;
    CHECK(!beacon_receive(&frame, 8, heard, length)); /* another network's */
    CHECK_EQUAL(slot_table_cells(1), 36);
    heard->root--;
    CHECK(beacon_receive(&frame, 8, heard, length));
    CHECK_EQUAL(slot_table_cells(1), 88);
    CHECK_EQUAL(told_length, 0); /* no entries of trees */
    CHECK(!beacon_due(4));       /* with the next beacon that it sends anyway */
    length = beacon_write((struct wire_beacon *)bytes);
    CHECK_EQUAL(((struct wire_beacon *)bytes)->srts_length,
                sizeof *entry + sizeof(struct wire_srt_entry));
    CHECK_EQUAL(memcmp(((struct wire_beacon *)bytes)->neighbours, entry, sizeof *entry), 0);
    for (uint16_t node = 100; node < 140; node++)
        hear(node, 2, 4, 90, 255);
    CHECK(beacon_write((struct wire_beacon *)bytes) <=
          sizeof *heard + sizeof(struct wire_srt_entry) + 12 * sizeof(struct wire_neighbour_entry));
    hear(ROOT, 0, WIRE_NO_NODE, 0, 255); /* one that has told nothing */
    CHECK_EQUAL(slot_table_cells(1), 88);
    beacon_of(ROOT, 0, WIRE_NO_NODE, 0, 255, SESSION + 1);
    CHECK_EQUAL(slot_table_cells(1), 36);
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
    CHECK(!beacon_receive(&frame, 8, beacon, sizeof bytes));
    beacon->ticks = 0;
    beacon->skew = CLOCKSYNC_SKEW_MAXIMUM + 1;
    CHECK(!beacon_receive(&frame, 8, beacon, sizeof bytes));
    beacon->skew = -CLOCKSYNC_SKEW_MAXIMUM - 1;
    CHECK(!beacon_receive(&frame, 8, beacon, sizeof bytes));
    beacon->skew = 0;
    CHECK_EQUAL(mac_counters.malformed, malformed + 3);
    CHECK(!beacon_receive(&frame, ME, beacon, sizeof bytes));
    beacon->root = 77;
    CHECK(!beacon_receive(&frame, 8, beacon, sizeof bytes));
    CHECK(neighbour_find(8) == NULL);
    CHECK_EQUAL(tree_own_parent(), 2);
}

static const struct test tests[] = {
    TEST(the_first_beacon_of_a_root_is_joined),
    TEST(a_mote_that_lacks_the_time_takes_it_of_others_closer_to_the_root),
    TEST(a_better_parent_must_be_better_by_one_and_a_half_transmissions),
    TEST(a_frame_that_the_parent_may_have_is_settled_before_a_better_one_is_taken),
    TEST(nobody_at_the_same_depth_or_below_becomes_the_parent),
    TEST(a_weak_neighbour_is_not_taken),
    TEST(whose_parent_hardly_hears_it_may_go_a_level_down),
    TEST(a_silent_parent_is_given_up_for_another_and_without_one_the_mote_leaves),
    TEST(a_parent_that_does_not_acknowledge_is_kept_while_it_is_heard_up_to_a_limit),
    TEST(a_parent_that_is_not_heard_is_asked_before_it_is_given_up),
    TEST(a_new_parent_that_does_not_answer_is_left_in_the_same_window),
    TEST(whom_a_mote_hears_first_is_taken_to_be_heard_seldom),
    TEST(a_parent_that_is_not_heard_well_is_left_within_two_epochs),
    TEST(a_parent_that_is_heard_well_and_answers_nothing_at_all_is_given_up_soon),
    TEST(a_newer_session_of_the_root_starts_anew_and_an_older_one_is_told),
    TEST(a_beacon_of_a_mote_of_the_own_number_is_told_and_no_parents),
    TEST(who_has_the_roots_number_is_in_no_network),
    TEST(a_root_at_its_first_start_passes_the_session_that_its_network_lives_in),
    TEST(the_table_keeps_the_parent_and_those_closer_to_the_root),
    TEST(a_child_without_a_place_counts_for_a_while),
    TEST(beacons_that_cannot_be_change_nothing),
    TEST(values_decide_among_parents_that_are_about_as_good),
    TEST(once_a_tree_has_stood_for_minutes_only_what_fits_far_better_is_taken),
    TEST(more_below_is_news),
    TEST(beacons_carry_trees),
    TEST(slots_are_told_on_and_those_that_cannot_be_are_refused),
};
UNIT_MAIN(tests)
