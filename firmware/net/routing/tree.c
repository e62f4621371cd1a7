#include "net/routing/tree.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/beacon_due.h"
#include "net/routing/routing_conf.h"
#include "net/routing/routing_ops.h"
#include "net/routing/sequence_request.h"

/* A mote that has left the tree says so until so many windows of its search are over, so that its
 * own children look around. That in which it left may be the first; in a slow network others are
 * awake in one of four. */
#define LEAVE_NOTICE_WINDOWS 17
/* Another parent is told in so many windows: one beacon may be lost, and the next that is due tells
 * it as well. */
#define CHANGE_WINDOWS 2
/* Values below a mote that were not there before are told at once, in one window: all its beacons
 * tell them. */
#define SRT_WINDOWS 1
/* A mote without a child's beacon or bundle in so many windows has no children. */
#define CHILD_WINDOWS 30
/* A neighbour's request for a sequence number is repeated in so many windows: motes closer to the
 * root may have been asleep already. */
#define REQUEST_WINDOWS 3

static struct {
    uint16_t parent;    /* WIRE_NO_NODE: none */
    uint8_t level;      /* WIRE_NO_LEVEL: the mote is in no tree */
    uint16_t root;      /* whose tree the mote is in, or was last */
    uint16_t session;   /* of that root */
    bool session_known; /* both are; they are not before the first beacon */
    /* The root's number that this mote's way to it is known by (Perkins and Bhagwat 1994:
     * destination sequence number), and the level that it has told with it, the least one since.
     * Numbers never go back, nor levels up with one number; so a mote that has its way by this one
     * has no later number, and with the same one a higher level. Parents are those of whom neither
     * holds: there is no loop at any time, however old what is known of them. */
    uint8_t root_sequence;
    uint8_t least_level;
    /* The parent has acknowledged something. Before, a mote without children does not go by its
     * number: a parent that is heard and does not hear would leave the mote with a number that
     * those who do hear it do not have yet. */
    bool confirmed;
    uint8_t windows_outside;       /* the tree, in a row, up to ALONE_WINDOWS */
    uint8_t windows_without_child; /* up to CHILD_WINDOWS, since one was heard */
} tree = {.parent = WIRE_NO_NODE,
          .level = WIRE_NO_LEVEL,
          .least_level = WIRE_NO_LEVEL,
          .windows_without_child = CHILD_WINDOWS};

void tree_init(void)
{
    neighbours_clear();
    slot_table_forget();
    if (!settings()->root)
        return;
    tree.level = 0;
    tree.root = settings()->nodeid;
    tree.session = settings()->session;
    tree.session_known = true;
}

bool tree_is_root(void) { return settings()->root; }
bool tree_joined(void) { return tree.level != WIRE_NO_LEVEL; }
uint8_t tree_own_level(void) { return tree.level; }
uint16_t tree_session(void) { return tree.session; }
uint16_t tree_own_parent(void) { return tree.parent; }
bool tree_knows_session(void) { return tree.session_known; }
uint16_t tree_root_node(void) { return tree.root; }
uint8_t tree_windows_outside(void) { return tree.windows_outside; }
uint8_t tree_root_sequence(void) { return tree.root_sequence; }
void tree_renew_root_sequence(uint8_t number) { tree.root_sequence = number; }
bool tree_parent_is_confirmed(void) { return tree.confirmed; }

bool tree_is_of_session(const struct wire_beacon *beacon)
{
    return beacon->root == tree.root && beacon->session == tree.session;
}

bool neighbour_is_parent(uint16_t node) { return node == tree.parent; }

/* Where a place must be made, those who stand closer to the root count for more than all others:
 * without one of them there is no parent to be had. */
uint16_t neighbour_worth(const struct neighbour *neighbour)
{
    if (neighbour->node == tree.parent)
        return UINT16_MAX;
    /* The root listens to all; other parents to the cells of the children that they know. */
    if (neighbour_is_child(neighbour) && !tree_is_root())
        return UINT16_MAX - 1;
    return (uint16_t)((neighbour->level < tree.level ? 256 : 0) + neighbour->heard);
}

struct neighbour *tree_up(void)
{
    return tree.parent == WIRE_NO_NODE ? NULL : neighbour_find(tree.parent);
}

bool tree_parent(uint16_t *node)
{
    *node = tree.parent;
    return tree.parent != WIRE_NO_NODE;
}

bool tree_level(uint8_t *own)
{
    *own = tree.level;
    return tree_joined();
}

bool tree_root(uint16_t *node)
{
    *node = tree.root;
    return tree_joined();
}

uint16_t tree_cost(void)
{
    const struct neighbour *up = tree_up();
    if (tree_is_root())
        return 0;
    return up ? neighbour_path_cost(up) : COST_NONE;
}

bool tree_leave_notice_due(void)
{
    return !tree_joined() && tree.session_known && beacon_has_news();
}

/* ---- sequence numbers ---- */
bool tree_is_feasible(const struct neighbour *n)
{
    bool closer = n->root_sequence == tree.root_sequence && n->level < tree.least_level;
    return closer || sequence_is_later(n->root_sequence, tree.root_sequence) ||
           tree.windows_outside == ALONE_WINDOWS;
}

/* The root's beacon is news in any case; a mote that has the number passes it on at once. */
void tree_sequence_requested(uint8_t number)
{
    if (!tree_joined())
        return;
    sequence_request_heard();
    if (tree_is_root() || sequence_is_later(tree.root_sequence, number)) {
        routing_request_beacon();
        return;
    }
    if (sequence_request_is_for_parent())
        return; /* This mote asks for itself already. */
    if (!sequence_request_joins(number, REQUEST_WINDOWS))
        sequence_request_start(tree.parent, number, REQUEST_WINDOWS, false);
}

/* ---- joining, changing over, leaving ---- */
void tree_stand_below(const struct neighbour *up)
{
    tree.level = (uint8_t)(up->level + 1);
    if (tree.level < tree.least_level)
        tree.least_level = tree.level;
    if (sequence_is_later(up->root_sequence, tree.root_sequence) &&
        (tree.confirmed || tree_has_children())) {
        tree.root_sequence = up->root_sequence;
        tree.least_level = tree.level;
        if (sequence_request_answered_by(tree.root_sequence)) {
            sequence_request_end();
            routing_request_beacon();
        }
    }
}

void tree_confirm_parent(const struct neighbour *up)
{
    if (tree.confirmed)
        return;
    tree.confirmed = true;
    tree_stand_below(up);
}

void tree_adopt(const struct neighbour *up)
{
    bool joined = tree_joined(), changed = tree.parent != up->node;
    tree.parent = up->node;
    if (tree.windows_outside == ALONE_WINDOWS)
        tree.root_sequence = up->root_sequence;
    if (changed)
        tree.confirmed = false;
    tree_stand_below(up);
    if (sequence_request_is_for_parent())
        sequence_request_end();
    sequence_request_redirect(tree.parent);
    tree.windows_outside = 0;
    tree_parent_adopted(changed);
    if (changed) {
        /* Its children, and those that might be, go by its level; the parent of before and the new
         * one hear of the change. */
        beacon_news(CHANGE_WINDOWS);
        routing_send_join(tree.parent, false);
    }
    if (!joined)
        routing_joined();
    else if (changed)
        routing_parent_changed();
}

void tree_leave(void)
{
    sequence_request_end();
    tree_parent_left();
    tree.parent = WIRE_NO_NODE;
    tree.level = WIRE_NO_LEVEL;
    tree.least_level = 0; /* Parents by the same number have been tried. */
    routing_send_join(WIRE_NO_NODE, false);
    beacon_news(LEAVE_NOTICE_WINDOWS);
    routing_left();
}

void tree_enter_session(const struct wire_beacon *beacon)
{
    routing_session_begins(tree.session_known);
    tree.root = beacon->root;
    tree.session = beacon->session;
    tree.session_known = true;
    clocksync_lose();
    neighbours_clear();
    slot_table_forget();
    if (tree_joined())
        tree_leave();
    beacon_forget_news();
    tree.root_sequence = (uint8_t)(beacon->root_sequence - 1);
}

/* ---- children ---- */
bool tree_has_children(void) { return tree.windows_without_child < CHILD_WINDOWS; }

void tree_child_beaconed(void) { tree.windows_without_child = 0; }

void tree_child_heard(uint16_t source, uint8_t lqi)
{
    tree_child_beaconed();
    neighbour_child(source, (uint8_t)(tree.level + 1), lqi);
}

bool tree_refresh_srts(bool window)
{
    if (tree_is_root() || !app_srt_refresh(window))
        return false;
    beacon_news(SRT_WINDOWS);
    return true;
}

/* The parent, awake in this window, hears of what is new at once, and is asked for what applies
 * here now. */
void tree_child_told(void)
{
    if (!tree_refresh_srts(false))
        return;
    routing_request_queries();
    routing_request_beacon();
}

void tree_child_srts(uint16_t source, const struct wire_join *join, uint8_t length)
{
    const struct neighbour *child = neighbour_find(source);
    if (child && !app_srt_heard((uint8_t)(child - neighbours()), (const uint8_t *)join->srts,
                                (uint8_t)(length - sizeof *join), false))
        mac_counters.malformed++;
    else if (child)
        tree_child_told();
}

void tree_age(void)
{
    (void)tree_refresh_srts(true);
    if (tree.windows_without_child < CHILD_WINDOWS)
        tree.windows_without_child++;
    if (!tree_joined() && tree.windows_outside < ALONE_WINDOWS)
        tree.windows_outside++;
}
