/* What routing asks of the layers above it. net.c implements all of it: nothing in this folder
 * includes a header of transport/ or schedule/. */
#ifndef SKERRY_NET_ROUTING_OPS_H
#define SKERRY_NET_ROUTING_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* ---- frames ---- */
/* A beacon is to go at once, as somebody listens who knows no better. */
void routing_request_beacon(void);
/* Something is to be sent in the control window that is open. */
void routing_send_soon(void);
/* A JOIN is to go to `parent`, in each control window until it is acknowledged; WIRE_NO_NODE: to
 * nobody. `again`: the parent should know of this mote, so that rows need not wait. */
void routing_send_join(uint16_t parent, bool again);
/* The JOIN that has just been sent in vain is to go once more in this window. */
void routing_repeat_join(void);
/* In this control window, or the next, a neighbour is asked for a sequence number of the root later
 * than `after`; once. WIRE_NO_NODE: nobody any more. */
void routing_request_sequence_number(uint16_t neighbour, uint8_t after);
/* Semantic routing trees have come to know more: queries that were passed over may apply here now.
 */
void routing_request_queries(void);
/* Another mote has this mote's number, or the root's: the gateway hears of it. */
void routing_report_namesake(const struct wire_namesake *record);

/* ---- state of the layers above ---- */
/* False while the parent may hold a frame whose acknowledgement was lost: another parent would
 * count its partial states again. `rows_twice`: rows alone are no reason, as the gateway drops
 * those that come twice. */
bool routing_may_switch(bool rows_twice);
/* Version of the set of queries held. */
uint16_t routing_query_version(void);
/* All queries have long periods, or there are none: control windows are rare. */
bool routing_network_slow(void);

/* ---- what has happened ---- */
/* A session of the root has begun: in place of another one, `again`, of which queries and rows are
 * forgotten, or as the first that this mote hears of. */
void routing_session_begins(bool again);
void routing_joined(void);
void routing_left(void);
void routing_parent_changed(void);
/* Network time has stepped by more than rounds can follow. */
void routing_clock_jumped(void);
/* This root's next session is to come after session `other` as well, and is to begin now. */
void routing_renew_session(uint16_t other);

#endif
