#include "net/neighbours.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"

#define FORGET_AFTER 10
/* Weight of the newest observation, 1/8: a link is judged by about its last ten frames. */
#define SHIFT 3

static struct neighbour table[NEIGHBOURS];

struct neighbour *neighbours(void) { return table; }

void neighbours_clear(void)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++) table[i].node = WIRE_NO_NODE;
}

struct neighbour *neighbour_find(uint16_t node)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (table[i].node == node) return &table[i];
    return NULL;
}

uint8_t neighbour_count(void)
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < NEIGHBOURS; i++) count += table[i].node != WIRE_NO_NODE;
    return count;
}

static uint8_t blend(uint8_t old, bool success)
{
    return (uint8_t)(old - (old >> SHIFT) + (success ? 255 >> SHIFT : 0));
}

/* The worst heard gives way, if the new one is heard better. */
static struct neighbour *slot_for(uint16_t node, uint8_t lqi)
{
    struct neighbour *slot = neighbour_find(node);
    if (slot) return slot;
    slot = neighbour_find(WIRE_NO_NODE);
    if (!slot) {
        slot = &table[0];
        for (uint8_t i = 1; i < NEIGHBOURS; i++)
            if (table[i].heard < slot->heard) slot = &table[i];
        if (slot->heard >= lqi || slot->used) return NULL;
    }
    *slot = (struct neighbour){.node = node, .heard = lqi};
    return slot;
}

struct neighbour *neighbour_beacon(uint16_t node, const struct wire_beacon *beacon, uint8_t entries, uint8_t lqi)
{
    bool fresh = !neighbour_find(node);
    struct neighbour *neighbour = slot_for(node, lqi);
    if (!neighbour) return NULL;
    if (!fresh) {
        uint8_t missed = (uint8_t)(beacon->sequence - neighbour->sequence - 1);
        for (uint8_t i = 0; i < missed && i < 4; i++) neighbour->heard = blend(neighbour->heard, false);
        neighbour->heard = blend(neighbour->heard, true);
    }
    neighbour->sequence = beacon->sequence;
    neighbour->level = beacon->level;
    neighbour->cost = beacon->cost;
    neighbour->parent = beacon->parent;
    neighbour->age = 0;
    for (uint8_t i = 0; i < entries; i++)
        if (beacon->neighbours[i].node == settings()->nodeid) neighbour->hears = beacon->neighbours[i].heard;
    return neighbour;
}

void neighbour_sent(struct neighbour *neighbour, bool acknowledged)
{
    if (!neighbour->used) neighbour->acknowledged = 224;
    neighbour->used = true;
    neighbour->acknowledged = blend(neighbour->acknowledged, acknowledged);
}

uint16_t neighbour_link_cost(const struct neighbour *neighbour)
{
    uint16_t share = (uint16_t)((uint16_t)neighbour->heard * (neighbour->hears ? neighbour->hears : neighbour->heard) / 255);
    if (neighbour->used) share = neighbour->acknowledged;
    if (share < 16) share = 16;
    return (uint16_t)(COST_UNIT * 255 / share);
}

void neighbours_age(void)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (table[i].node != WIRE_NO_NODE && ++table[i].age > FORGET_AFTER) table[i].node = WIRE_NO_NODE;
}
