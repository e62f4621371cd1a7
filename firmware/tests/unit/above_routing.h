/* What lies above routing, in place of what is: what routing asks of the layers above it, and the
 * application. And beacons that a mote hears, as its tree is the real one. */
#ifndef UNIT_ABOVE_ROUTING_H
#define UNIT_ABOVE_ROUTING_H

#include "unit.h"

#include "drivers/settings.h"
#include "kernel/clock.h"
#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/routing/beacon_receive.h"
#include "net/routing/neighbours.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"

enum { ROOT = 1, SESSION = 3 };

/* ---- what routing asks of the layers above it ---- */
static uint16_t join_parent; /* to whom the last JOIN is to go */
static int joins_again, joins_repeated, queries_wanted, beacons, joined, left, changed, restarted;
static uint16_t requested_of; /* the last sequence number request */
static uint8_t requested_after;
static bool slow;            /* the network is */
static bool doubtful;        /* the parent may hold a frame of this mote's … */
static bool partials = true; /* … with partial state records */
static int renewed;
static uint16_t renewed_after;

void routing_request_beacon(void) { beacons++; }
void routing_send_soon(void) {}
void routing_send_join(uint16_t to, bool again)
{
    join_parent = to;
    joins_again += again;
}
void routing_repeat_join(void) { joins_repeated++; }
void routing_request_sequence_number(uint16_t node, uint8_t after)
{
    requested_of = node;
    requested_after = after;
}
void routing_request_queries(void) { queries_wanted++; }
void routing_report_namesake(const struct wire_namesake *record) { (void)record; }
bool routing_may_switch(bool rows_twice) { return !doubtful || (rows_twice && !partials); }
uint16_t routing_query_version(void) { return 0; }
bool routing_network_slow(void) { return slow; }
void routing_session_begins(bool again)
{
    (void)again;
    restarted++;
}
void routing_joined(void) { joined++; }
void routing_left(void) { left++; }
void routing_parent_changed(void) { changed++; }
void routing_clock_jumped(void) {}
void routing_renew_session(uint16_t other)
{
    renewed++;
    renewed_after = other;
}

/* ---- the application ---- */
static bool wider; /* semantic routing trees have come to reach further */
static uint8_t told[WIRE_PACKET_MAXIMUM], told_length;
static bool by_values;
static uint16_t distances[256]; /* by node */

void app_time_changed(void) {}
bool app_srt_heard(uint8_t neighbour, const uint8_t *entries, uint8_t length, bool whole)
{
    (void)neighbour;
    (void)whole;
    memcpy(told, entries, told_length = length);
    return length != 1;
}
void app_srt_forget(uint8_t neighbour) { (void)neighbour; }
bool app_srt_refresh(bool window) { return window && wider; }
uint8_t app_srt_write(uint8_t *entries)
{
    memset(entries, 0x55, sizeof(struct wire_srt_entry));
    return sizeof(struct wire_srt_entry);
}
bool app_srt_chooses(void) { return by_values; }
uint16_t app_srt_distance(uint8_t neighbour, bool parent)
{
    CHECK_EQUAL(parent, neighbours()[neighbour].node == tree_own_parent());
    return distances[neighbours()[neighbour].node & 255];
}

/* ---- neighbours ---- */
static uint8_t sequence[256];
/* Of the root's latest beacon, that all others of a test have heard of; it stands still while a
 * test says so. */
static uint8_t root_sequence;
static bool cut_off;
static struct net_time stamp; /* of each beacon */

/* A beacon of `node`, heard with `lqi`, that says it hears this mote as well. */
static bool beacon_of(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi,
                      uint16_t session)
{
    root_sequence += !cut_off;
    uint8_t bytes[sizeof(struct wire_beacon) + sizeof(struct wire_neighbour_entry)] = {0};
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    *beacon = (struct wire_beacon){.root = ROOT,
                                   .session = session,
                                   .seconds = stamp.seconds,
                                   .ticks = stamp.ticks,
                                   .sequence = sequence[node & 255]++,
                                   .root_sequence = root_sequence,
                                   .level = level,
                                   .parent = parent,
                                   .cost = cost};
    beacon->neighbours[0].node = settings()->nodeid;
    beacon->neighbours[0].heard = lqi;
    struct radio_frame frame = {.lqi = lqi, .sfd = clock_now()};
    return beacon_receive(&frame, node, beacon, sizeof bytes);
}

static void hear(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi)
{
    CHECK(beacon_of(node, level, parent, cost, lqi, SESSION));
}

#endif
