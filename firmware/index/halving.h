/* How a field is halved: along x, then along y, and so on. All that a mote needs which stores
 * nothing itself. */
#ifndef SKERRY_INDEX_HALVING_H
#define SKERRY_INDEX_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* Halvings at most. */
#define ZONE_BITS 32

/* From left to right, from bottom to top, without the last of each; in the unit of positions. */
struct zone_field {
    int32_t left, bottom, right, top;
};

/* Where an area that has been halved `bit` times is halved next: what lies there, along x or y, is
 * of the upper half, … */
int32_t zone_middle(const struct zone_field *area, uint8_t bit);
/* … and what is left where that half, or the other one, is gone on with. */
void zone_halve(struct zone_field *area, uint8_t bit, bool upper);
/* The first `length` bits of 32. */
static inline uint32_t zone_prefix(uint8_t length)
{
    return length == 0 ? 0 : UINT32_MAX << (ZONE_BITS - length);
}

#endif
