#include "net/routing/neighbours.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"

#define FORGET_AFTER 30
/* Weight of the newest observation, 1/8: a link is judged by about its last ten frames. */
#define SHIFT 3
/* Beacons that were not heard count up to these numbers: all that there can have been since the
 * last, or few where the neighbour must have begun to count anew. */
#define MISSED_MOST 16
#define MISSED_ODD 4
/* A link's first beacon is heard as well as any; only the second tells how many are not. Of 255, so
 * much is taken to arrive until then, or as much as the neighbour says that it hears of this mote.
 */
#define UNKNOWN_HEARD 80
/* A neighbour that hears this mote names it in one of so many beacons, nearly always. */
#define UNTOLD_MANY 4

/* Windows for which a child that found no place counts. */
#define CROWDED_WINDOWS 30

static struct {
    struct neighbour entries[NEIGHBOURS];
    uint8_t crowded; /* control windows for which a child that found no place still counts */
} known;

struct neighbour *neighbours(void) { return known.entries; }

void neighbours_clear(void)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        known.entries[i].node = WIRE_NO_NODE;
    known.crowded = 0;
}

struct neighbour *neighbour_next(struct neighbour *neighbour)
{
    neighbour = neighbour ? neighbour + 1 : known.entries;
    while (neighbour < known.entries + NEIGHBOURS && neighbour->node == WIRE_NO_NODE)
        neighbour++;
    return neighbour < known.entries + NEIGHBOURS ? neighbour : NULL;
}

bool neighbours_crowded(void) { return known.crowded > 0; }

struct neighbour *neighbour_find(uint16_t node)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (known.entries[i].node == node)
            return &known.entries[i];
    return NULL;
}

uint8_t neighbour_count(void)
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (known.entries[i].node != WIRE_NO_NODE)
            count++;
    return count;
}

bool neighbour_is_child(const struct neighbour *neighbour)
{
    return neighbour->node != WIRE_NO_NODE && neighbour->parent == settings()->nodeid;
}

static uint8_t blend(uint8_t old, bool success)
{
    return (uint8_t)(old - (old >> SHIFT) + (success ? 255 >> SHIFT : 0));
}

/* The least worthy gives way, if the new one is worth more. */
static struct neighbour *slot_for(uint16_t node, uint16_t parent, uint8_t level, uint8_t lqi)
{
    struct neighbour fresh = {.node = node,
                              .parent = parent,
                              .level = level,
                              .cost = UINT16_MAX,
                              .heard = lqi,
                              .rounds = NEIGHBOUR_UNTIL_DONE};
    struct neighbour *slot = neighbour_find(node);
    if (slot)
        return slot;
    slot = neighbour_find(WIRE_NO_NODE);
    if (!slot) {
        slot = &known.entries[0];
        for (uint8_t i = 1; i < NEIGHBOURS; i++)
            if (neighbour_worth(&known.entries[i]) < neighbour_worth(slot))
                slot = &known.entries[i];
        bool gives_way = neighbour_worth(slot) < neighbour_worth(&fresh);
        if (neighbour_is_child(gives_way ? slot : &fresh))
            known.crowded = CROWDED_WINDOWS;
        if (!gives_way)
            return NULL;
    }
    *slot = fresh;
    app_srt_forget((uint8_t)(slot - known.entries));
    neighbour_replaced((uint8_t)(slot - known.entries));
    return slot;
}

/* The neighbour does not hear this mote: beacon after beacon, each with half of its neighbours, has
 * named others. One that is heard well may just have too many to name all. */
static bool deaf(const struct neighbour *neighbour)
{
    if (neighbour->hears || neighbour->heard >= NEIGHBOUR_HEARD_WELL)
        return false;
    return neighbour->untold >= UNTOLD_MANY;
}

/* What the other hears of this mote: what it has told, or as much as is heard of it, unless that is
 * too much to hope for. */
static uint8_t hears(const struct neighbour *neighbour)
{
    return neighbour->hears  ? neighbour->hears
           : deaf(neighbour) ? neighbour->heard / 4
                             : neighbour->heard;
}

/* Share of frames that would be acknowledged, by what beacons say of both directions. */
static uint8_t estimate(const struct neighbour *neighbour)
{
    uint16_t both = (uint16_t)(neighbour->heard * hears(neighbour));
    /* Of 255, rounded down, as a division would: that takes two hundred cycles, and each beacon
     * asks for all neighbours'. */
    return (uint8_t)((uint16_t)(both + 1 + (both >> 8)) >> 8);
}

struct neighbour *neighbour_beacon(uint16_t node, const struct wire_beacon *beacon, uint8_t entries,
                                   uint8_t lqi)
{
    bool fresh = !neighbour_find(node);
    struct neighbour *neighbour = slot_for(node, beacon->parent, beacon->level, lqi);
    if (!neighbour)
        return NULL;
    if (!fresh) {
        if (neighbour->once)
            neighbour->heard = lqi;
        uint8_t missed = (uint8_t)(beacon->sequence - neighbour->sequence - 1);
        uint8_t most = missed <= neighbour->age ? MISSED_MOST : MISSED_ODD;
        for (uint8_t i = 0; i < missed && i < most; i++)
            neighbour->heard = blend(neighbour->heard, false);
        neighbour->heard = blend(neighbour->heard, true);
    }
    neighbour->sequence = beacon->sequence;
    neighbour->root_sequence = beacon->root_sequence;
    neighbour->level = beacon->level;
    neighbour->cost = beacon->cost;
    neighbour->parent = beacon->parent;
    neighbour->age = 0;
    /* Failures are forgotten with the beacons heard since: what was in the way may be gone. */
    if (neighbour->used && !neighbour_is_parent(node) &&
        neighbour->acknowledged < estimate(neighbour))
        neighbour->acknowledged++;
    const struct wire_neighbour_entry *entry =
        (const struct wire_neighbour_entry *)((const uint8_t *)beacon->neighbours +
                                              beacon->srts_length);
    if (neighbour->untold < UNTOLD_MANY)
        neighbour->untold++;
    for (uint8_t i = 0; i < entries; i++)
        if (entry[i].node == settings()->nodeid) {
            neighbour->hears = entry[i].heard;
            neighbour->untold = 0;
        }
    uint8_t likely = neighbour->hears ? neighbour->hears : UNKNOWN_HEARD;
    if (fresh && neighbour->heard > likely)
        neighbour->heard = likely;
    neighbour->once = fresh;
    return neighbour;
}

void neighbour_child(uint16_t node, uint8_t level, uint8_t lqi)
{
    struct neighbour *child = slot_for(node, settings()->nodeid, level, lqi);
    if (!child)
        return;
    child->parent = settings()->nodeid;
    child->age = 0;
    /* What it has may have been for another parent. */
    child->rounds = NEIGHBOUR_UNTIL_DONE;
    child->done = false;
}

/* All children are listened to for so many rounds at most, but for those that are done where they
 * count for nothing. */
static bool children_end(uint8_t rounds, bool but_done)
{
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n))
        if (neighbour_is_child(n) && n->rounds > rounds && !(but_done && n->done))
            return false;
    return true;
}

bool neighbours_children_done(void) { return children_end(1, true); }
bool neighbours_children_silent(void) { return children_end(0, false); }

void neighbours_round(bool fresh, uint8_t rounds)
{
    for (struct neighbour *n = known.entries; n < known.entries + NEIGHBOURS; n++)
        if (fresh) {
            n->rounds = rounds & 127U;
            n->done = false;
        } else if (n->rounds > 0 && n->rounds < NEIGHBOUR_UNTIL_DONE)
            n->rounds--;
}

void neighbours_silence(void)
{
    for (struct neighbour *n = known.entries; n < known.entries + NEIGHBOURS; n++)
        if (!n->done)
            n->rounds = 0;
}

void neighbour_sent(struct neighbour *neighbour, bool acknowledged)
{
    if (!neighbour->used)
        neighbour->acknowledged = estimate(neighbour);
    neighbour->used = true;
    neighbour->acknowledged = blend(neighbour->acknowledged, acknowledged);
}

void neighbour_vain(struct neighbour *neighbour)
{
    neighbour->used = true;
    neighbour->acknowledged = 0;
}

uint16_t neighbour_link_cost(const struct neighbour *neighbour)
{
    uint8_t share = neighbour->used ? neighbour->acknowledged : estimate(neighbour),
            least = neighbour->used || deaf(neighbour) ? TRIED_LEAST : UNTRIED_LEAST;
    if (share < least)
        share = least;
    return (uint16_t)(COST_UNIT * 255U / share);
}

uint16_t neighbour_path_cost(const struct neighbour *neighbour)
{
    uint16_t link = neighbour_link_cost(neighbour), cost = (uint16_t)(neighbour->cost + link);
    return cost < link || cost == COST_NONE ? COST_NONE - 1 : cost;
}

void neighbours_age(void)
{
    if (known.crowded)
        known.crowded--;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n))
        if (++n->age > FORGET_AFTER)
            n->node = WIRE_NO_NODE;
}
