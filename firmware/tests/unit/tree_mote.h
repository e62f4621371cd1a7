/* A mote whose tree is under test, and beacons that it hears: what tree.c calls of other modules.
 */
#ifndef UNIT_TREE_MOTE_H
#define UNIT_TREE_MOTE_H

#include "unit.h"

#include "drivers/settings.h"
#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"

enum { ME = 9, ROOT = 1, SESSION = 3 };

static struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC, .nodeid = ME};
static bool clock_is_known;
static int joined, left, changed, stamped, restarted;
static uint16_t join_parent;
static int asked_again;

const struct wire_settings *settings(void) { return &own; }
bool time_known(void) { return clock_is_known; }
bool clocksync_stamp(uint16_t source, const struct wire_beacon *beacon, ticks_t local)
{
    (void)source;
    (void)beacon;
    (void)local;
    stamped++;
    clock_is_known = true;
    return false;
}
static bool clock_is_stale;
bool clocksync_stale(void) { return clock_is_stale; }
struct clocksync_relation clocksync_relation(void) { return (struct clocksync_relation){0}; }
void clocksync_lose(void) { clock_is_known = false; }
void routing_send_join(uint16_t to, bool again)
{
    join_parent = to;
    asked_again += again;
}
static int probes;
void routing_repeat_join(void) { probes++; }
uint16_t routing_query_version(void) { return 0; }
static int wanted, beacons;
void routing_request_queries(void) { wanted++; }
static uint16_t sought_from;
static uint8_t sought_after;
void routing_request_sequence_number(uint16_t node, uint8_t after)
{
    sought_from = node;
    sought_after = after;
}
void routing_request_beacon(void) { beacons++; }
void routing_send_soon(void) {}
static bool slow;
bool routing_network_slow(void) { return slow; }
void routing_session_begins(bool again)
{
    (void)again;
    restarted++;
}
static bool doubtful;
static bool partials = true;
bool routing_may_switch(bool rows_twice) { return !doubtful || (rows_twice && !partials); }
void app_time_changed(void) {}
void routing_joined(void) { joined++; }
void routing_left(void) { left++; }
void routing_parent_changed(void) { changed++; }
void routing_clock_jumped(void) {}
static int namesakes;
void namesake_heard(uint16_t source)
{
    (void)source;
    namesakes++;
}
void namesake_age(void) {}
static int renewed;
static uint16_t renewed_after;
void routing_renew_session(uint16_t other)
{
    renewed++;
    renewed_after = other;
}

struct mac_counters mac_counters;
static bool wider;
static uint8_t told[WIRE_PACKET_MAXIMUM], told_length;
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

static bool by_values;
static uint16_t distances[256]; /* by node */
bool app_srt_chooses(void) { return by_values; }
uint16_t app_srt_distance(uint8_t neighbour, bool parent)
{
    CHECK_EQUAL(parent, neighbours()[neighbour].node == tree_own_parent());
    return distances[neighbours()[neighbour].node & 255];
}
uint16_t random_below(uint16_t limit)
{
    (void)limit;
    return 0;
}

static uint8_t sequence[256];
/* Of the root's latest beacon, that all others of a test have heard of; it stands still while a
 * test says so. */
static uint8_t root_sequence;
static bool cut_off;

/* A beacon of `node`, heard with `lqi`, that says it hears this mote as well. */
static bool beacon_of(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi,
                      uint16_t session)
{
    root_sequence += !cut_off;
    uint8_t bytes[sizeof(struct wire_beacon) + sizeof(struct wire_neighbour_entry)] = {0};
    struct wire_beacon *beacon = (struct wire_beacon *)bytes;
    *beacon = (struct wire_beacon){.root = ROOT,
                                   .session = session,
                                   .sequence = sequence[node & 255]++,
                                   .root_sequence = root_sequence,
                                   .level = level,
                                   .parent = parent,
                                   .cost = cost};
    beacon->neighbours[0].node = ME;
    beacon->neighbours[0].heard = lqi;
    struct radio_frame frame = {.lqi = lqi};
    return tree_beacon(&frame, node, beacon, sizeof bytes);
}

static void hear(uint16_t node, uint8_t level, uint16_t parent, uint16_t cost, uint8_t lqi)
{
    CHECK(beacon_of(node, level, parent, cost, lqi, SESSION));
}

/* For windows(). */
static int other_beacon(void)
{
    hear(2, 1, ROOT, 16, 255);
    return 0;
}

static void windows(int count, int (*each)(void))
{
    for (int i = 0; i < count; i++) {
        if (each)
            (void)each();
        tree_age();
    }
}

#endif
