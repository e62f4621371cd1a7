/* Follows the parent's clock by the stamps of its beacons. The rate is the parent's, as it says,
 * and that between the two crystals, measured by the parent's own clock: were it measured by
 * network time, each mote would take its parent's corrections for a change of rate and pass them on
 * enlarged, to tens of ms after twenty hops (Lenzen, Sommer, Wattenhofer 2009: PulseSync, on FTSP).
 */
#include "net/mac/time.h"

#include <string.h>

#include "drivers/radio.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac_conf.h"

/* Rates are kept in 2^-24, and are below 2^-12, 244 ppm: the quotient's 24 bits begin with zeros.
 * Of two tuning forks in a room and at -40 degC one is 144 ppm slower, and each may be off by 40.
 */
#define RATE_BITS 12
/* Below this the quantisation of two stamps, 60 us, spoils the rate. */
#define RATE_BASE CLOCK_MS(3500)
/* The newest rate counts for 1/8, over longer times for more: it is more exact, and by the next one
 * temperatures change. */
#define RATE_LONG CLOCK_MS(10000)
#define RATE_LONGEST CLOCK_MS(32000)
/* Two beacons of a parent that is heard well come within this, also in a steady network. */
#define STALE CLOCK_MS(100000)

static struct {
    bool known;            /* network time is */
    ticks_t reference;     /* local time of the last stamp */
    struct net_time there; /* network time at `reference` */
    uint16_t source;       /* of the stamp */
    uint16_t offset;       /* of its network time to its own clock */
    uint8_t rates;         /* measured, up to 8 */
    int16_t rate;          /* by which the source's clock gains on this one, 2^-24 */
    int16_t skew;          /* by which network time does, 2^-24 */
} sync;

bool time_known(void) { return sync.known; }

void clocksync_start_root(void)
{
    sync.known = true;
    sync.reference = clock_now();
    sync.there = (struct net_time){0, 0};
    sync.rate = sync.skew = 0;
}

void clocksync_lose(void)
{
    sync.known = false;
    sync.rate = sync.skew = 0;
}

/* From the network time at `reference` on, in ticks modulo 2^32: a forged time may be 18 hours
 * away. */
static uint32_t since(struct net_time time)
{
    return ((time.seconds - sync.there.seconds) << 15) + time.ticks - sync.there.ticks;
}

/* ticks * skew / 2^24, rounded: what is cut off would be lost at every hop. By halves, as the
 * product has 45 bits. */
static uint32_t correction(uint32_t ticks)
{
    int32_t low = (int32_t)(uint16_t)ticks * sync.skew + (1L << 23);
    return (uint32_t)(((int32_t)(int16_t)(ticks >> 16) * sync.skew + (low >> 16)) >> 8);
}

struct net_time time_at(ticks_t local)
{
    uint32_t passed = local - sync.reference;
    int32_t ticks = (int32_t)(passed + correction(passed) + sync.there.ticks);
    return (struct net_time){sync.there.seconds + (uint32_t)(ticks >> 15),
                             (uint16_t)(ticks & 32767)};
}

ticks_t time_local(struct net_time time)
{
    uint32_t ahead = since(time);
    return sync.reference + ahead - correction(ahead);
}

/* The root moves the reference close, so that local ticks never wrap past it. */
void clocksync_tick(bool root)
{
    ticks_t now = clock_now();
    if ((int32_t)(now - sync.reference) < (int32_t)(TIME_LOST_SECONDS * 32768L))
        return;
    if (!root) {
        clocksync_lose();
        return;
    }
    sync.there = time_at(now);
    sync.reference = now;
}

struct clocksync_relation clocksync_relation(void)
{
    uint16_t ahead = (uint16_t)((sync.there.seconds << 15) + sync.there.ticks - sync.reference);
    return (struct clocksync_relation){
        (uint16_t)(ahead + (uint16_t)correction(clock_now() - sync.reference)), sync.skew};
}

/* Two stamps: `ahead` by the other clock, in the time that passed by this one. False: it was none.
 */
static bool measure(int32_t ahead, int32_t passed)
{
    uint32_t rest = (uint32_t)(ahead < 0 ? -ahead : ahead);
    int16_t size = 0;
    /* More is no crystal: the mote has begun anew in between. */
    if (rest >= (uint32_t)passed >> RATE_BITS)
        return false;
    rest <<= 24 - RATE_BITS;
    for (uint8_t bit = 0; bit < RATE_BITS; bit++) {
        size = (int16_t)(size << 1);
        rest <<= 1;
        if (rest >= (uint32_t)passed) {
            rest -= (uint32_t)passed;
            size++;
        }
    }
    if (ahead < 0)
        size = (int16_t)-size;
    uint8_t share = passed < (int32_t)RATE_LONG ? 8 : passed < (int32_t)RATE_LONGEST ? 4 : 2;
    if (sync.rates < 8)
        sync.rates++;
    sync.rate += (int16_t)((size - sync.rate) / (sync.rates < share ? sync.rates : share));
    return true;
}

bool clocksync_stale(void)
{
    return sync.known && clock_now() - sync.reference > (sync.rates ? STALE : RATE_LONGEST);
}

bool clocksync_stamp(uint16_t from, const struct wire_beacon *beacon, ticks_t local)
{
    struct net_time heard = {beacon->seconds, beacon->ticks};
    bool jump = !sync.known;
    if (sync.known) {
        int32_t passed = (int32_t)(local - sync.reference),
                ahead = (int32_t)(since(heard) - (uint32_t)passed);
        int32_t error = ahead - (int32_t)correction((uint32_t)passed);
        jump = error > 1638 || error < -1638; /* 50 ms: the root's clock was set anew */
        if (!jump && passed < (int32_t)RATE_BASE)
            return false;
        if (jump)
            sync.rate = 0;
        else if (from == sync.source)
            (void)measure(ahead - (int16_t)(beacon->offset - sync.offset), passed);
        /* Once, where there is no rate at all, network time has to do; over a time that makes
         * little of what two motes differ by. */
        else if (!sync.rates && passed > (int32_t)RATE_LONGEST && measure(ahead, passed))
            sync.rate = (int16_t)(sync.rate - beacon->skew);
        else
            sync.rate = (int16_t)(sync.skew - beacon->skew);
    }
    if (jump)
        sync.rates = 0;
    sync.known = true;
    sync.source = from;
    sync.offset = beacon->offset;
    int16_t sum = (int16_t)(beacon->skew + sync.rate);
    sync.skew = sum > CLOCKSYNC_SKEW_MAXIMUM    ? CLOCKSYNC_SKEW_MAXIMUM
                : sum < -CLOCKSYNC_SKEW_MAXIMUM ? -CLOCKSYNC_SKEW_MAXIMUM
                                                : sum;
    sync.there = heard;
    sync.reference = local;
    return jump;
}

void radio_stamp(uint8_t stamp[RADIO_STAMP_SIZE], ticks_t sfd)
{
    struct net_time time = time_at(sfd);
    memcpy(stamp, &time.seconds, 4);
    memcpy(stamp + 4, &time.ticks, 2);
}
