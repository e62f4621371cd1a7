/* Who hears whom: the directed links of a world, and their bursts. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Place of the link to a mote, or link_count. */
static uint32_t find(const struct mote *from, uint32_t to)
{
    uint32_t i = 0;
    while (i < from->link_count && from->links[i].to != to)
        i++;
    return i;
}

const struct link *link_of(const struct mote *from, uint32_t to)
{
    uint32_t i = find(from, to);
    return i < from->link_count ? &from->links[i] : NULL;
}

void links_free(struct mote *mote)
{
    for (uint32_t i = 0; i < mote->link_count; i++)
        free(mote->links[i].bursts);
    free(mote->links);
}

int skerry_link_set(skerry_world *world, uint32_t from, uint32_t to, double gain_db, double prr)
{
    struct mote *sender = world_mote(world, from);
    if (!sender || !world_mote(world, to))
        return -1;
    if (from == to)
        return world_fail("link from mote index %u to itself", from);
    uint32_t i = find(sender, to);
    if (gain_db <= -1000) {
        if (i < sender->link_count) {
            free(sender->links[i].bursts);
            memmove(&sender->links[i], &sender->links[i + 1],
                    (--sender->link_count - i) * sizeof *sender->links);
        }
        return 0;
    }
    if (i == sender->link_count) {
        if (sender->link_count == sender->link_capacity) {
            sender->link_capacity = sender->link_capacity ? 2 * sender->link_capacity : 8;
            sender->links = realloc(sender->links, sender->link_capacity * sizeof *sender->links);
            if (!sender->links)
                abort();
        }
        sender->links[sender->link_count++].bursts = NULL;
    }
    sender->links[i] = (struct link){to, gain_db, prr, sender->links[i].bursts};
    return 0;
}

int skerry_link_bursts(skerry_world *world, uint32_t from, uint32_t to, double good_s, double bad_s,
                       double reception, uint64_t seed)
{
    struct mote *sender = world_mote(world, from);
    if (!sender || !world_mote(world, to))
        return -1;
    uint32_t i = find(sender, to);
    if (i == sender->link_count)
        return world_fail("bursts from mote index %u to %u: there is no such link", from, to);
    struct link *link = &sender->links[i];
    if (bad_s <= 0) {
        free(link->bursts);
        link->bursts = NULL;
        return 0;
    }
    if (!(good_s > 0) || !(reception >= 0 && reception <= 1))
        return world_fail(
            "bursts from mote index %u to %u: good_s is to be more than 0, reception 0..1", from,
            to);
    if (!link->bursts && !(link->bursts = malloc(sizeof *link->bursts)))
        return world_fail("out of memory");
    link->bursts->reception = reception;
    chain_begin(&link->bursts->bad, bad_s, good_s, seed);
    return 0;
}
