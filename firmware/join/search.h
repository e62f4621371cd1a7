/* A search for motes by what they have, in several trees (Mihaylov et al. 2010, 2.2, appendix C).
 *
 * In each tree it goes from mote to mote: up to the root, and from each mote that it comes to down
 * to children whose summary may have what is asked for; down is never followed by up. So each mote
 * is come to at most once in a tree, and all that have it are. The way that the search has gone is
 * in it; a mote that hears one of an earlier part of that leaves out what lies between. */
#ifndef SKERRY_JOIN_SEARCH_H
#define SKERRY_JOIN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "join/far_roots.h"
#include "join/summary.h"

#define SEARCH_PATH 20
#define SEARCH_ALL_CHILDREN 0xFFFF

/* As it goes from mote to mote. */
struct search {
    struct summary_ask ask;
    uint16_t path[SEARCH_PATH]; /* from who searches to who sends it */
    uint16_t except;            /* of all children: the one that it came from; FAR_NOBODY: none */
    uint8_t length;             /* at least 1 */
    uint8_t tree;
    bool down;
};

/* What a mote knows of a child in a tree. */
struct search_child {
    uint16_t mote;
    uint8_t tree;
    bool known; /* it has told its summary */
    struct summary summary;
};

/* A mote, for which searches for one attribute come. */
struct search_mote {
    uint16_t mote;
    uint8_t trees;
    uint8_t more; /* a bit for each tree: it has children there that it had no room for */
    bool has;     /* it has a value */
    struct summary_value value;
    struct summary_shape shape;
    const struct far_place *in_trees; /* one for each tree */
    const struct search_child *children;
    const uint16_t *neighbours;
    uint8_t children_count, neighbours_count;
};

enum search_end {
    SEARCH_PASSED,  /* on, as far as it leads on */
    SEARCH_FOUND,   /* … and this mote has what is asked for */
    SEARCH_LONG,    /* it ends: the path has no room for more */
    SEARCH_CIRCLE,  /* it ends: it has been here */
    SEARCH_REFUSED, /* it cannot be */
};

/* A search is to go to a child or the parent; SEARCH_ALL_CHILDREN: to all children in its tree. */
typedef void search_next(uint16_t to, const struct search *search, void *context);

/* What a mote tells its parent in a tree of itself and all below it; as long as it does not know
 * all of that, anything may be there. */
void search_tell(const struct search_mote *mote, uint8_t tree, struct summary *summary);
/* This mote searches, in all trees. */
void search_start(const struct search_mote *mote, const struct summary_ask *ask, search_next *next,
                  void *context);
/* A search has come from a neighbour. `search` becomes what went on; its path then ends with this
 * mote, unless it was refused. */
enum search_end search_hear(const struct search_mote *mote, uint16_t from, struct search *search,
                            search_next *next, void *context);

#endif
