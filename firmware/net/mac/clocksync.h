/* What net/ does to network time; net/mac/time.h is what others see. */
#ifndef SKERRY_NET_CLOCKSYNC_H
#define SKERRY_NET_CLOCKSYNC_H

#include "net/mac/time.h"
#include "wire.h"

/* The root's clock is the network's, from 0 on. */
void clocksync_start_root(void);
/* What network time is to a mote's own clock, as beacons say it. */
struct clocksync_relation {
    uint16_t offset; /* network time less own, ticks modulo 2 s */
    int16_t skew;    /* by which it gains, 2^-24 */
};
#define CLOCKSYNC_SKEW_MAXIMUM 4095
struct clocksync_relation clocksync_relation(void);
/* No stamp has come for so long that windows will be missed: that of any mote closer to the root
 * will do. */
bool clocksync_stale(void);
/* A beacon of the mote this one follows, whose SFD ended at a local time. True when network time
 * became known or jumped. */
bool clocksync_stamp(uint16_t source, const struct wire_beacon *beacon, ticks_t local);
void clocksync_lose(void);
/* To be called every few seconds; without a stamp for TIME_LOST_SECONDS network time is lost. */
void clocksync_tick(bool root);

#endif
