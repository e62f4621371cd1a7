/* Where neighbours stand, as far as they were asked: for ways that lead to places. A decimetre is
 * the unit; all places lie within WIRE_PLACE_MAXIMUM of the origin along each axis. */
#ifndef SKERRY_NET_POSITIONS_H
#define SKERRY_NET_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/neighbours.h"
#include "wire.h"

struct place {
    int16_t x, y;
};

/* Of settings, in cm; what lies beyond is taken for the edge. */
struct place place_of(int32_t x, int32_t y);
/* Where this mote stands. */
struct place place_own(void);
bool place_possible(int16_t x, int16_t y);
/* A neighbour has told where it stands; nothing where it is not known as one. */
void place_told(uint16_t node, struct place place);
/* It has not answered: nothing goes by it until it tells where it stands, or all are asked again.
 */
void place_avoid(uint16_t node);
/* … which those are that nothing goes by. */
void places_not_avoided(void);
/* Where a neighbour stands, less where this mote does: false: it has not told, or it stands too far
 * away to be of use. */
bool place_offset(const struct neighbour *neighbour, struct place *offset);
/* The links that ways to places go by: neighbours that hear this mote well enough. */
bool place_is_linked(const struct neighbour *neighbour);
/* Writes the numbers of linked neighbours that have not told, at most WIRE_POSITIONS_ASKED; how
 * many. */
uint8_t places_unknown(uint16_t *nodes);
/* This mote stands elsewhere: nothing is known any more. */
void places_forget(void);

#endif
