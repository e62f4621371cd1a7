/* Lengths of the slots: what the root makes of what it hears, and what a mote believes of a beacon.
 * sources: net/mac/slot_table.c */
#include <stdbool.h>

#include "unit.h"

#include "net/mac/slot_table.h"

enum { REPORTS = 32, WINDOWS = 4, LEVELS_ALL = 32 };

static uint32_t second;

/* A period of reports of so many motes at levels 1, 2, …, and rounds in each of which so many bytes
 * come. */
static void period(const uint8_t *motes, uint8_t depth, uint16_t bytes)
{
    for (uint8_t level = 1; level <= depth; level++)
        for (uint8_t i = 0; i < motes[level - 1]; i++)
            slot_table_mote(level);
    for (uint16_t i = 0; i < REPORTS; i++) {
        for (uint16_t left = bytes; left > 0; left = left > 100 ? (uint16_t)(left - 100) : 0)
            slot_table_traffic((uint8_t)(left > 100 ? 100 : left));
        slot_table_decide(second, REPORTS, WINDOWS);
        slot_table_round((uint16_t)++second);
    }
}

/* Long enough for a decision to hold. */
static void settle(const uint8_t *motes, uint8_t depth, uint16_t bytes)
{
    slot_table_forget();
    for (int i = 0; i < 20; i++)
        period(motes, depth, bytes);
}

/* As the beacons tell; a version of 0: nothing. */
static struct wire_slots_entry entries[2];
static const struct wire_slots_entry *told(void)
{
    memset(entries, 0, sizeof entries);
    uint8_t length = slot_table_write((uint8_t *)entries);
    CHECK(length == 0 || length == sizeof *entries || length == sizeof entries);
    if (length == sizeof *entries)
        entries[1] = entries[0];
    if (length)
        CHECK_EQUAL(slot_table_length((uint8_t *)entries, length), length);
    if (length)
        CHECK(slot_table_possible((uint8_t *)entries, length));
    return entries;
}

/* True when they are new to it. */
static bool take(struct wire_slots_entry now, struct wire_slots_entry next, uint8_t count)
{
    struct wire_slots_entry both[2] = {now, next};
    uint8_t had = told()->version;
    slot_table_take((const uint8_t *)both, (uint8_t)(count * sizeof now));
    return told()->version != had;
}

/* The slots of levels 1..depth lie one after the other, the deepest first, and end in time. */
static void check_order(uint8_t depth)
{
    uint16_t end = slot_table_start(depth);
    CHECK_EQUAL(slot_table_start((uint8_t)(depth + 1)), 250);
    for (uint8_t level = depth; level > 0; level--) {
        CHECK_EQUAL(slot_table_start(level), end);
        CHECK(slot_table_cells(level) >= 3 && slot_table_cells(level) % 7 != 0);
        end = (uint16_t)(end + slot_table_cells(level) * SLOT_CELL_MS);
    }
    CHECK_EQUAL(slot_table_over(), end + 5);
    CHECK(slot_table_over() < 998);
}

static void a_network_begins_with_slots_for_eight_levels(void)
{
    static const uint8_t cells[] = {36, 20, 13, 8, 5, 4, 3, 3, 3, 3};
    slot_table_forget();
    for (uint8_t level = 1; level <= 10; level++)
        CHECK_EQUAL(slot_table_cells(level), cells[level - 1]);
    check_order(7);
    CHECK_EQUAL(slot_table_start(8), 250);
    CHECK_EQUAL(slot_table_start(20), 250);
    CHECK_EQUAL(slot_table_start(0), 250);
    CHECK(slot_table_shared(8) && !slot_table_shared(7));
    CHECK_EQUAL(told()->version, 0);
}

static void a_star_gets_one_wide_slot(void)
{
    static const uint8_t motes[] = {60};
    settle(motes, 1, 1200);
    check_order(1);
    CHECK(slot_table_cells(1) > 80);
    CHECK(slot_table_shared(2));
}

static void a_deep_line_gets_a_slot_for_each_level(void)
{
    uint8_t motes[29];
    memset(motes, 1, sizeof motes);
    for (uint8_t depth = 8; depth <= 29; depth++) {
        settle(motes, depth, 400);
        check_order(depth);
        CHECK(!slot_table_shared(depth) && slot_table_shared((uint8_t)(depth + 1)));
        CHECK(slot_table_cells(1) >= slot_table_cells(depth));
    }
}

static void deeper_levels_than_there_can_be_slots_share_one(void)
{
    uint8_t motes[LEVELS_ALL];
    memset(motes, 3, sizeof motes);
    settle(motes, LEVELS_ALL, 400);
    check_order(29);
    CHECK(slot_table_shared(30) && slot_table_shared(32));
}

static void levels_that_cannot_be_are_not_counted(void)
{
    slot_table_forget();
    for (int i = 0; i < 300; i++) {
        slot_table_mote(33); /* no tree is so deep */
        slot_table_mote(0);
        slot_table_mote(WIRE_NO_LEVEL);
    }
    for (int i = 0; i < 20; i++)
        period(NULL, 0, 0);
    CHECK_EQUAL(told()->version, 0);
}

static void a_small_network_has_a_short_round_and_traffic_lengthens_it(void)
{
    static const uint8_t motes[] = {2, 2, 1};
    settle(motes, 3, 80);
    check_order(3);
    uint16_t little = slot_table_over();
    CHECK(little < 500);
    for (int i = 0; i < 20; i++)
        period(motes, 3, 1000);
    check_order(3);
    CHECK(slot_table_over() > little + 100);
}

static void one_mote_that_sends_several_frames_a_round_has_room_for_them(void)
{
    static const uint8_t motes[] = {1};
    settle(motes, 1, 40);
    check_order(1);
    CHECK(slot_table_cells(1) <= 6);
    /* 200 samples a second, in frames of 120 bytes; each may have to be sent again, and the mote's
     * cell may be in the middle. */
    for (int i = 0; i < 20; i++)
        period(motes, 1, 560);
    CHECK(slot_table_cells(1) >= 4 * 560 / 120 && slot_table_cells(1) <= 36);
}

static void one_round_of_much_traffic_changes_nothing(void)
{
    static const uint8_t motes[] = {2, 2, 1};
    settle(motes, 3, 80);
    uint8_t version = told()->version;
    for (int i = 0; i < 50; i++)
        slot_table_traffic(100);
    for (int i = 0; i < 20; i++)
        period(motes, 3, 80);
    CHECK_EQUAL(told()->version, version);
}

static void a_steady_network_decides_once(void)
{
    static const uint8_t motes[] = {38, 14, 2}, others[] = {36, 15, 3}, less[] = {38, 14, 0};
    settle(motes, 3, 900);
    CHECK_EQUAL(told()->version, 1);
    CHECK(slot_table_cells(1) > 2 * slot_table_cells(2));
    for (int i = 0; i < 50; i++)
        period(i % 3 == 0 ? motes : i % 3 == 1 ? others : less, 3, (uint16_t)(800 + 13 * i));
    CHECK_EQUAL(told()->version, 1);
    check_order(3);
}

static void slots_of_the_beginning_that_do_are_kept(void)
{
    static const uint8_t motes[] = {24, 15, 10, 5};
    settle(motes, 4, 900);
    CHECK_EQUAL(told()->version, 0);
}

static void slots_hold_from_the_second_that_was_said_on(void)
{
    static const uint8_t motes[] = {60};
    slot_table_forget();
    while (told()->version == 0)
        period(motes, 1, 1000);
    CHECK(second >= 128);
    struct wire_slots_entry now = told()[0], next = told()[1];
    uint32_t from = (second & ~(uint32_t)4095) + (uint32_t)next.start * 16;
    CHECK(from >= second + 4 * WINDOWS && from < second + 20 * 16);
    CHECK(now.table == 0 && next.table != 0);
    slot_table_round((uint16_t)(from - 1));
    CHECK_EQUAL(slot_table_cells(1), 36);
    slot_table_round((uint16_t)from);
    CHECK(slot_table_cells(1) > 80);
    CHECK_EQUAL(told()->table, next.table);
}

/* Two levels' slots: 3 cells at the second. */
enum { STAR_20 = 0x02000009, STAR_8 = 0x02000004, STAR_30 = 0x0200000B };

static void a_mote_follows_newer_slots_only(void)
{
    slot_table_forget();
    struct wire_slots_entry now = {.version = 7, .table = STAR_20},
                            next = {.version = 7, .start = 20, .table = STAR_8};
    CHECK(!take(now, next, 0));
    CHECK(take(now, next, 2));
    CHECK_EQUAL(slot_table_cells(1), 20); /* at once: this mote is the last to hear of it */
    CHECK(!take(now, next, 2));
    slot_table_round(319);
    CHECK_EQUAL(slot_table_cells(1), 20);
    slot_table_round(320);
    CHECK_EQUAL(slot_table_cells(1), 8);
    now.version = 6;
    CHECK(!take(now, next, 1));
    CHECK_EQUAL(slot_table_cells(1), 8);
    now.version = 8;
    CHECK(take(now, next, 1));
    slot_table_round((uint16_t)100000);
    CHECK_EQUAL(slot_table_cells(1), 20);
    now.version = 137; /* numbers go around */
    CHECK(!take(now, next, 1));
    now.version = 120;
    CHECK(take(now, next, 1));
    now.version = 240;
    CHECK(take(now, next, 1));
    now.version = 1;
    now.table = STAR_30;
    CHECK(take(now, next, 1));
    CHECK_EQUAL(slot_table_cells(1), 30);
    slot_table_forget();
    CHECK_EQUAL(slot_table_cells(1), 36);
}

static void who_was_away_when_it_was_time_learns_that_it_is_over(void)
{
    slot_table_forget();
    struct wire_slots_entry now = {.version = 7, .table = STAR_20},
                            next = {.version = 7, .start = 20, .table = STAR_8};
    CHECK(take(now, next, 2));
    slot_table_round(320 + 2100); /* so late that the second looks like one to come */
    CHECK_EQUAL(slot_table_cells(1), 20);
    now.table = STAR_8;
    CHECK(!take(now, next, 1));
    CHECK_EQUAL(slot_table_cells(1), 8);
}

static bool possible(uint32_t table)
{
    struct wire_slots_entry now = {.version = 1, .table = table}, both[2] = {{.version = 1}, now};
    bool is = slot_table_possible((const uint8_t *)&now, sizeof now);
    CHECK_EQUAL(slot_table_possible((const uint8_t *)both, sizeof both), is);
    return is;
}

static void slots_that_cannot_be_are_known(void)
{
    CHECK(possible(0));
    CHECK(possible(0x0200001F));
    CHECK(!possible(0x0200002F)); /* 93 cells */
    CHECK(!possible(0x020000FF)); /* … and more than a byte's */
    CHECK(!possible(0x0100001F)); /* one level has two: its own, and who is deeper */
    CHECK(!possible(0x0000001F)); /* no level */
    CHECK(possible(0x1E000000));
    CHECK(!possible(0x1F000000)); /* too many */
    CHECK(!possible(0xFF000000));
    CHECK(!possible(0x1E000003)); /* 93 */
    struct wire_slots_entry none = {.table = STAR_20};
    CHECK(!slot_table_possible((const uint8_t *)&none, sizeof none)); /* numbers begin with 1 */
    /* Entries of trees come behind, and what is cut off is none. */
    struct wire_slots_entry three[3] = {{0}, {.srt = 1}, {0}};
    CHECK_EQUAL(slot_table_length((const uint8_t *)three, sizeof three), 7);
    CHECK_EQUAL(slot_table_length((const uint8_t *)three, 6), 0);
    three[1].srt = 0;
    CHECK_EQUAL(slot_table_length((const uint8_t *)three, sizeof three), 14);
    CHECK_EQUAL(slot_table_length((const uint8_t *)three, 13), 7);
}

static const struct test tests[] = {
    TEST(a_network_begins_with_slots_for_eight_levels),
    TEST(a_star_gets_one_wide_slot),
    TEST(a_deep_line_gets_a_slot_for_each_level),
    TEST(deeper_levels_than_there_can_be_slots_share_one),
    TEST(levels_that_cannot_be_are_not_counted),
    TEST(a_small_network_has_a_short_round_and_traffic_lengthens_it),
    TEST(one_mote_that_sends_several_frames_a_round_has_room_for_them),
    TEST(one_round_of_much_traffic_changes_nothing),
    TEST(a_steady_network_decides_once),
    TEST(slots_of_the_beginning_that_do_are_kept),
    TEST(slots_hold_from_the_second_that_was_said_on),
    TEST(a_mote_follows_newer_slots_only),
    TEST(who_was_away_when_it_was_time_learns_that_it_is_over),
    TEST(slots_that_cannot_be_are_known),
};
UNIT_MAIN(tests)
