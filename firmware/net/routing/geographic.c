#include "net/routing/geographic.h"

#include <stddef.h>
#include <stdlib.h>

#include "drivers/settings.h"
#include "net/routing/routing_conf.h"

/* A turn is so many parts. */
#define TURN 32768U
#define QUARTER 8192

/* Of a vector whose sides are less than 2^15. */
static uint32_t square(int16_t x, int16_t y)
{
    return (uint32_t)((int32_t)x * x) + (uint32_t)((int32_t)y * y);
}

static struct place less(struct place a, struct place b)
{
    return (struct place){(int16_t)(a.x - b.x), (int16_t)(a.y - b.y)};
}

static struct place plus(struct place a, struct place b)
{
    return (struct place){(int16_t)(a.x + b.x), (int16_t)(a.y + b.y)};
}

static uint32_t distance(struct place a, struct place b)
{
    struct place between = less(a, b);
    return square(between.x, between.y);
}

/* Twice the area of a triangle whose sides from one corner are a and b; positive where b lies to
 * the left of a. */
static int32_t cross(struct place a, struct place b)
{
    return (int32_t)a.x * b.y - (int32_t)a.y * b.x;
}

/* A number that grows with a vector's angle from the x axis on, counterclockwise. */
static uint16_t angle(struct place v)
{
    uint16_t sum = (uint16_t)((uint16_t)abs(v.x) + (uint16_t)abs(v.y));
    if (sum == 0)
        return 0;
    int16_t share = (int16_t)((int32_t)v.x * QUARTER / (int32_t)sum);
    return (uint16_t)(v.y >= 0 ? QUARTER - share : 3 * QUARTER + share);
}

static bool offset_of(const struct neighbour *neighbour, struct place *offset)
{
    return place_is_linked(neighbour) && place_offset(neighbour, offset);
}

/* An edge of the Gabriel graph: nobody stands in the circle whose diameter it is, nor on it, as the
 * diagonals of a square would cross. */
static bool is_edge(const struct neighbour *neighbour, struct place edge)
{
    for (const struct neighbour *w = neighbour_next(NULL); w;
         w = neighbour_next((struct neighbour *)(uintptr_t)w)) {
        struct place witness;
        if (w == neighbour || !offset_of(w, &witness))
            continue;
        struct place rest = less(edge, witness);
        bool apart = (witness.x || witness.y) && (rest.x || rest.y);
        if (apart && (int32_t)witness.x * rest.x + (int32_t)witness.y * rest.y >= 0)
            return false;
    }
    return true;
}

/* The edge that comes next counterclockwise about this mote, from a direction on; one in that
 * direction itself is the last. NULL: there is none. */
static const struct neighbour *next_edge(struct place direction, struct place *edge)
{
    const struct neighbour *found = NULL;
    uint16_t least = 0, from = angle(direction);
    for (const struct neighbour *n = neighbour_next(NULL); n;
         n = neighbour_next((struct neighbour *)(uintptr_t)n)) {
        struct place offset;
        if (!offset_of(n, &offset) || !is_edge(n, offset))
            continue;
        uint16_t turn = (uint16_t)((angle(offset) - from + TURN - 1) % TURN + 1);
        if (found && turn >= least)
            continue;
        found = n;
        least = turn;
        *edge = offset;
    }
    return found;
}

/* Where an edge from here crosses the line from where the hole was met to the place, in 65536ths
 * of that; 0: it does not. */
static uint16_t crossing(const struct heading *heading, struct place edge)
{
    struct place line = less(heading->to, heading->entered),
                 here = less(place_own(), heading->entered), there = plus(here, edge);
    int32_t one = cross(line, here), other = cross(line, there);
    if ((one > 0) == (other > 0) || one == 0 || other == 0)
        return 0;
    int32_t all = cross(line, edge), part = cross(here, edge);
    /* line * share lies on the edge: share = cross(here, edge) / cross(line, edge). */
    if (all < 0)
        all = -all, part = -part;
    if (part <= 0 || part >= all)
        return 0;
    while (all > INT16_MAX)
        all >>= 1, part >>= 1;
    return (uint16_t)(((uint32_t)part << 16) / (uint32_t)all);
}

/* Of those nearer to the place the one by which a transmission brings most; NULL: there is none. */
static const struct neighbour *greedy(const struct heading *heading)
{
    const struct neighbour *best = NULL;
    struct place own = place_own();
    uint32_t here = distance(own, heading->to), most = 0;
    for (const struct neighbour *n = neighbour_next(NULL); n;
         n = neighbour_next((struct neighbour *)(uintptr_t)n)) {
        struct place offset;
        if (!offset_of(n, &offset))
            continue;
        uint32_t there = distance(plus(own, offset), heading->to);
        if (there >= here)
            continue;
        uint32_t gain = (here - there) / neighbour_link_cost(n) + 1;
        if (gain > most) {
            most = gain;
            best = n;
        }
    }
    return best;
}

/* Along the face that it goes around, and from one to the next where the line to the place is
 * crossed nearer to that than before. */
static enum heading_outcome along(struct heading *heading, struct place direction, bool begins,
                                  uint16_t *next)
{
    struct place edge;
    const struct neighbour *found = next_edge(direction, &edge);
    for (uint8_t i = 0; found && i < NEIGHBOURS; i++) {
        uint16_t share = crossing(heading, edge);
        if (share <= heading->crossed)
            break;
        heading->crossed = share;
        begins = true;
        found = next_edge(edge, &edge);
    }
    if (!found)
        return begins ? HEADING_ARRIVED : HEADING_LOST;
    uint16_t own = settings()->nodeid;
    if (begins) {
        heading->first = own;
        heading->second = found->node;
    } else if (heading->first == own && heading->second == found->node)
        return distance(place_own(), heading->entered) == 0 ? HEADING_ARRIVED : HEADING_LOST;
    *next = found->node;
    return HEADING_ON;
}

enum heading_outcome geographic_next(struct heading *heading, uint16_t came_from, struct place from,
                                     uint16_t *next)
{
    struct place own = place_own();
    if (heading->perimeter && distance(own, heading->to) < distance(heading->entered, heading->to))
        heading->perimeter = false;
    if (!heading->perimeter) {
        const struct neighbour *best = greedy(heading);
        if (best) {
            *next = best->node;
            return HEADING_ON;
        }
        heading->perimeter = true;
        heading->entered = own;
        heading->crossed = 0;
        if (distance(own, heading->to) == 0)
            return HEADING_ARRIVED;
        return along(heading, less(heading->to, own), true, next);
    }
    if (came_from == WIRE_NO_NODE)
        from = heading->to;
    return along(heading, less(from, own), false, next);
}
