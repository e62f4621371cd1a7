/* Follows the parent's clock by the stamps of its beacons, and the rate between the two crystals. */
#include "net/time.h"

#include <string.h>

#include "drivers/radio.h"
#include "net/clocksync.h"
#include "query/wide.h"

/* Skew is kept in 2^-24; crystals are within 100 ppm of each other, motes in the sun a little more. */
#define SKEW_LIMIT ((int32_t)(150e-6 * 16777216))
/* Below this the quantisation of two stamps, 60 us, spoils the rate. */
#define SKEW_BASE CLOCK_MS(3500)
#define SKEW_LONG CLOCK_MS(10000)
/* So long without a stamp, rates a few ppm off add up to 10 ms. */
#define SILENCE_SECONDS 1800L

static bool known;
static ticks_t reference;        /* local */
static struct net_time there;    /* network time at `reference` */
static int32_t skew;

bool time_known(void) { return known; }

void clocksync_start_root(void)
{
    known = true;
    reference = clock_now();
    there = (struct net_time){0, 0};
    skew = 0;
}

void clocksync_lose(void)
{
    known = false;
    skew = 0;
}

static struct net_time advance(struct net_time time, int32_t ticks)
{
    int32_t sum = (int32_t)time.ticks + (int32_t)(ticks & 32767);
    time.seconds += (uint32_t)(ticks >> 15) + (uint32_t)(sum >> 15);
    time.ticks = (uint16_t)(sum & 32767);
    return time;
}

/* a - b in ticks; the caller knows them to lie within 18 hours. */
static int32_t difference(struct net_time a, struct net_time b)
{
    return (int32_t)(((a.seconds - b.seconds) << 15) + a.ticks - b.ticks);
}

static int32_t correction(int32_t ticks) { return (int32_t)((int64_t)ticks * skew / 16777216); }

struct net_time time_at(ticks_t local)
{
    int32_t passed = (int32_t)(local - reference);
    return advance(there, (int32_t)((uint32_t)passed + (uint32_t)correction(passed)));
}

ticks_t time_local(struct net_time time)
{
    int32_t ahead = difference(time, there);
    return reference + (ticks_t)(ahead - correction(ahead));
}

/* The root moves the reference close, so that local ticks never wrap past it. */
void clocksync_tick(bool root)
{
    ticks_t now = clock_now();
    if ((int32_t)(now - reference) < (int32_t)(SILENCE_SECONDS * 32768L)) return;
    if (!root) {
        clocksync_lose();
        return;
    }
    there = time_at(now);
    reference = now;
}

bool clocksync_stamp(struct net_time heard, ticks_t local)
{
    if (!known) {
        known = true;
        reference = local;
        there = heard;
        return true;
    }
    int32_t error = difference(heard, time_at(local));
    bool jump = error > 1638 || error < -1638; /* 50 ms: the root's clock was set anew */
    int32_t passed = (int32_t)(local - reference);
    if (jump) skew = 0;
    else if (passed >= (int32_t)SKEW_BASE) {
        int32_t ahead = difference(heard, there) - passed;
        uint32_t rate_size, rest;
        if (!wide_divide((uint64_t)(uint32_t)(ahead < 0 ? -ahead : ahead) << 24, (uint32_t)passed, &rate_size, &rest) || rate_size > SKEW_LIMIT)
            rate_size = SKEW_LIMIT;
        int32_t rate = ahead < 0 ? -(int32_t)rate_size : (int32_t)rate_size;
        /* A short base says little: its error, and the corrections of all clocks on the way from the root, come in whole. */
        skew += (rate - skew) / (passed < (int32_t)SKEW_LONG ? 4 : 2);
    } else return false;
    there = heard;
    reference = local;
    return jump;
}

void radio_stamp(uint8_t stamp[RADIO_STAMP_SIZE], ticks_t sfd)
{
    struct net_time time = time_at(sfd);
    memcpy(stamp, &time.seconds, 4);
    memcpy(stamp + 4, &time.ticks, 2);
}
