/* Several trees over one network, each next root as far from those that there are as possible, so
 * that whoever two trees have far apart may be near each other in a third one. */
#ifndef SKERRY_JOIN_FAR_ROOTS_H
#define SKERRY_JOIN_FAR_ROOTS_H

#include <stdbool.h>
#include <stdint.h>

#define FAR_TREES 4
#define FAR_NOBODY 0xFFFF
#define FAR_HOPS_LAST 254

/* A mote's place in one tree. */
struct far_place {
    uint16_t root, parent; /* the root's parent: FAR_NOBODY */
    uint8_t hops;          /* to the root; 255: not in the tree */
};

/* Who may be the next root. */
struct far_candidate {
    uint16_t mote;
    uint8_t apart; /* hops to the nearest of the roots that there are */
};

void far_begin(struct far_place *place);
void far_become_root(struct far_place *place, uint16_t mote);
/* A neighbour says so of its place in the tree; whether this mote's has changed. Of equally near
 * ones the lowest number is the parent. A parent that moves away is followed. */
bool far_hear(struct far_place *place, uint16_t mote, uint16_t from, uint16_t root, uint8_t hops);
/* This mote as a candidate, by where it is in all trees so far. */
void far_own(struct far_candidate *candidate, uint16_t mote, const struct far_place *in_trees,
             uint8_t trees);
/* The farther of two, of equals that of the lower number: merged up the first tree, the best. */
void far_merge(struct far_candidate *best, const struct far_candidate *other);

#endif
