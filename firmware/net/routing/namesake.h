/* Two motes of one number in a network: a mote that hears its own number from another says so. */
#ifndef SKERRY_NET_NAMESAKE_H
#define SKERRY_NET_NAMESAKE_H

#include <stdbool.h>
#include <stdint.h>

/* A beacon has come of another mote that has this one's number (`source` is its own), or of a
 * network whose root has, from a neighbour: the radio is on. Tells both that and the gateway, again
 * each NAMESAKE_WINDOWS while it goes on. */
void namesake_heard(uint16_t source);
/* NAMESAKE from `source`, to all or, `unicast`, to be passed on; the body is of any length. Queues
 * a record of it. False: it is malformed. */
bool namesake_told(uint16_t source, bool unicast, const uint8_t *body, uint8_t length);
/* A control window has passed. */
void namesake_age(void);
enum { NAMESAKE_WINDOWS = 8 };

#endif
