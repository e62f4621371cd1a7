/* Zones of a field: a rectangle halved along x and y in turn. A zone's code has a bit for each
 * halving, the first in the highest one: 1 is right of the first line, above the second.
 *
 * A mote has the code of its position. What is stored under a code is the mote's whose own code is
 * nearest by XOR: on the way down, where one half of a zone holds nobody, the other half has what
 * is stored in it. So every code has one owner whatever motes there are. */
#ifndef SKERRY_INDEX_ZONE_H
#define SKERRY_INDEX_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "index/halving.h"

/* All codes that begin as `code` does; its other bits are 0. */
struct zone {
    uint32_t code;
    uint8_t length;
};

/* What one mote owns: codes that are its own where `any` has a 0. */
struct zone_owned {
    uint32_t code, any;
};

/* Code of a position; one outside has that of the field's edge. */
uint32_t zone_code(const struct zone_field *field, int32_t x, int32_t y);
/* Rectangle of a zone. */
void zone_area(const struct zone_field *field, const struct zone *zone, struct zone_field *area);
/* A mote that knows of no other one owns all. */
void zone_own_all(struct zone_owned *owned, uint32_t code);
/* There is another mote with this code; false where it is the same as the own one. */
bool zone_leave(struct zone_owned *owned, uint32_t other);
/* Whether what is stored under the code is this mote's. */
static inline bool zone_owns(const struct zone_owned *owned, uint32_t code)
{
    return ((owned->code ^ code) & ~owned->any) == 0;
}
/* The zone that the mote itself is in, and nobody else. */
struct zone zone_of_owner(const struct zone_owned *owned);

#endif
