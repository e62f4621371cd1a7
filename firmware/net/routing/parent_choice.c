#include "net/routing/parent_choice.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/routing/routing_conf.h"
#include "net/routing/routing_ops.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"

/* Where values decide, parents are chosen among those that cost up to four more than the least,
 * over links that take four at most: estimates of long paths differ by as much among equals, and so
 * do those of links by beacons, of which many are lost where many motes beacon at once. One is left
 * for its cost when that is six more: what was chosen is not given up for what made it just
 * eligible. */
#define VALUES_COST (4 * COST_UNIT)
#define VALUES_LINK (4 * COST_UNIT)
#define VALUES_SWITCH_GAIN (6 * COST_UNIT)
/* A parent whose values fit better must do so by this much, in cells of what an index tells apart
 * (net/app.h) … */
#define VALUES_GAIN 3
/* … and by more once the mote has had a tree by values for so many windows: what a change alters
 * for others would have them follow. */
#define SETTLED_GAIN 24
#define SETTLED_WINDOWS 60
/* A mote chooses by values in one window of so many, drawn at random: not all siblings choose in
 * the same one, and each sees what others chose. */
#define VALUES_EVERY 4

static struct {
    uint8_t windows_by_values; /* with a tree by values, in a row, up to SETTLED_WINDOWS */
} choosing;

/* Heard, in the tree above this level, and not by way of this mote, as far as it says so. */
static bool usable(const struct neighbour *n, uint8_t above)
{
    if (n->node == WIRE_NO_NODE || n->level >= LEVEL_MAXIMUM || n->cost == COST_NONE ||
        n->parent == settings()->nodeid)
        return false;
    return n->age <= DEAD_WINDOWS && n->heard >= HEARD_LEAST && n->level < above;
}

/* What a neighbour is looked for: to be the parent, or to be asked for a number by which it may be.
 */
enum aim { TO_ADOPT, TO_ASK };

static bool eligible(const struct neighbour *n, uint8_t above, enum aim aim)
{
    if (aim == TO_ADOPT && !tree_is_feasible(n))
        return false;
    return usable(n, above) && (aim == TO_ADOPT || neighbour_link_cost(n) < COST_VAIN);
}

static struct neighbour *cheapest(uint16_t except, uint8_t above, enum aim aim)
{
    struct neighbour *choice = NULL;
    uint16_t least = COST_NONE;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n)) {
        if (n->node == except || !eligible(n, above, aim))
            continue;
        uint16_t cost = neighbour_path_cost(n);
        if (cost < least) {
            choice = n;
            least = cost;
        }
    }
    return choice;
}

struct neighbour *parent_choice_best(uint16_t except, uint8_t above)
{
    return cheapest(except, above, TO_ADOPT);
}

struct neighbour *parent_choice_to_ask(uint16_t except, uint8_t above)
{
    return cheapest(except, above, TO_ASK);
}

bool parent_choice_request_number(void)
{
    const struct neighbour *choice = parent_choice_to_ask(WIRE_NO_NODE, LEVEL_MAXIMUM);
    if (choice)
        routing_request_sequence_number(choice->node, tree_root_sequence());
    return choice != NULL;
}

struct neighbour *parent_choice_by_values(const struct neighbour *least, struct neighbour *choice)
{
    if (!app_srt_chooses())
        return choice;
    bool is_parent = choice->node == tree_own_parent();
    uint16_t acceptable = neighbour_path_cost(least) + VALUES_COST,
             distance = app_srt_distance((uint8_t)(choice - neighbours()), is_parent);
    uint8_t gain =
        is_parent && choosing.windows_by_values == SETTLED_WINDOWS ? SETTLED_GAIN : VALUES_GAIN;
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        struct neighbour *n = &neighbours()[i];
        if (n->node == tree_own_parent() || !eligible(n, tree_own_level(), TO_ADOPT) ||
            neighbour_link_cost(n) > VALUES_LINK || neighbour_path_cost(n) >= acceptable)
            continue;
        uint16_t other = app_srt_distance(i, false);
        if (other + gain > distance)
            continue;
        distance = other;
        choice = n;
    }
    return choice;
}

void parent_choice_make(void)
{
    if (tree_is_root())
        return;
    bool given_up = sequence_request_is_for_parent();
    struct neighbour *up = given_up ? NULL : tree_up();
    /* A mote whose parent hardly hears it may go down: those of its own level, or below it by
     * another way, may be all that hear it. The root's numbers keep those out that have their way
     * by this mote. */
    bool poor = up && neighbour_link_cost(up) >= POOR_LINK;
    struct neighbour *choice = parent_choice_best(given_up ? tree_own_parent() : WIRE_NO_NODE,
                                                  up && !poor ? tree_own_level() : LEVEL_MAXIMUM);
    if (!choice)
        return;
    /* A neighbour that was tried in vain is not tried again while others can be asked. */
    if ((given_up || tree_leave_notice_due()) && neighbour_link_cost(choice) >= COST_VAIN &&
        parent_choice_to_ask(WIRE_NO_NODE, LEVEL_MAXIMUM))
        return;
    /* The parent is kept while it may hold a frame whose acknowledgement was lost: another would
     * count its partial states again. Of rows, which the gateway drops where they come twice,
     * hardly any gets through over a poor link, so that they are always in doubt. */
    if (!up ||
        (routing_may_switch(poor) &&
         neighbour_path_cost(choice) + (app_srt_chooses() ? VALUES_SWITCH_GAIN : SWITCH_GAIN) <
             neighbour_path_cost(up)))
        tree_adopt(choice);
}

static void make_by_values(void)
{
    struct neighbour *up = tree_up(), *least = parent_choice_best(WIRE_NO_NODE, tree_own_level());
    if (!up || !least || sequence_request_is_for_parent() || !routing_may_switch(false))
        return;
    const struct neighbour *choice = parent_choice_by_values(least, up);
    if (choice != up)
        tree_adopt(choice);
}

void parent_choice_age(void)
{
    if (!app_srt_chooses())
        choosing.windows_by_values = 0;
    else if (choosing.windows_by_values < SETTLED_WINDOWS)
        choosing.windows_by_values++;
    if (random_below(VALUES_EVERY) == 0)
        make_by_values();
}
