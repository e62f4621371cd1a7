/* In which control windows this mote beacons: in all while it has news, else in some, so that a
 * crowd does not fill them. */
#ifndef SKERRY_NET_BEACON_DUE_H
#define SKERRY_NET_BEACON_DUE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether to beacon in this round's control window. */
bool beacon_due(uint32_t round);
/* There is something that neighbours should hear of: the mote beacons in at least so many of the
 * windows that come. */
void beacon_news(uint8_t windows);
bool beacon_has_news(void);
/* What was to be told is of a session that is over. */
void beacon_forget_news(void);
/* A control window has passed. */
void beacon_due_age(void);

#endif
