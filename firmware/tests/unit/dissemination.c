/* Who has heard of queries that it lacks, and for how long it looks out for them. sources:
 * net/transport/dissemination.c net/transport/command_flood.c net/transport/join_packet.c
 * net/mac/frames.c */
#include "unit.h"

#include "net/app.h"
#include "net/mac/mac.h"
#include "net/routing/parent_loss.h"
#include "net/routing/tree.h"
#include "net/transport/command_flood.h"
#include "net/transport/dissemination.h"
#include "net/transport/transport_ops.h"

enum { PARENT = 4, NEIGHBOUR = 6 };

struct mac_counters mac_counters;
static uint16_t asked; /* to whom the last frame went, what it says and how long that is */
static const uint8_t *said;
static uint8_t said_length;
static bool children;
static uint8_t known;                         /* a query that is held; 0: none */
static uint8_t lists;                         /* queries that are held, query 1 or none */
static enum app_outcome outcome = APP_PASSED; /* of an install */

bool tree_is_root(void) { return false; }
uint8_t tree_own_level(void) { return 2; }
uint16_t tree_session(void) { return 1; }
uint16_t tree_own_parent(void) { return PARENT; }
bool tree_has_children(void) { return children; }
void parent_join_sent(bool acknowledged) { (void)acknowledged; }
bool mac_busy(void) { return false; }
void *mac_begin(struct mac_frame *frame, uint16_t destination, uint8_t type)
{
    (void)type;
    asked = destination;
    said = frame->bytes + sizeof(struct wire_mac_header);
    return frame->bytes + sizeof(struct wire_mac_header);
}
void mac_finish(struct mac_frame *frame, uint8_t body)
{
    (void)frame;
    said_length = body;
}
bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done)
{
    (void)frame;
    (void)tries;
    (void)done;
    return true;
}
void dissemination_sent(void) {}
void dissemination_drops(uint8_t query) { (void)query; }
void net_execute(const struct wire_command *command, uint8_t length)
{
    (void)command;
    (void)length;
}
void app_window(void) {}
bool app_wants(void) { return false; }
bool app_spreads(uint8_t query)
{
    (void)query;
    return true;
}
bool app_concerns(uint8_t query, uint16_t node)
{
    (void)query;
    (void)node;
    return true;
}
bool app_refused_lately(uint8_t query)
{
    (void)query;
    return false;
}
void app_learn(uint16_t theirs, const struct wire_routed_query *entry)
{
    (void)theirs;
    (void)entry;
}
void app_stop(uint8_t query)
{
    if (query == 0 || query == known)
        known = 0;
}
uint8_t app_known(uint8_t *ids)
{
    ids[0] = known;
    return known != 0;
}
uint8_t app_held(uint8_t *ids)
{
    ids[0] = 1;
    return lists;
}
uint8_t app_routes(uint8_t *entries)
{
    (void)entries;
    return 0;
}
uint8_t app_fragment(uint8_t query, uint8_t offset, struct wire_query_install *install)
{
    (void)query;
    install->offset = offset;
    return offset == 0;
}
enum app_outcome app_install(const struct wire_query_install *install, uint8_t length)
{
    (void)install;
    (void)length;
    return outcome;
}
uint8_t app_srt_write(uint8_t *entries)
{
    (void)entries;
    return 0;
}

static void held(uint16_t version)
{
    dissemination_forget();
    struct wire_query_request none = {.query_version = version};
    dissemination_summary(PARENT, &none, sizeof none);
    CHECK_EQUAL(dissemination_version(), version);
}

static void who_hears_of_newer_queries_is_behind_until_it_has_them(void)
{
    CHECK(!dissemination_behind());
    held(7);
    CHECK(!dissemination_behind());
    dissemination_heard(NEIGHBOUR, 7);
    dissemination_heard(NEIGHBOUR, 6);
    CHECK(!dissemination_behind());
    dissemination_heard(NEIGHBOUR, 8);
    CHECK(dissemination_behind());
    CHECK(dissemination_waiting() && dissemination_send());
    CHECK_EQUAL(asked, NEIGHBOUR);
    struct wire_query_request none = {.query_version = 8};
    dissemination_summary(NEIGHBOUR, &none, sizeof none);
    CHECK_EQUAL(dissemination_version(), 8);
    CHECK(!dissemination_behind());
}

static void a_version_that_nobody_holds_is_forgotten(void)
{
    held(7);
    dissemination_heard(NEIGHBOUR, 20000); /* forged */
    for (int window = 0; window < 31; window++) {
        CHECK(dissemination_behind());
        dissemination_window(true);
        dissemination_heard(PARENT, 7);
    }
    dissemination_window(true);
    CHECK(!dissemination_behind());
    dissemination_heard(PARENT, 8);
    CHECK(dissemination_behind());
}

static void a_version_that_is_heard_of_again_is_looked_out_for(void)
{
    held(7);
    for (int window = 0; window < 100; window++) {
        if (window % 16 == 0)
            dissemination_heard(NEIGHBOUR, 8);
        CHECK(dissemination_behind());
        dissemination_window(true);
    }
}

/* Broadcasts of a mote in one window. */
static int flooded(void)
{
    int count = 0;
    dissemination_window(true);
    for (; dissemination_waiting(); count++) {
        asked = WIRE_NO_NODE - 1;
        if (!dissemination_send())
            break;
        CHECK_EQUAL(asked, WIRE_BROADCAST);
    }
    return count;
}

static void a_query_that_was_asked_for_is_flooded_for_children_alone(void)
{
    struct wire_query_install install = {.query = 1, .query_version = 8};
    outcome = APP_COMPLETE;
    for (int asked_for = 0; asked_for < 2; asked_for++)
        for (int parent = 0; parent < 2; parent++) {
            held(7);
            children = parent;
            dissemination_install(&install, sizeof install + 1, asked_for);
            int first = flooded(), second = flooded();
            bool floods = parent || !asked_for;
            CHECK_EQUAL(first, floods ? 2 : 0);
            CHECK_EQUAL(second, floods ? 1 : 0);
            CHECK_EQUAL(flooded(), 0);
        }
    outcome = APP_PASSED;
}

static void who_lacks_what_was_just_flooded_has_it_flooded_again(void)
{
    struct wire_query_install install = {.query = 1, .query_version = 8};
    struct wire_query_request older = {.query_version = 7};
    outcome = APP_COMPLETE;
    lists = 1;
    for (int windows = 1; windows <= 2; windows++) {
        held(7);
        dissemination_install(&install, sizeof install + 1, false);
        for (int window = 0; window < windows; window++)
            (void)flooded();
        /* one in which they alone are awake that know that they lack it */
        dissemination_window(false);
        CHECK(!dissemination_waiting());
        dissemination_summary(NEIGHBOUR, &older, sizeof older);
        int broadcasts = 0, others = 0;
        for (; dissemination_waiting(); asked == WIRE_BROADCAST ? broadcasts++ : others++)
            if (!dissemination_send())
                break;
        CHECK_EQUAL(broadcasts, windows == 1 ? 2 : 0);
        CHECK_EQUAL(others, 2); /* the program and what else is held, to the neighbour */
    }
    lists = 0;
    outcome = APP_PASSED;
}

static void a_command_is_flooded_twice_in_two_windows(void)
{
    struct wire_command command = {.target = WIRE_BROADCAST, .token = 77, .op = WIRE_COMMAND_PING};
    held(7);
    command_flood_take(&command, sizeof command);
    CHECK_EQUAL(flooded(), 2);
    command_flood_take(&command, sizeof command); /* the echo */
    CHECK_EQUAL(flooded(), 2);
    CHECK_EQUAL(flooded(), 0);
}

static void a_command_that_nobody_repeats_is_flooded_longer(void)
{
    struct wire_command command = {.target = WIRE_BROADCAST, .token = 77, .op = WIRE_COMMAND_PING};
    for (int silent = 1; silent <= 20; silent++) {
        held(7);
        command_flood_take(&command, sizeof command);
        int count = 0;
        for (int window = 0; window < silent; window++)
            count += flooded();
        command_flood_take(&command, sizeof command); /* at last */
        for (int window = 0; window < 20; window++)
            count += flooded();
        /* two more in the window after it was heard */
        CHECK_EQUAL(count, silent < 7 ? 2 * silent + 2 : 16);
    }
}

static void stop(uint8_t query, uint16_t version)
{
    struct wire_stopped stop = {.query_version = version, .query = query};
    dissemination_stop(&stop, 1);
}

static void a_flood_of_stops_tells_of_those_before(void)
{
    held(7);
    stop(3, 8);
    stop(4, 9);
    CHECK_EQUAL(dissemination_version(), 9);
    dissemination_window(true);
    CHECK(dissemination_waiting() && dissemination_send());
    const struct wire_stopped *both = (const struct wire_stopped *)said;
    CHECK_EQUAL(said_length, 2 * sizeof *both);
    CHECK_EQUAL(both[0].query, 4);
    CHECK_EQUAL(both[1].query, 3);
    struct wire_stopped copy[2] = {both[0], both[1]};
    held(7); /* a mote that has heard neither */
    dissemination_stop(copy, 2);
    CHECK_EQUAL(dissemination_version(), 9);
    CHECK_EQUAL(flooded(), 2);
    CHECK_EQUAL(flooded(), 1);
    dissemination_stop(copy, 2); /* the echo */
    CHECK_EQUAL(flooded(), 0);
}

static void changes_that_come_out_of_order_are_followed_when_none_is_missing(void)
{
    struct wire_query_install install = {.query = 1, .query_version = 9};
    outcome = APP_COMPLETE;
    held(7);
    stop(4, 10);
    dissemination_install(&install, sizeof install + 1, false);
    CHECK_EQUAL(dissemination_version(), 7);
    stop(3, 8);
    CHECK_EQUAL(dissemination_version(), 10);
    outcome = APP_PASSED;
}

/* Heard out of order: the neighbour's set of version 8 is older than query 5 of version 9, which it
 * has not heard of. */
static void a_set_says_nothing_of_what_was_installed_behind_it(void)
{
    struct wire_query_install install = {.query = 5, .query_version = 9};
    struct wire_query_request older = {.query_version = 8}, newer = {.query_version = 10};
    held(7);
    outcome = APP_COMPLETE;
    known = 5;
    dissemination_install(&install, sizeof install + 1, false);
    CHECK_EQUAL(dissemination_version(), 7);
    dissemination_summary(NEIGHBOUR, &older, sizeof older);
    CHECK_EQUAL(known, 5);
    CHECK_EQUAL(dissemination_version(), 9);
    /* One of version 10 that does not name it does say so, and then its install was not heard of.
     */
    held(7);
    known = 5;
    dissemination_install(&install, sizeof install + 1, false);
    dissemination_summary(NEIGHBOUR, &newer, sizeof newer);
    CHECK_EQUAL(known, 0);
    held(7);
    known = 5;
    dissemination_install(&install, sizeof install + 1, false);
    outcome = APP_PASSED;
}

/* A neighbour at version 8 still sends what was stopped at 9: a mote that held it again would run
 * it for ever, as no summary of the same version says what to drop. */
static void what_was_stopped_is_not_taken_from_who_has_not_heard(void)
{
    struct wire_query_install repair = {
        .query = 5, .query_version = 8, .offset = WIRE_FRAGMENT_REPAIRS};
    uint8_t bytes[sizeof(struct wire_query_request) + 1];
    struct wire_query_request *summary = (struct wire_query_request *)bytes;
    summary->query_version = 8;
    summary->queries[0] = 5;
    held(7);
    stop(5, 9);
    CHECK_EQUAL(dissemination_version(), 7);
    outcome = APP_COMPLETE;
    children = true;
    dissemination_install(&repair, sizeof repair + 1, true);
    CHECK_EQUAL(flooded(), 2); /* the stop alone */
    dissemination_summary(NEIGHBOUR, summary, sizeof bytes);
    CHECK_EQUAL(dissemination_version(), 9);
    children = false;
    outcome = APP_PASSED;
}

/* A query's number is given again: the stop that comes late was of the one before. */
static void a_late_stop_leaves_what_was_installed_behind_it(void)
{
    struct wire_query_install install = {.query = 5, .query_version = 9};
    held(7);
    outcome = APP_COMPLETE;
    known = 5;
    dissemination_install(&install, sizeof install + 1, false);
    stop(5, 8);
    CHECK_EQUAL(known, 5);
    CHECK_EQUAL(dissemination_version(), 9);
    known = 0;
    outcome = APP_PASSED;
}

/* What a neighbour at version 9 sends of queries 7 to 9 that are lacking: until its summary has
 * come, each of them may be the one that is still missing. */
static void a_query_that_repairs_makes_no_version(void)
{
    struct wire_query_install install = {
        .query = 1, .query_version = 9, .offset = WIRE_FRAGMENT_REPAIRS};
    outcome = APP_COMPLETE;
    children = 1;
    held(7);
    dissemination_install(&install, sizeof install + 1, true);
    stop(3, 8);
    CHECK_EQUAL(dissemination_version(), 8);
    held(8);
    dissemination_install(&install, sizeof install + 1, true);
    CHECK_EQUAL(dissemination_version(), 8);
    dissemination_window(true);
    CHECK(dissemination_waiting() && dissemination_send());
    CHECK(((const struct wire_query_install *)said)->offset & WIRE_FRAGMENT_REPAIRS);
    children = 0;
    outcome = APP_PASSED;
}

static void only_the_last_stops_are_told(void)
{
    held(7);
    for (uint8_t i = 1; i <= WIRE_STOPS_MAXIMUM + 3; i++)
        stop(i, 7 + i);
    dissemination_window(true);
    CHECK(dissemination_waiting() && dissemination_send());
    const struct wire_stopped *all = (const struct wire_stopped *)said;
    CHECK_EQUAL(said_length, WIRE_STOPS_MAXIMUM * sizeof *all);
    CHECK_EQUAL(all[0].query, WIRE_STOPS_MAXIMUM + 3);
    CHECK_EQUAL(all[WIRE_STOPS_MAXIMUM - 1].query, 4);
}

static const struct test tests[] = {
    TEST(a_flood_of_stops_tells_of_those_before),
    TEST(changes_that_come_out_of_order_are_followed_when_none_is_missing),
    TEST(a_query_that_repairs_makes_no_version),
    TEST(a_set_says_nothing_of_what_was_installed_behind_it),
    TEST(what_was_stopped_is_not_taken_from_who_has_not_heard),
    TEST(a_late_stop_leaves_what_was_installed_behind_it),
    TEST(only_the_last_stops_are_told),
    TEST(who_lacks_what_was_just_flooded_has_it_flooded_again),
    TEST(a_query_that_was_asked_for_is_flooded_for_children_alone),
    TEST(a_command_is_flooded_twice_in_two_windows),
    TEST(a_command_that_nobody_repeats_is_flooded_longer),
    TEST(who_hears_of_newer_queries_is_behind_until_it_has_them),
    TEST(a_version_that_nobody_holds_is_forgotten),
    TEST(a_version_that_is_heard_of_again_is_looked_out_for),
};
UNIT_MAIN(tests)
