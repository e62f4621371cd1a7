/* A field in parts, one for each part of an index, whose motes are as many as its weight says. */
#ifndef SKERRY_INDEX_PARTITION_H
#define SKERRY_INDEX_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "index/box.h"

/* Position of a mote that stores, in cm. */
struct index_position {
    int32_t x, y;
};

struct index_part {
    struct zone_field area;
    uint16_t motes;
};

/* Cuts the field in as many parts as there are weights, at most INDEX_ATTRIBUTES, each above 0: by
 * lines across the longer side of what is to be cut, each between two motes. Positions, all within
 * the field, are put in another order. False where a part would be without a mote, as there are
 * fewer motes than parts, or too many in one place. */
bool index_partition(const struct zone_field *field, struct index_position *positions,
                     uint16_t motes, const uint8_t *weights, uint8_t parts,
                     struct index_part *found);

#endif
