#include "net/routing/beacon_send.h"

#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/mac/slot_table.h"
#include "net/routing/neighbours.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"

/* Neighbours that a beacon names: half of those that there is room for. Poor links lose long frames
 * more often. */
#define ENTRIES 11
/* The list of the next beacon begins so many places further on, a number prime to that of the
 * places: all neighbours are named in turn. */
#define TURN_STEP 5

static struct {
    uint8_t sequence; /* of the next beacon */
    uint8_t turn;     /* place in the table of the neighbour that it names first */
} beacons;

uint8_t beacon_write(struct wire_beacon *beacon)
{
    (void)tree_refresh_srts(false);
    struct clocksync_relation clock = clocksync_relation();
    beacon->offset = clock.offset;
    beacon->skew = clock.skew;
    beacon->root = tree_root_node();
    beacon->session = tree_session();
    if (tree_is_root())
        tree_renew_root_sequence(beacons.sequence);
    beacon->root_sequence = tree_root_sequence();
    beacon->sequence = beacons.sequence++;
    beacon->level = tree_own_level();
    beacon->parent = tree_own_parent();
    beacon->cost = tree_cost();
    beacon->query_version = routing_query_version();
    uint8_t table = slot_table_write((uint8_t *)beacon->neighbours);
    beacon->srts_length = (uint8_t)(table + app_srt_write((uint8_t *)beacon->neighbours + table));
    struct wire_neighbour_entry *entry =
        (struct wire_neighbour_entry *)((uint8_t *)beacon->neighbours + beacon->srts_length);
    /* Beacons are not longer for the table of slots. */
    uint8_t left = (uint8_t)(ENTRIES - (table + sizeof *entry - 1) / sizeof *entry),
            place = beacons.turn;
    for (uint8_t i = 0; i < NEIGHBOURS && left > 0; i++) {
        const struct neighbour *n = &neighbours()[place];
        if (++place == NEIGHBOURS)
            place = 0;
        if (n->node == WIRE_NO_NODE)
            continue;
        entry->node = n->node;
        entry->heard = n->heard;
        entry++;
        left--;
    }
    beacons.turn = (uint8_t)(beacons.turn + TURN_STEP) % NEIGHBOURS;
    return (uint8_t)((uint8_t *)entry - (uint8_t *)beacon);
}
