/* Greedy forwarding to a place, and around holes in the field by the faces of a planar graph
 * (Karp and Kung 2000: GPSR). The graph is Gabriel's of the links that are known here: each mote
 * makes its own part of it. */
#ifndef SKERRY_NET_GEOGRAPHIC_H
#define SKERRY_NET_GEOGRAPHIC_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/positions.h"

/* How a way to a place goes, from mote to mote. */
struct heading {
    struct place to;
    /* Around a hole: */
    struct place entered;   /* where it met the hole */
    uint16_t crossed;       /* share of the line from there to the place, in 65536ths, at which it
                               has crossed it last */
    uint16_t first, second; /* first edge of the face that it goes around */
    bool perimeter;         /* … it does */
};

enum heading_outcome {
    HEADING_ON,      /* by the neighbour that was found */
    HEADING_ARRIVED, /* nobody stands nearer */
    HEADING_LOST,    /* there is no way on */
};

/* Where to from here; `came_from`: the neighbour by whom it came and `from` where that stands;
 * WIRE_NO_NODE: it begins here. Brings the heading up to date. */
enum heading_outcome geographic_next(struct heading *heading, uint16_t came_from, struct place from,
                                     uint16_t *next);

#endif
