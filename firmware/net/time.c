/* Follows the parent's clock by the stamps of its beacons. The rate is the parent's, as it says, and that between the two crystals, measured
 * by the parent's own clock: were it measured by network time, each mote would take its parent's corrections for a change of rate and pass
 * them on enlarged, to tens of ms after twenty hops (Lenzen, Sommer, Wattenhofer 2009: PulseSync, on FTSP). */
#include "net/time.h"

#include <string.h>

#include "drivers/radio.h"
#include "net/clocksync.h"
#include "query/wide.h"

/* Rates are kept in 2^-24; crystals are within 100 ppm of each other, motes in the sun a little more. */
#define RATE_LIMIT ((uint32_t)(150e-6 * 16777216))
/* Below this the quantisation of two stamps, 60 us, spoils the rate. */
#define RATE_BASE CLOCK_MS(3500)
/* The newest rate counts for 1/8, over longer times for more: it is more exact, and by the next one temperatures change. */
#define RATE_LONG CLOCK_MS(10000)
#define RATE_LONGEST CLOCK_MS(32000)
/* Two beacons of a parent that is heard well come within this, also in a steady network. */
#define STALE CLOCK_MS(100000)
/* So long without a stamp, rates a few ppm off add up to 10 ms. */
#define SILENCE_SECONDS 1800L

static bool known;
static ticks_t reference;        /* local */
static struct net_time there;    /* network time at `reference` */
static uint16_t source;          /* of the stamp */
static uint16_t offset;          /* of its network time to its own clock */
static uint8_t rates;            /* measured, up to 8 */
static int16_t rate;             /* by which the source's clock gains on this one */
static int16_t skew;             /* by which network time does */

bool time_known(void) { return known; }

void clocksync_start_root(void)
{
    known = true;
    reference = clock_now();
    there = (struct net_time){0, 0};
    rate = skew = 0;
}

void clocksync_lose(void)
{
    known = false;
    rate = skew = 0;
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

/* Rounded: what is cut off would be lost at every hop. */
static int32_t correction(int32_t ticks) { return (int32_t)(((int64_t)ticks * skew + (1L << 23)) >> 24); }

struct net_time time_at(ticks_t local)
{
    int32_t passed = (int32_t)(local - reference);
    return advance(there, (int32_t)((uint32_t)passed + (uint32_t)correction(passed)));
}

ticks_t time_local(struct net_time time)
{
    int32_t ahead = difference(time, there);
    return reference + (ticks_t)ahead - (ticks_t)correction(ahead); /* modulo 2^32: a forged time may be 18 hours away */
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

struct clocksync_relation clocksync_relation(void)
{
    uint32_t now = (there.seconds << 15) + there.ticks + (uint32_t)correction((int32_t)(clock_now() - reference));
    return (struct clocksync_relation){(uint16_t)(now - reference), skew};
}

/* Two stamps: `ahead` by the other clock, in the time that passed by this one. False: it was none. */
static bool measure(int32_t ahead, int32_t passed)
{
    uint32_t size, rest;
    /* More is no crystal: the mote has begun anew in between. */
    if (!wide_divide((uint64_t)(uint32_t)(ahead < 0 ? -ahead : ahead) << 24, (uint32_t)passed, &size, &rest) || size > RATE_LIMIT) return false;
    uint8_t share = passed < (int32_t)RATE_LONG ? 8 : passed < (int32_t)RATE_LONGEST ? 4 : 2;
    if (rates < 8) rates++;
    rate += (int16_t)(((int16_t)(ahead < 0 ? -(int16_t)size : (int16_t)size) - rate) / (rates < share ? rates : share));
    return true;
}

bool clocksync_stale(void) { return known && clock_now() - reference > (rates ? STALE : RATE_LONGEST); }

bool clocksync_stamp(uint16_t from, struct net_time heard, struct clocksync_relation theirs, ticks_t local)
{
    bool jump = !known;
    if (known) {
        int32_t error = difference(heard, time_at(local)), passed = (int32_t)(local - reference);
        jump = error > 1638 || error < -1638; /* 50 ms: the root's clock was set anew */
        if (!jump && passed < (int32_t)RATE_BASE) return false;
        if (jump) rate = 0;
        else if (from == source) (void)measure(difference(heard, there) - (int16_t)(theirs.offset - offset) - passed, passed);
        /* Once, where there is no rate at all, network time has to do; over a time that makes little of what two motes differ by. */
        else if (!rates && passed > (int32_t)RATE_LONGEST && measure(difference(heard, there) - passed, passed)) rate = (int16_t)(rate - theirs.skew);
        else rate = (int16_t)(skew - theirs.skew);
    }
    if (jump) rates = 0;
    known = true;
    source = from;
    offset = theirs.offset;
    skew = (int16_t)(theirs.skew + rate);
    if (skew > CLOCKSYNC_SKEW_MAXIMUM) skew = CLOCKSYNC_SKEW_MAXIMUM;
    if (skew < -CLOCKSYNC_SKEW_MAXIMUM) skew = -CLOCKSYNC_SKEW_MAXIMUM;
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
