#include "net/routing/positions.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "net/routing/routing_conf.h"

/* Links of so many transmissions at most are gone by. */
#define LINK_MOST (4 * COST_UNIT)
/* Offsets are kept in 12 bits: a neighbour that stands further away is not of use. */
#define OFFSET_MOST 2047
#define UNKNOWN (-2048)

/* Of x and y the lower bytes, and of both the upper four bits. */
static struct packed {
    uint8_t x, y, upper;
} offsets[NEIGHBOURS];

#define EDGE ((int16_t)WIRE_PLACE_MAXIMUM)

static int16_t limited(int32_t cm)
{
    int32_t dm = cm / 10;
    return dm > EDGE ? EDGE : dm < -EDGE ? (int16_t)-EDGE : (int16_t)dm;
}

struct place place_of(int32_t x, int32_t y) { return (struct place){limited(x), limited(y)}; }

struct place place_own(void) { return place_of(settings()->x, settings()->y); }

static bool within(int16_t v) { return v <= EDGE && v >= -EDGE; }

bool place_possible(int16_t x, int16_t y) { return within(x) && within(y); }

static bool near(int16_t v) { return v >= -OFFSET_MOST && v <= OFFSET_MOST; }

static void keep(struct packed *entry, int16_t x, int16_t y)
{
    entry->x = (uint8_t)x;
    entry->y = (uint8_t)y;
    entry->upper = (uint8_t)(((x >> 8) & 15) | (y >> 8 & 15) << 4);
}

void place_told(uint16_t node, struct place place)
{
    const struct neighbour *neighbour = neighbour_find(node);
    if (!neighbour || node == WIRE_NO_NODE)
        return;
    struct place own = place_own();
    int16_t x = (int16_t)(place.x - own.x), y = (int16_t)(place.y - own.y);
    if (!near(x) || !near(y))
        x = y = OFFSET_MOST; /* Known, and of no use. */
    keep(&offsets[neighbour - neighbours()], x, y);
}

void place_avoid(uint16_t node)
{
    const struct neighbour *neighbour = neighbour_find(node);
    if (neighbour)
        keep(&offsets[neighbour - neighbours()], OFFSET_MOST, OFFSET_MOST);
}

/* A number of 12 bits. */
static int16_t extended(uint8_t low, uint8_t high)
{
    uint16_t bits = (uint16_t)(low | high << 8);
    return (int16_t)(bits & 0x800 ? (int16_t)bits - 0x1000 : (int16_t)bits);
}

static bool is_known(const struct neighbour *neighbour)
{
    const struct packed *entry = &offsets[neighbour - neighbours()];
    return extended(entry->x, entry->upper & 15) != UNKNOWN;
}

bool place_offset(const struct neighbour *neighbour, struct place *offset)
{
    const struct packed *entry = &offsets[neighbour - neighbours()];
    offset->x = extended(entry->x, entry->upper & 15);
    offset->y = extended(entry->y, entry->upper >> 4);
    return near(offset->x) && near(offset->y) &&
           !(offset->x == OFFSET_MOST && offset->y == OFFSET_MOST);
}

bool place_is_linked(const struct neighbour *neighbour)
{
    return neighbour_link_cost(neighbour) <= LINK_MOST;
}

uint8_t places_unknown(uint16_t *nodes)
{
    uint8_t count = 0;
    for (struct neighbour *n = neighbour_next(NULL); n && count < WIRE_POSITIONS_ASKED;
         n = neighbour_next(n))
        if (place_is_linked(n) && !is_known(n))
            nodes[count++] = n->node;
    return count;
}

static bool is_avoided(const struct packed *entry)
{
    return extended(entry->x, entry->upper & 15) == OFFSET_MOST &&
           extended(entry->y, entry->upper >> 4) == OFFSET_MOST;
}

void places_not_avoided(void)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (is_avoided(&offsets[i]))
            neighbour_replaced(i);
}

void neighbour_replaced(uint8_t place) { keep(&offsets[place], UNKNOWN, UNKNOWN); }

void places_forget(void)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        neighbour_replaced(i);
}
