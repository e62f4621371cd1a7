/* What net/ does to network time; net/time.h is what others see. */
#ifndef SKERRY_NET_CLOCKSYNC_H
#define SKERRY_NET_CLOCKSYNC_H

#include "net/time.h"

/* The root's clock is the network's, from 0 on. */
void clocksync_start_root(void);
/* A stamp of the mote this one follows, for the local time of its SFD. True when network time became known or jumped. */
bool clocksync_stamp(struct net_time heard, ticks_t local);
void clocksync_lose(void);
/* Every few seconds; without a stamp for half an hour network time is lost. */
void clocksync_tick(bool root);

#endif
