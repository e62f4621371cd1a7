#include "net/tree.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/clocksync.h"
#include "net/dissemination.h"
#include "net/neighbours.h"
#include "query/query.h"

/* A new parent must be better by this much: 1.5 transmissions (hysteresis against flapping). */
#define SWITCH_GAIN 24
/* A parent is dead after so many control windows without a beacon; after fewer when slots pass without an acknowledgement, too.
 * Such slots alone mean a crowded slot more often than a dead parent, up to a limit. */
#define DEAD_WINDOWS 5
#define DOUBTFUL_WINDOWS 2
#define DOUBTFUL_SLOTS 2
#define DEAD_SLOTS 10
/* After losing its parent a mote ignores lower levels' offers for so many windows, so that its own children find out. */
#define ORPHAN_WINDOWS 2
#define COST_NONE 0xFFFF
#define BEACON_ENTRIES 12

static uint16_t parent = WIRE_NO_NODE;
static uint8_t level = WIRE_NO_LEVEL;
static uint16_t root, session;
static bool session_known;
static uint8_t silent_slots, orphaned;
static uint8_t beacon_sequence, beacon_turn;

void tree_init(void)
{
    neighbours_clear();
    if (!settings()->root) return;
    level = 0;
    root = settings()->nodeid;
    session = settings()->boots;
    session_known = true;
}

bool tree_is_root(void) { return settings()->root; }
bool tree_joined(void) { return level != WIRE_NO_LEVEL; }
uint8_t tree_own_level(void) { return level; }
uint16_t tree_own_parent(void) { return parent; }

bool tree_parent(uint16_t *node)
{
    *node = parent;
    return parent != WIRE_NO_NODE;
}

bool tree_level(uint8_t *own)
{
    *own = level;
    return tree_joined();
}

static uint16_t path_cost(const struct neighbour *neighbour)
{
    uint32_t cost = (uint32_t)neighbour->cost + neighbour_link_cost(neighbour);
    return cost < COST_NONE ? (uint16_t)cost : COST_NONE - 1;
}

static uint16_t own_cost(void)
{
    const struct neighbour *up = neighbour_find(parent);
    if (tree_is_root()) return 0;
    return parent != WIRE_NO_NODE && up ? path_cost(up) : COST_NONE;
}

/* Only who stands strictly closer to the root may become the parent of a mote in the tree: no loops. */
static bool eligible(const struct neighbour *n)
{
    if (n->node == WIRE_NO_NODE || n->level >= WIRE_NO_LEVEL - 1 || n->cost == COST_NONE || n->parent == settings()->nodeid) return false;
    if (n->age > DEAD_WINDOWS || n->heard < 64) return false;
    return !tree_joined() || n->level < level;
}

static struct neighbour *best(uint16_t except)
{
    struct neighbour *choice = NULL;
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        struct neighbour *n = &neighbours()[i];
        if (n->node != except && eligible(n) && (!choice || path_cost(n) < path_cost(choice))) choice = n;
    }
    return choice;
}

static void adopt(const struct neighbour *up)
{
    bool joined = tree_joined(), changed = parent != up->node;
    parent = up->node;
    level = (uint8_t)(up->level + 1);
    silent_slots = 0;
    if (!joined) net_joined();
    else if (changed) net_parent_changed();
}

static void leave(void)
{
    parent = WIRE_NO_NODE;
    level = WIRE_NO_LEVEL;
    orphaned = ORPHAN_WINDOWS;
    net_left();
}

static void lose_parent(void)
{
    struct neighbour *lost = neighbour_find(parent);
    if (lost) lost->node = WIRE_NO_NODE;
    struct neighbour *next = best(WIRE_NO_NODE);
    if (next) adopt(next);
    else leave();
}

static void restart(const struct wire_beacon *beacon)
{
    root = beacon->root;
    session = beacon->session;
    session_known = true;
    clocksync_lose();
    dissemination_forget();
    neighbours_clear();
    if (tree_joined()) leave();
    orphaned = 0;
}

static void choose(void)
{
    if (tree_is_root() || orphaned) return;
    struct neighbour *choice = best(WIRE_NO_NODE), *up = parent == WIRE_NO_NODE ? NULL : neighbour_find(parent);
    if (!choice) return;
    if (!up || path_cost(choice) + SWITCH_GAIN < path_cost(up)) adopt(choice);
}

void tree_beacon(const struct radio_frame *frame, uint16_t source, const struct wire_beacon *beacon, uint8_t length)
{
    uint8_t entries = (uint8_t)((length - sizeof *beacon) / sizeof(struct wire_neighbour_entry));
    if (beacon->ticks >= WIRE_TICKS_PER_SECOND || source == settings()->nodeid) return;
    if (!tree_is_root() && beacon->level != WIRE_NO_LEVEL && (!session_known || beacon->root != root || (int16_t)(beacon->session - session) > 0))
        restart(beacon);
    if (beacon->root != root || beacon->session != session) return;
    struct neighbour *neighbour = neighbour_beacon(source, beacon, entries, frame->lqi);
    if (!neighbour || tree_is_root()) return;
    if (source == parent) {
        if (beacon->level == WIRE_NO_LEVEL || beacon->parent == settings()->nodeid) {
            lose_parent();
            return;
        }
        level = (uint8_t)(beacon->level + 1);
    }
    if (beacon->level != WIRE_NO_LEVEL && (source == parent || !time_known())) {
        struct net_time heard = {beacon->seconds, beacon->ticks};
        if (clocksync_stamp(heard, frame->sfd)) query_time_changed();
    }
    choose();
}

uint8_t tree_write_beacon(struct wire_beacon *beacon)
{
    *beacon = (struct wire_beacon){.root = root, .session = session, .sequence = beacon_sequence++, .level = level, .parent = parent,
                                   .cost = own_cost(), .time_hops = level, .query_version = dissemination_version()};
    uint8_t count = 0;
    for (uint8_t i = 0; i < NEIGHBOURS && count < BEACON_ENTRIES; i++) {
        const struct neighbour *n = &neighbours()[(i + beacon_turn) % NEIGHBOURS];
        if (n->node == WIRE_NO_NODE) continue;
        beacon->neighbours[count].node = n->node;
        beacon->neighbours[count++].heard = n->heard;
    }
    beacon_turn = (uint8_t)(beacon_turn + 5) % NEIGHBOURS;
    return (uint8_t)(sizeof *beacon + count * sizeof(struct wire_neighbour_entry));
}

void tree_sent(bool acknowledged)
{
    struct neighbour *up = parent == WIRE_NO_NODE ? NULL : neighbour_find(parent);
    if (!up) return;
    neighbour_sent(up, acknowledged);
    silent_slots = acknowledged ? 0 : (uint8_t)(silent_slots + 1);
    if (silent_slots >= DEAD_SLOTS || (silent_slots >= DOUBTFUL_SLOTS && up->age >= DOUBTFUL_WINDOWS)) lose_parent();
}

void tree_age(void)
{
    neighbours_age();
    if (tree_is_root()) return;
    if (orphaned) orphaned--;
    const struct neighbour *up = parent == WIRE_NO_NODE ? NULL : neighbour_find(parent);
    if (tree_joined() && (!up || up->age > DEAD_WINDOWS)) lose_parent();
    else choose();
}
