/* Queries among the codes of zones: what is asked of an index is a box, a range for each attribute.
 */
#ifndef SKERRY_INDEX_BOX_H
#define SKERRY_INDEX_BOX_H

#include <stdbool.h>
#include <stdint.h>

#include "index/point.h"
#include "index/zone.h"

/* What is asked of each attribute: points from low to high. */
struct index_box {
    uint8_t attributes;
    uint16_t low[INDEX_ATTRIBUTES], high[INDEX_ATTRIBUTES];
};

/* All points of all attributes, NULL among them. */
void index_box_all(struct index_box *box, uint8_t attributes);
/* Only values from low to high of one attribute, and no NULL; false where no value is asked for. */
bool index_box_limit(struct index_box *box, uint8_t attribute, const struct index_range *range,
                     int32_t low, int32_t high);

/* Whether the mote may store what the box asks for. */
bool index_asks_owner(const struct index_box *box, const struct zone_owned *owned);

enum index_cover { INDEX_NONE, INDEX_SOME, INDEX_ALL };
/* How much of a zone the box asks for. */
enum index_cover index_covers(const struct index_box *box, const struct zone *zone);

/* All zones that a box asks, each whole or of `depth` halvings, in the order of codes. */
struct index_walk {
    const struct index_box *box;
    struct zone next;
    uint8_t depth;
    bool done;
};
void index_walk_begin(struct index_walk *walk, const struct index_box *box, uint8_t depth);
bool index_walk_next(struct index_walk *walk, struct zone *zone);

#endif
