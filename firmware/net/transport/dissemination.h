/* Queries from the root to all motes: flooded in control windows, repaired between neighbours. What
 * else goes in those windows, commands and JOIN packets, goes in turn with them. */
#ifndef SKERRY_NET_DISSEMINATION_H
#define SKERRY_NET_DISSEMINATION_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Version of the set of queries held; 0 none yet. */
uint16_t dissemination_version(void);
/* Packets from neighbours or, at the root, from the gateway. `asked`: sent to this mote alone. */
void dissemination_install(const struct wire_query_install *install, uint8_t length, bool asked);
/* `count` stops, newest first. */
void dissemination_stop(const struct wire_stopped *heard, uint8_t count);
void dissemination_summary(uint16_t source, const struct wire_query_request *summary,
                           uint8_t length);
/* A neighbour's beacon says which version it holds. */
void dissemination_heard(uint16_t source, uint16_t theirs);
/* Asks the parent for queries that were passed over and apply here now. */
void dissemination_want(void);
/* In a control window: sends the next thing due; false when nothing is. */
bool dissemination_send(void);
bool dissemination_waiting(void);
/* A control window begins. `all_awake`: motes that have not heard of what floods are awake in it as
 * well; floods wait for one that is. */
void dissemination_window(bool all_awake);
/* A neighbour holds queries that this mote does not know yet. */
bool dissemination_behind(void);
/* It does so, or may, as this mote holds none yet. */
bool dissemination_lacks(void);
/* Whether all neighbours know a query that are not behind: its flood is over here. */
bool dissemination_settled(uint8_t query);
void dissemination_forget(void);

#endif
