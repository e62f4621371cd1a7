#include "net/routing/parent_loss.h"

#include <stddef.h>
#include <stdint.h>

#include "net/routing/neighbours.h"
#include "net/routing/parent_choice.h"
#include "net/routing/routing_conf.h"
#include "net/routing/routing_ops.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"

/* A parent that has not been heard in so many windows is doubtful: it is given up after
 * DOUBTFUL_SLOTS slots without an acknowledgement. */
#define DOUBTFUL_WINDOWS 4
#define DOUBTFUL_SLOTS 4
/* Such slots alone mean a crowded slot more often than a dead parent, up to a limit … */
#define DEAD_SLOTS 40
/* … which is lower for a parent that is not heard well: two epochs' rounds … */
#define POOR_SLOTS 18
/* … and higher while a frame is doubtful: a parent that is heard and has no room will take it, and
 * know it if it had it. */
#define DEAD_SLOTS_DOUBTFUL 80
/* After so many slots, or so many windows, the parent is asked whether it is there by being told
 * again whose parent it is. */
#define ASK_SLOTS 4
#define ASK_WINDOWS 8
/* A parent that is heard but does not hear is left after so many JOINs in vain, each of several
 * tries. */
#define VAIN_JOINS 6
/* A new parent that has acknowledged nothing yet gets so many in one window, as a probe of the
 * link; then another one takes its place in the same window, if there is any: where all motes of a
 * network join in one window, two are lost to the crowd too often, and a tree that is deeper than
 * need be stays (a third more bundles in the lab on CC2538) … */
#define VAIN_PROBES 4
/* … and after so many others of any level will do. */
#define VAIN_PROBES_ALL 6
/* Parents, one after the other, of which none has acknowledged a frame, until the mote leaves the
 * tree; twice as many the next time. */
#define VAIN_PARENTS 6
/* A mote that has found no other parent after so many windows leaves the tree: ways of those that
 * it hears may lead by this mote. */
#define REQUEST_WINDOWS 2

static struct {
    uint8_t silent_slots; /* in a row, in which the parent has acknowledged nothing */
    uint8_t vain_joins;   /* to the parent, in a row, that it has not acknowledged */
    uint8_t vain_parents; /* in a row, that have acknowledged nothing */
    uint8_t vain_limit;   /* so many of them are tried before the mote leaves the tree */
} loss = {.vain_limit = VAIN_PARENTS};

void tree_parent_adopted(bool changed)
{
    loss.silent_slots = 0;
    if (changed)
        loss.vain_joins = 0;
}

void tree_parent_left(void) { loss.vain_parents = 0; }

/* Parents that were tried in vain are passed over: of those that are heard, one of the mote's own
 * level may be the only one that hears it. */
bool parent_replace(void)
{
    struct neighbour *next = parent_choice_best(tree_own_parent(), tree_own_level());
    if (!next || neighbour_link_cost(next) >= COST_VAIN)
        return false;
    if (++loss.vain_parents >= loss.vain_limit) {
        /* A mote that nobody hears at all need not look for others all the time. */
        loss.vain_limit =
            loss.vain_limit < UINT8_MAX / 2 ? (uint8_t)(2 * loss.vain_limit) : UINT8_MAX;
        return false;
    }
    /* By values at once: a parent of least cost first and another by values later would be two
     * changes. */
    tree_adopt(parent_choice_by_values(next, next));
    return true;
}

static bool heard_well(const struct neighbour *n) { return n->heard >= NEIGHBOUR_HEARD_WELL; }

/* Asks for a number of the root by which a neighbour may become the parent. False: there is nobody
 * to be asked. */
static bool ask_first(uint8_t above)
{
    bool asks = sequence_request_is_for_parent();
    const struct neighbour *choice = asks ? NULL : parent_choice_to_ask(tree_own_parent(), above);
    if (choice) {
        asks = true;
        routing_send_join(WIRE_NO_NODE, false);
        sequence_request_start(choice->node, tree_root_sequence(), REQUEST_WINDOWS, true);
    }
    return asks;
}

void parent_give_up(void)
{
    if (!parent_replace() && !ask_first(LEVEL_MAXIMUM))
        tree_leave();
}

/* The parent has been silent for too long. */
static void lose(void)
{
    struct neighbour *lost = tree_up();
    /* A link that was poor all the time is known by its share. */
    if (lost && heard_well(lost))
        neighbour_vain(lost);
    parent_give_up();
}

static void doubt(const struct neighbour *up)
{
    /* A parent that is heard well, or is not heard any more, and does not acknowledge in control
     * windows either, is not just crowded. */
    bool silent = loss.vain_joins && (up->age >= DOUBTFUL_WINDOWS || heard_well(up));
    uint8_t limit = silent                       ? DOUBTFUL_SLOTS
                    : !heard_well(up)            ? POOR_SLOTS
                    : !routing_may_switch(false) ? DEAD_SLOTS_DOUBTFUL
                                                 : DEAD_SLOTS;
    if (loss.silent_slots >= limit)
        lose();
}

/* The parent lives, and hears this mote: nothing need be asked for in its place. */
static void acknowledges(struct neighbour *up)
{
    if (sequence_request_is_for_parent())
        sequence_request_end();
    tree_confirm_parent(up);
    /* Of some that hear well hardly a beacon arrives. */
    up->age = 0;
}

void parent_frame_sent(bool acknowledged)
{
    struct neighbour *up = tree_up();
    if (!up)
        return;
    neighbour_sent(up, acknowledged);
    loss.silent_slots = acknowledged ? 0 : (uint8_t)(loss.silent_slots + 1);
    if (acknowledged) {
        loss.vain_parents = 0;
        loss.vain_limit = VAIN_PARENTS;
        acknowledges(up);
    }
    /* It may have forgotten this mote, or be of another level now: it will say so in a beacon. */
    if (loss.silent_slots % ASK_SLOTS == ASK_SLOTS - 1)
        routing_send_join(tree_own_parent(), true);
    doubt(up);
}

void parent_join_sent(bool acknowledged)
{
    struct neighbour *up = tree_up();
    if (!up)
        return;
    /* That a frame as short arrives does not say that rows would. */
    if (acknowledged) {
        acknowledges(up);
        loss.vain_joins = 0;
        return;
    }
    /* The parent's beacons do not tell that this direction is the worse one: several tries count
     * for more than one frame. */
    neighbour_sent(up, false);
    neighbour_sent(up, false);
    bool probe = !tree_parent_is_confirmed();
    if (++loss.vain_joins == VAIN_PROBES && probe) {
        neighbour_vain(up);
        if (parent_replace())
            return;
    }
    if (loss.vain_joins < (probe ? VAIN_PROBES_ALL : VAIN_JOINS)) {
        if (probe && loss.vain_joins < VAIN_PROBES)
            routing_repeat_join();
        doubt(up);
        return;
    }
    loss.vain_joins = 0;
    /* Others of its own level will do, too, by a later number; in place of one that has never
     * answered, those of any. */
    if (!parent_replace())
        (void)ask_first(probe ? LEVEL_MAXIMUM : (uint8_t)(tree_own_level() + 1));
}

void parent_age(void)
{
    const struct neighbour *up = tree_up();
    if (up && up->age >= ASK_WINDOWS)
        routing_send_join(tree_own_parent(), true);
    if (tree_joined() && (!up || up->age > DEAD_WINDOWS))
        lose();
    else
        parent_choice_make();
}
