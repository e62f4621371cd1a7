/* Neighbours: the motes in radio range, how well they are heard, and where they stand in the tree.
 */
#ifndef SKERRY_NET_NEIGHBOURS_H
#define SKERRY_NET_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/routing_conf.h"
#include "wire.h"

/* Shares, of 255, that a link is taken to deliver at least: one that was tried in vain is worse
 * than one of which nothing is known but that this mote hears the other badly. From COST_VAIN on a
 * link's cost tells the one from the other. */
#define UNTRIED_LEAST 16
#define TRIED_LEAST 6
#define COST_VAIN (COST_UNIT * 255 / UNTRIED_LEAST + 1)
/* There is no way to the root. */
#define COST_NONE 0xFFFF

/* Rounds for which a child is listened to: until it says that it has sent all; and no more than one
 * behind that, as it may not know that its last frame arrived. */
#define NEIGHBOUR_UNTIL_DONE 127
#define NEIGHBOUR_DONE_ROUNDS 2
/* Of a parent that is heard less than so much, of 255, beacons tell little; and the other direction
 * may be worse still. */
#define NEIGHBOUR_HEARD_WELL 128

struct neighbour {
    uint16_t node; /* WIRE_NO_NODE: free */
    uint16_t parent;
    uint16_t cost; /* its own, to the root */
    uint8_t level;
    uint8_t sequence;      /* of its last beacon */
    uint8_t root_sequence; /* that it told */
    uint8_t heard;         /* share of its beacons that arrive here, 255 = all */
    uint8_t hears;         /* share of ours that arrive there, as it says; 0 unknown */
    uint8_t acknowledged;  /* share of frames to it acknowledged; meaningful once `used` */
    bool used : 1;
    bool once : 1; /* a single beacon of it was heard */
    /* of its beacons that were heard since it last told that it hears this mote */
    uint8_t untold : 6;
    /* of a child: data rounds, this one included, for which it is listened to, and whether it has
     * said that it has sent all it had of an epoch */
    uint8_t rounds : 7;
    bool done : 1;
    uint8_t age; /* control windows since its last beacon */
};

struct neighbour *neighbours(void); /* all NEIGHBOURS entries */
struct neighbour *neighbour_find(uint16_t node);
/* The first that is known (of NULL) or the next one; NULL at the end. */
struct neighbour *neighbour_next(struct neighbour *neighbour);
uint8_t neighbour_count(void);
/* Takes a beacon in; NULL when the table is full of better ones. */
struct neighbour *neighbour_beacon(uint16_t node, const struct wire_beacon *beacon, uint8_t entries,
                                   uint8_t lqi);
/* A mote has sent something to this one as to its parent. */
void neighbour_child(uint16_t node, uint8_t level, uint8_t lqi);
/* A frame to it was acknowledged, or not. */
void neighbour_sent(struct neighbour *neighbour, bool acknowledged);
/* No frame to it is acknowledged any more. */
void neighbour_vain(struct neighbour *neighbour);
/* Expected transmissions of a frame to it, in sixteenths; COST_VAIN and more where it was tried in
 * vain. */
uint16_t neighbour_link_cost(const struct neighbour *neighbour);
/* Expected transmissions to the root by way of it, in sixteenths; less than COST_NONE. */
uint16_t neighbour_path_cost(const struct neighbour *neighbour);
bool neighbour_is_child(const struct neighbour *neighbour);
/* Lately there were children that the table had no place for. */
bool neighbours_crowded(void);
/* A round of data slots; `fresh`: an epoch's rows are to come, and who says nothing is listened to
 * for so many `rounds`. */
void neighbours_round(bool fresh, uint8_t rounds);
/* Children that have sent nothing of the epoch are taken to have sent all. */
void neighbours_silence(void);
/* No known child has more of the epoch to send in later rounds; none is listened to in this one. */
bool neighbours_children_done(void);
bool neighbours_children_silent(void);
/* After each control window: those silent for long are forgotten. */
void neighbours_age(void);
void neighbours_clear(void);

/* Implemented by positions: another mote has a place in the table. */
void neighbour_replaced(uint8_t place);
/* Implemented by tree.c, which decides by the tree: whether a mote is the parent, and what a place
 * in the table is worth that a neighbour has or wants: the least worthy gives way. */
bool neighbour_is_parent(uint16_t node);
uint16_t neighbour_worth(const struct neighbour *neighbour);

#endif
