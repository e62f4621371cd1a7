/* Network time: the root's clock, followed by all. */
#ifndef SKERRY_NET_TIME_H
#define SKERRY_NET_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/clock.h"

struct net_time {
    uint32_t seconds;
    uint16_t ticks; /* 0..32767 */
};

/* True once this mote follows a root (always at the root). */
bool time_known(void);
/* Network time of a local instant within 12 hours of now, and back. */
struct net_time time_at(ticks_t local);
ticks_t time_local(struct net_time time);

#endif
