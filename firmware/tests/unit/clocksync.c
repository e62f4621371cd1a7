/* Following another clock: drift, quantisation, jumps, silence. Network time is the root's.
 * sources: net/mac/clocksync.c lib/random.c */
#include "unit.h"

#include <math.h>

#include "drivers/radio.h"
#include "lib/random.h"
#include "net/mac/clocksync.h"

static double true_seconds, ppm;
static ticks_t offset;
ticks_t clock_now(void)
{
    return offset + (ticks_t)(uint64_t)floor(true_seconds * 32768.0 * (1.0 + ppm * 1e-6));
}

static struct net_time network(double seconds)
{
    uint64_t ticks = (uint64_t)floor(seconds * 32768.0);
    return (struct net_time){(uint32_t)(ticks >> 15), (uint16_t)(ticks & 32767)};
}

/* us by which the mote's network time is ahead of the true one. */
static double error(void)
{
    struct net_time t = time_at(clock_now());
    return (t.seconds + t.ticks / 32768.0 - true_seconds) * 1e6;
}

#define ROOT 7
static const struct clocksync_relation root;

static bool stamp(uint16_t source, struct net_time heard, struct clocksync_relation theirs)
{
    struct wire_beacon beacon = {.seconds = heard.seconds,
                                 .ticks = heard.ticks,
                                 .offset = theirs.offset,
                                 .skew = theirs.skew};
    return clocksync_stamp(source, &beacon, clock_now());
}

static bool hear(double seconds) { return stamp(ROOT, network(seconds), root); }

static void follow(double from, double to, double every)
{
    for (true_seconds = from; true_seconds < to; true_seconds += every)
        (void)hear(true_seconds);
}

static void within_a_millisecond(double drift)
{
    ppm = drift;
    offset = 0xFFF00000u; /* the local clock wraps on the way */
    CHECK(!time_known());
    follow(10, 200, 4);
    CHECK(time_known());
    double worst = 0;
    for (; true_seconds < 2000; true_seconds += 12) {
        for (int i = 0; i < 12; i++) {
            true_seconds += 1;
            worst = fmax(worst, fabs(error()));
        }
        (void)hear(true_seconds);
    }
    CHECK(worst < 1000);
}
static void a_fast_crystal_is_followed_within_a_millisecond(void) { within_a_millisecond(40); }
static void a_slow_crystal_is_followed_within_a_millisecond(void) { within_a_millisecond(-40); }
static void a_crystal_far_off_is_followed_within_a_millisecond(void) { within_a_millisecond(100); }
static void a_crystal_in_the_cold_is_followed_within_a_millisecond(void)
{
    within_a_millisecond(-200);
}

/* Sanitizers watch the reckoning: whatever a beacon says, nothing overflows. */
static void times_far_away_are_reckoned_modulo(void)
{
    ppm = 100;
    offset = 0;
    follow(10, 200, 4);
    for (uint32_t ahead = 0; ahead < 132000; ahead += 7) {
        struct net_time there = network(true_seconds);
        there.seconds += ahead;
        int64_t wanted = (int64_t)clock_now() + (int64_t)(ahead * 32768.0 * (1.0 + ppm * 1e-6));
        int32_t off = (int32_t)(time_local(there) - (ticks_t)wanted);
        if (ahead < 60000)
            CHECK(fabs((double)off) < 100 + ahead * 32768.0 * 20e-6);
    }
}

static void after_half_a_minute_of_silence_the_rate_still_holds(void)
{
    ppm = 40;
    follow(0, 300, 4);
    true_seconds += 30;
    CHECK(fabs(error()) < 1000); /* without the rate it would be 1,200 us */
}

static void local_and_network_time_are_each_others_inverse(void)
{
    ppm = -35;
    offset = 12345;
    follow(0, 400, 4);
    random_seed(9, 9);
    for (int i = 0; i < 10000; i++) {
        ticks_t local =
            clock_now() + (ticks_t)((int32_t)(random_bits() << 12) - (int32_t)(1 << 27));
        int32_t off = (int32_t)(time_local(time_at(local)) - local);
        CHECK(off >= -1 && off <= 1);
    }
}

static void a_jump_is_told_and_taken_at_once(void)
{
    ppm = 10;
    follow(0, 100, 4);
    true_seconds += 4;
    CHECK(hear(true_seconds + 5));
    CHECK(fabs(error() - 5e6) < 1000);
    true_seconds += 4;
    CHECK(!hear(true_seconds + 5));
}

static void half_an_hour_without_a_stamp_loses_network_time_but_not_at_the_root(void)
{
    follow(0, 60, 4);
    true_seconds += 1790;
    clocksync_tick(false);
    CHECK(time_known());
    true_seconds += 70;
    clocksync_tick(false);
    CHECK(!time_known());
    clocksync_start_root();
    for (int i = 0; i < 100; i++) {
        true_seconds += 3000;
        clocksync_tick(true);
    }
    CHECK(time_known());
    CHECK_EQUAL(time_at(clock_now()).seconds, 300000);
}

static void stamps_that_come_too_close_together_change_nothing(void)
{
    ppm = 0;
    follow(0, 100, 4);
    (void)hear(true_seconds);
    double before = error();
    true_seconds += 0.5;
    struct net_time early = network(true_seconds);
    early.ticks = (uint16_t)((early.ticks + 20) & 32767);
    CHECK(!stamp(ROOT, early, root));
    CHECK(fabs(error() - before) < 150); /* the stamp is 610 us off */
}

/* A parent whose crystal is fast by so many ppm and that knows, but for what it set right at every
 * stamp of its own: us by which its network time is off. */
static void hear_parent(uint16_t source, double fast, double off)
{
    struct net_time heard = network(true_seconds + off * 1e-6);
    uint32_t own =
        (uint32_t)(uint64_t)floor(true_seconds * 32768.0 * (1.0 + fast * 1e-6)) + source * 1000U;
    struct clocksync_relation relation = {(uint16_t)((heard.seconds << 15) + heard.ticks - own),
                                          (int16_t)(-fast * 16.777216)};
    (void)stamp(source, heard, relation);
}

static void what_a_parent_sets_right_is_not_taken_for_its_rate(void)
{
    ppm = 20;
    random_seed(3, 3);
    for (true_seconds = 0; true_seconds < 1000; true_seconds += 12)
        hear_parent(1, -30, (double)random_below(1000) - 500);
    hear_parent(1, -30, 0);
    true_seconds += 100;
    /* 1 ppm and the two clocks' ticks; 500 us in 12 s would be 40 ppm */
    CHECK(fabs(error()) < 150);
}

static void another_parent_is_followed_at_once(void)
{
    ppm = -25;
    for (true_seconds = 0; true_seconds < 400; true_seconds += 12)
        hear_parent(1, 35, 0);
    hear_parent(2, -40, 0);
    true_seconds += 100;
    CHECK(fabs(error()) < 250);
    for (; true_seconds < 800; true_seconds += 12)
        hear_parent(2, -40, 0);
    true_seconds += 88;
    CHECK(fabs(error()) < 150);
}

/* Each of them is heard once in a while, so that no two stamps in a row are of the same clock. */
static void a_mote_that_hears_another_each_time_finds_its_rate(void)
{
    ppm = 38;
    random_seed(5, 5);
    hear_parent(1, 30, 0);
    double worst = 0;
    for (uint16_t i = 2; i < 12; i++) {
        CHECK(!clocksync_stale());
        for (int second = 0; second < (i == 2 ? 40 : 110); second++) {
            true_seconds += 1;
            if (i > 2)
                worst = fmax(worst, fabs(error()));
        }
        CHECK(clocksync_stale());
        hear_parent(i, i % 2 ? -35 : 20, (double)random_below(200) - 100);
    }
    CHECK(worst < 1000);
}

static void a_parent_that_began_anew_does_not_spoil_the_rate(void)
{
    ppm = 10;
    for (true_seconds = 0; true_seconds < 400; true_seconds += 12)
        hear_parent(1, 10, 0);
    struct net_time heard = network(true_seconds);
    (void)stamp(1, heard, (struct clocksync_relation){12345, -167});
    true_seconds += 100;
    CHECK(fabs(error()) < 150);
}

static void others_are_told_the_relation_to_the_own_clock(void)
{
    ppm = 40;
    follow(0, 300, 4);
    struct clocksync_relation first = clocksync_relation();
    CHECK(first.skew < -600 && first.skew > -740); /* -40 ppm are -671 */
    struct net_time now = time_at(clock_now());
    CHECK_EQUAL((uint16_t)((now.seconds << 15) + now.ticks - clock_now()), first.offset);
    true_seconds += 100;
    int16_t gained = (int16_t)(clocksync_relation().offset - first.offset);
    CHECK(gained <= -129 && gained >= -133); /* 4 ms are 131 ticks */
}

static const struct test tests[] = {
    TEST(a_fast_crystal_is_followed_within_a_millisecond),
    TEST(a_slow_crystal_is_followed_within_a_millisecond),
    TEST(a_crystal_far_off_is_followed_within_a_millisecond),
    TEST(a_crystal_in_the_cold_is_followed_within_a_millisecond),
    TEST(times_far_away_are_reckoned_modulo),
    TEST(after_half_a_minute_of_silence_the_rate_still_holds),
    TEST(local_and_network_time_are_each_others_inverse),
    TEST(a_jump_is_told_and_taken_at_once),
    TEST(half_an_hour_without_a_stamp_loses_network_time_but_not_at_the_root),
    TEST(stamps_that_come_too_close_together_change_nothing),
    TEST(what_a_parent_sets_right_is_not_taken_for_its_rate),
    TEST(another_parent_is_followed_at_once),
    TEST(a_mote_that_hears_another_each_time_finds_its_rate),
    TEST(a_parent_that_began_anew_does_not_spoil_the_rate),
    TEST(others_are_told_the_relation_to_the_own_clock),
};
UNIT_MAIN(tests)
