#include "join/far_roots.h"

#define NOWHERE 255

void far_begin(struct far_place *place)
{
    place->root = place->parent = FAR_NOBODY;
    place->hops = NOWHERE;
}

void far_become_root(struct far_place *place, uint16_t mote)
{
    *place = (struct far_place){mote, FAR_NOBODY, 0};
}

bool far_hear(struct far_place *place, uint16_t mote, uint16_t from, uint16_t root, uint8_t hops)
{
    uint8_t own = (uint8_t)(hops + 1);
    if (hops >= FAR_HOPS_LAST || from == mote || place->root == mote || root == mote)
        return false;
    bool nearer = own < place->hops || (own == place->hops && from < place->parent);
    if (from == place->parent ? own == place->hops && root == place->root : !nearer)
        return false;
    *place = (struct far_place){root, from, own};
    return true;
}

void far_own(struct far_candidate *candidate, uint16_t mote, const struct far_place *in_trees,
             uint8_t trees)
{
    *candidate = (struct far_candidate){mote, NOWHERE};
    for (uint8_t tree = 0; tree < trees; tree++)
        if (in_trees[tree].hops < candidate->apart)
            candidate->apart = in_trees[tree].hops;
    if (candidate->apart == NOWHERE)
        candidate->apart = 0; /* not in any tree: nobody would find it */
}

void far_merge(struct far_candidate *best, const struct far_candidate *other)
{
    if (other->apart > best->apart || (other->apart == best->apart && other->mote < best->mote))
        *best = *other;
}
