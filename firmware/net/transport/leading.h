/* Ways to places, or by motes that are named, as they are opened: LEADS at a time at a mote.
 * Neighbours are asked where they stand; what the motes behind need goes with the WAY_OPEN, and
 * only the source keeps where the way leads. */
#ifndef SKERRY_NET_LEADING_H
#define SKERRY_NET_LEADING_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/positions.h"
#include "net/transport/way.h"
#include "wire.h"

/* How a way is to go that does not go by the tree: to a place or, where that is NULL, by a path
 * vector (WIRE_WAY_VECTOR), from this mote on. */
struct way_route {
    const struct place *place;
    const uint8_t *vector;
    uint8_t length; /* of the vector */
};

/* Whether one more way may begin here that goes so. */
bool leading_room(const struct way_route *route);
/* A way begins here. False: too many do. */
bool leading_begin(struct way *way, const struct way_route *route);
/* Whether it goes so; NULL: by the tree. */
bool leading_goes(const struct way *way, const struct way_route *route);
/* Whether there is room for what leads it on, a way that another mote opens or, of NULL, that is
 * not known yet. */
bool leading_takes(const struct way *way);
/* What a WAY_OPEN of a neighbour says of the place is as it may be … */
bool leading_possible(const struct wire_way_place *place);
/* … has been taken over already, of the same hop: its sender has missed the acknowledgement … */
bool leading_knows(const struct way *way, const struct wire_way_place *place);
/* … and is taken over, where there is room; `perimeter`: the flag of that name. */
void leading_take(struct way *way, uint16_t from, const struct wire_way_place *place,
                  bool perimeter);
/* A path vector is taken over, where there is room. */
void leading_take_vector(struct way *way, const uint8_t *vector, uint8_t length);
/* Whether a way that begins here waits while those of others are led. */
bool leading_waits(const struct way *way);
/* Nothing is known of it any more: it is opened anew, from its source on, or is another one. */
void leading_again(const struct way *way);
/* A control window begins. */
void leading_window(void);

/* What goes behind a WAY_OPEN. */
struct leading_tail {
    uint8_t flags, length;
    union {
        struct wire_way_place place;
        uint8_t vector[WIRE_VECTOR_MAXIMUM];
    };
};

enum leading_outcome {
    LEADING_ASKS,    /* neighbours, where they stand: a frame has gone */
    LEADING_WAITS,   /* for the next window, as not all have answered */
    LEADING_ON,      /* by the mote that is the way's next now, which needs the tail */
    LEADING_ARRIVED, /* nobody stands nearer than this mote */
    LEADING_LOST,    /* there is no way on */
    LEADING_BUSY,    /* with other ways, or what it needs is not known any more */
};
enum leading_outcome leading_next(struct way *way, struct leading_tail *tail);

/* ---- where this mote stands ---- */
/* POSITION from a neighbour. False: malformed. */
bool leading_position_heard(uint16_t from, const uint8_t *body, uint8_t length);
/* It stands elsewhere: neighbours that know where it stood hear of it. */
void leading_moved(void);
bool leading_tells(void);
bool leading_tell(void);

#endif
