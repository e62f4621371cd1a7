#include "net/routing/tree.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/routing_ops.h"

/* A new parent must be better by this much: 1.5 transmissions (hysteresis against flapping). */
#define SWITCH_GAIN 24
/* Where values decide, parents are chosen among those that cost up to four more than the least,
 * over links that take four at most: estimates of long paths differ by as much among equals, and so
 * do those of links by beacons, of which many are lost where many motes beacon at once. One is left
 * for its cost when that is six more: what was chosen is not given up for what made it just
 * eligible. */
#define VALUES_COST 64
#define VALUES_LINK 64
#define VALUES_SWITCH_GAIN 96
/* A parent is dead after so many control windows without a beacon; after fewer when slots pass
 * without an acknowledgement, too. Such slots alone mean a crowded slot more often than a dead
 * parent, up to a limit. */
#define DEAD_WINDOWS 15
#define DOUBTFUL_WINDOWS 4
#define DOUBTFUL_SLOTS 4
#define DEAD_SLOTS 40
/* Of a parent that is not heard well: two epochs' rounds. */
#define POOR_SLOTS 18
/* After so many, or so many windows, it is asked whether it is there by being told again whose
 * parent it is. */
#define ASK_SLOTS 4
#define ASK_WINDOWS 8
/* A parent that is heard but does not hear: after so many JOINs in vain, each of several tries, it
 * is left. */
#define VAIN_JOINS 6
/* A new parent that has acknowledged nothing yet gets so many in one window, as a probe of the
 * link; then another one takes its place in the same window, if there is any … */
#define VAIN_PROBES 2
/* … and after so many others of any level will do. */
#define VAIN_PROBES_ALL 4
/* Parents, one after the other, of which none has acknowledged a frame; twice as many the next
 * time. */
#define VAIN_PARENTS 6
/* More of them while a frame is doubtful: a parent that is heard and has no room will take it, and
 * know it if it had it. */
#define DEAD_SLOTS_DOUBTFUL 80
/* Who has left the tree says so until so many windows of its search are over, so that its own
 * children look around. That in which it left may be the first; in a slow network others are awake
 * in one of four. */
#define FAREWELL_WINDOWS 17
/* A link that takes six transmissions and more is worth a way over more hops. */
#define POOR_LINK (6 * COST_UNIT)
/* Who is heard less than this, of 255, is no parent. */
#define HEARD_LEAST 16
/* Outside the tree for so many windows, a mote joins whatever root and session it hears of. */
#define LONELY_WINDOWS 8
/* … and whatever way to the root: numbers of its beacons may have come round, and whoever had its
 * way from this mote has left. */
#define ALONE_WINDOWS 100
/* Deeper is no tree but a loop counting up. */
#define LEVEL_MAXIMUM 32
/* In a steady network a mote beacons in one window of three; with news, and at the root, in all. */
#define BEACON_EVERY 3
#define NEWS_WINDOWS 6
/* … of another parent: one beacon may be lost, and the next that is due tells it as well. */
#define CHANGE_WINDOWS 2
/* … of values below a mote that were not there before, which it has told at once: all its beacons
 * tell them. */
#define SRT_WINDOWS 1
/* A mote without a child's beacon or bundle in so many windows has no children. */
#define CHILD_WINDOWS 30
/* A parent whose values fit better must do so by this much; and not all siblings choose in the same
 * window: each sees what others chose. */
#define VALUES_GAIN 3
/* … by four cells once the mote has had a tree by values for so many windows: what a change alters
 * for others would have them follow. */
#define SETTLED_GAIN 24
#define YOUNG_WINDOWS 60
#define VALUES_EVERY 4
/* News of the root is asked for again each so many times that tree_seeks is called, as an answer is
 * a beacon, which may be lost … */
#define SEEK_TURNS 4
/* … and for so many windows: motes closer to the root may have been asleep already. */
#define SEEK_WINDOWS 3
/* Who has found no other parent after so many leaves the tree: ways of those whom it hears may lead
 * by this mote. */
#define ABANDONED_WINDOWS 2
#define COST_NONE 0xFFFF
#define BEACON_ENTRIES 11

static uint16_t parent = WIRE_NO_NODE;
static uint8_t level = WIRE_NO_LEVEL;
static uint16_t root, session;
static bool session_known;
/* The root's number that this mote's way to it is known by (Perkins and Bhagwat 1994: destination
 * sequence number), and the level that it has told with it, the least one since. Numbers never go
 * back, nor levels up with one number; so whoever has its way by this mote has no later number, and
 * with the same one a higher level. Parents are those of whom neither holds: there is no loop at
 * any time, however old what is known of them. */
static uint8_t root_sequence, least_level = WIRE_NO_LEVEL;
/* The parent has acknowledged something. Before, a mote without children does not go by its number:
 * whoever is heard and does not hear would leave the mote with a number that those who do hear it
 * do not have yet. */
static bool confirmed;
static uint8_t silent_slots, vain_joins, vain_parents, vain_limit = VAIN_PARENTS, lonely;
static uint8_t news, child_age = CHILD_WINDOWS;
/* News of the root than which the last was no later: for so many windows, and from whom; and
 * whether anybody has asked in this window. */
static uint8_t sought, sought_after, seek_turn;
static uint16_t sought_from;
static bool asked;
/* The parent is given up: another is looked for before the mote leaves the tree, so that whoever is
 * below it need not look around. */
static bool abandoned;
static uint16_t told_version;
static uint8_t beacon_sequence, beacon_turn;
static uint8_t settled; /* windows with a tree by values, up to YOUNG_WINDOWS */

void tree_init(void)
{
    neighbours_clear();
    slot_table_forget();
    if (!settings()->root)
        return;
    level = 0;
    root = settings()->nodeid;
    session = settings()->session;
    session_known = true;
}

bool tree_is_root(void) { return settings()->root; }
bool tree_joined(void) { return level != WIRE_NO_LEVEL; }
uint8_t tree_own_level(void) { return level; }
uint16_t tree_session(void) { return session; }
uint16_t tree_own_parent(void) { return parent; }

bool neighbour_is_parent(uint16_t node) { return node == parent; }

/* Where a place must be made, those who stand closer to the root count for more than all others:
 * without one of them there is no parent to be had. */
uint16_t neighbour_worth(const struct neighbour *neighbour)
{
    if (neighbour->node == parent)
        return UINT16_MAX;
    /* The root listens to all; other parents to the cells of the children that they know. */
    if (neighbour_is_child(neighbour) && !tree_is_root())
        return UINT16_MAX - 1;
    return (uint16_t)((neighbour->level < level ? 256 : 0) + neighbour->heard);
}

struct neighbour *tree_up(void) { return parent == WIRE_NO_NODE ? NULL : neighbour_find(parent); }

bool tree_parent(uint16_t *node)
{
    *node = parent;
    return parent != WIRE_NO_NODE;
}

bool tree_level(uint8_t *own)
{
    *own = level;
    return tree_joined();
}

bool tree_root(uint16_t *node)
{
    *node = root;
    return tree_joined();
}

static uint16_t path_cost(const struct neighbour *neighbour)
{
    uint16_t link = neighbour_link_cost(neighbour), cost = (uint16_t)(neighbour->cost + link);
    return cost < link || cost == COST_NONE ? COST_NONE - 1 : cost;
}

static uint16_t own_cost(void)
{
    const struct neighbour *up = tree_up();
    if (tree_is_root())
        return 0;
    return up ? path_cost(up) : COST_NONE;
}

static bool after(uint8_t sequence, uint8_t other) { return (int8_t)(sequence - other) > 0; }
static bool later(uint8_t sequence) { return after(sequence, root_sequence); }

/* Heard, in the tree above this level, and not by way of this mote, as far as it says so. */
static bool usable(const struct neighbour *n, uint8_t above)
{
    if (n->node == WIRE_NO_NODE || n->level >= LEVEL_MAXIMUM || n->cost == COST_NONE ||
        n->parent == settings()->nodeid)
        return false;
    return n->age <= DEAD_WINDOWS && n->heard >= HEARD_LEAST && n->level < above;
}

/* Who may become the parent: has later news of the root, or stands closer to it by the same. */
static bool eligible(const struct neighbour *n, uint8_t above)
{
    bool closer = n->root_sequence == root_sequence && n->level < least_level;
    return (closer || later(n->root_sequence) || lonely == ALONE_WINDOWS) && usable(n, above);
}

/* Of those that may become the parent, or, if not `as_parent`, of all that may have a way to the
 * root. */
static struct neighbour *cheapest(bool as_parent, uint16_t except, uint8_t above)
{
    struct neighbour *choice = NULL;
    uint16_t least = COST_NONE;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n)) {
        if (n->node == except ||
            !(as_parent ? eligible(n, above)
                        : usable(n, above) && neighbour_link_cost(n) < COST_VAIN))
            continue;
        uint16_t cost = path_cost(n);
        if (cost < least) {
            choice = n;
            least = cost;
        }
    }
    return choice;
}

static struct neighbour *best(uint16_t except, uint8_t above)
{
    return cheapest(true, except, above);
}

bool tree_seeks(void)
{
    if (sought && ++seek_turn % SEEK_TURNS == 0) {
        routing_request_sequence_number(sought_from, sought_after);
        routing_send_soon();
    }
    return asked;
}

bool tree_seek(void)
{
    const struct neighbour *choice = cheapest(false, WIRE_NO_NODE, LEVEL_MAXIMUM);
    if (choice)
        routing_request_sequence_number(choice->node, root_sequence);
    return choice != NULL;
}

static void seek(uint16_t node, uint8_t number, uint8_t windows)
{
    sought = windows;
    sought_from = node;
    sought_after = number;
    seek_turn = 0;
    asked = true;
    routing_request_sequence_number(node, number);
    routing_send_soon();
}

static void sought_no_more(void)
{
    sought = 0;
    abandoned = false;
    routing_request_sequence_number(WIRE_NO_NODE, 0);
}

/* Hop by hop, to whoever has it or to the root, whose beacon is news in any case; who has asked
 * passes it on at once (Babel's requests for sequence numbers, RFC 8966, 3.8.1.2). */
void tree_sought(uint8_t number)
{
    if (!tree_joined())
        return;
    asked = true;
    if (tree_is_root() || after(root_sequence, number)) {
        routing_request_beacon();
        return;
    }
    if (abandoned)
        return; /* it asks itself */
    if (sought && !after(number, sought_after))
        sought = SEEK_WINDOWS;
    else
        seek(parent, number, SEEK_WINDOWS);
}

/* A level below this parent. */
static void stand(const struct neighbour *up)
{
    level = (uint8_t)(up->level + 1);
    if (level < least_level)
        least_level = level;
    if (later(up->root_sequence) && (confirmed || tree_has_children())) {
        root_sequence = up->root_sequence;
        least_level = level;
        if (sought && after(root_sequence, sought_after)) {
            sought_no_more();
            routing_request_beacon();
        }
    }
}

static void confirm(const struct neighbour *up)
{
    if (confirmed)
        return;
    confirmed = true;
    stand(up);
}

static void adopt(const struct neighbour *up)
{
    bool joined = tree_joined(), changed = parent != up->node;
    parent = up->node;
    if (lonely == ALONE_WINDOWS)
        root_sequence = up->root_sequence;
    if (changed)
        confirmed = false;
    stand(up);
    if (abandoned)
        sought_no_more();
    sought_from = parent;
    silent_slots = lonely = 0;
    if (changed) {
        vain_joins = 0;
        /* Its children, and those that might be, go by its level; the parent of before and the new
         * one hear of the change. */
        if (news < CHANGE_WINDOWS)
            news = CHANGE_WINDOWS;
        routing_send_join(parent, false);
    }
    if (!joined)
        routing_joined();
    else if (changed)
        routing_parent_changed();
}

static void leave(void)
{
    sought_no_more();
    vain_parents = 0;
    parent = WIRE_NO_NODE;
    level = WIRE_NO_LEVEL;
    least_level = 0; /* whom it would take by the same number it has tried */
    routing_send_join(WIRE_NO_NODE, false);
    news = FAREWELL_WINDOWS;
    routing_left();
}

/* Among parents that are about as good as the one of least cost, a semantic routing tree may tell
 * which one to take: one that fits better than this choice. */
static struct neighbour *by_values(const struct neighbour *least, struct neighbour *choice)
{
    if (!app_srt_chooses())
        return choice;
    uint16_t acceptable = path_cost(least) + VALUES_COST,
             distance = app_srt_distance((uint8_t)(choice - neighbours()), choice->node == parent);
    uint8_t gain = choice->node == parent && settled == YOUNG_WINDOWS ? SETTLED_GAIN : VALUES_GAIN;
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        struct neighbour *n = &neighbours()[i];
        if (n->node == parent || !eligible(n, level) || neighbour_link_cost(n) > VALUES_LINK ||
            path_cost(n) >= acceptable)
            continue;
        uint16_t other = app_srt_distance(i, false);
        if (other + gain > distance)
            continue;
        distance = other;
        choice = n;
    }
    return choice;
}

/* Another of a lower level takes the place of the parent, unless it was tried in vain, or too many
 * were: of those that are heard, one of the mote's own level may be the only one that hears it. */
static bool replace_parent(void)
{
    struct neighbour *next = best(parent, level);
    if (!next || neighbour_link_cost(next) >= COST_VAIN)
        return false;
    if (++vain_parents >= vain_limit) {
        /* Whom nobody hears at all need not look for others all the time. */
        vain_limit = vain_limit < UINT8_MAX / 2 ? (uint8_t)(2 * vain_limit) : UINT8_MAX;
        return false;
    }
    /* At once: a parent of least cost first and another by values later would be two changes. */
    adopt(by_values(next, next));
    return true;
}

static bool heard_well(const struct neighbour *n) { return n->heard >= NEIGHBOUR_HEARD_WELL; }

/* For news of the root by which a neighbour may become the parent. */
static bool ask_first(uint8_t above)
{
    const struct neighbour *choice = abandoned ? NULL : cheapest(false, parent, above);
    if (choice) {
        abandoned = true;
        routing_send_join(WIRE_NO_NODE, false);
        seek(choice->node, root_sequence, ABANDONED_WINDOWS);
    }
    return abandoned;
}

static void give_parent_up(void)
{
    if (!replace_parent() && !ask_first(LEVEL_MAXIMUM))
        leave();
}

/* … for its silence. */
static void lose_parent(void)
{
    struct neighbour *lost = tree_up();
    /* A link that was poor all the time is known by its share. */
    if (lost && heard_well(lost))
        neighbour_vain(lost);
    give_parent_up();
}

static void restart(const struct wire_beacon *beacon)
{
    routing_session_begins(session_known);
    root = beacon->root;
    session = beacon->session;
    session_known = true;
    clocksync_lose();
    neighbours_clear();
    slot_table_forget();
    if (tree_joined())
        leave();
    news = 0;
    root_sequence = (uint8_t)(beacon->root_sequence - 1);
}

static void choose(void)
{
    if (tree_is_root())
        return;
    struct neighbour *up = abandoned ? NULL : tree_up();
    /* Whose parent hardly hears it may go down: those of its own level, or below it by another way,
     * may be all that hear it. The root's numbers keep those out that have their way by this mote.
     */
    bool poor = up && neighbour_link_cost(up) >= POOR_LINK;
    struct neighbour *choice =
        best(abandoned ? parent : WIRE_NO_NODE, up && !poor ? level : LEVEL_MAXIMUM);
    if (!choice)
        return;
    /* Who was tried in vain is not tried again while others can be asked. */
    if ((abandoned || tree_farewell()) && neighbour_link_cost(choice) >= COST_VAIN &&
        cheapest(false, WIRE_NO_NODE, LEVEL_MAXIMUM))
        return;
    /* Not while the parent may hold a frame whose acknowledgement was lost: another would count its
     * partial states again. Of rows, which the gateway drops where they come twice, hardly any gets
     * through over a poor link, so that they are always in doubt. */
    if (!up || (routing_may_switch(poor) &&
                path_cost(choice) + (app_srt_chooses() ? VALUES_SWITCH_GAIN : SWITCH_GAIN) <
                    path_cost(up)))
        adopt(choice);
}

/* What is below this mote in semantic routing trees; who tells of more than before has news. */
static bool refresh_srts(bool window)
{
    if (tree_is_root() || !app_srt_refresh(window))
        return false;
    if (news < SRT_WINDOWS)
        news = SRT_WINDOWS;
    return true;
}

/* A child has told of more: the parent, awake in this window, hears of it at once, and is asked for
 * what applies here now. */
static void child_told(void)
{
    if (!refresh_srts(false))
        return;
    routing_request_queries();
    routing_request_beacon();
}

static void choose_by_values(void)
{
    struct neighbour *up = tree_up(), *least = best(WIRE_NO_NODE, level);
    if (!up || !least || abandoned || !routing_may_switch(false))
        return;
    const struct neighbour *choice = by_values(least, up);
    if (choice != up)
        adopt(choice);
}

bool tree_beacon(const struct radio_frame *frame, uint16_t source, const struct wire_beacon *beacon,
                 uint8_t length)
{
    uint8_t rest = (uint8_t)(length - sizeof *beacon),
            entries = (uint8_t)((uint8_t)(rest - beacon->srts_length) /
                                sizeof(struct wire_neighbour_entry));
    const uint8_t *told = (const uint8_t *)beacon->neighbours;
    bool possible = beacon->ticks < WIRE_TICKS_PER_SECOND &&
                    beacon->skew >= -CLOCKSYNC_SKEW_MAXIMUM &&
                    beacon->skew <= CLOCKSYNC_SKEW_MAXIMUM && beacon->srts_length <= rest;
    uint8_t slots = possible ? slot_table_length(told, beacon->srts_length) : 0;
    if (!possible || !slot_table_possible(told, slots)) {
        mac_counters.malformed++;
        return false;
    }
    /* Nobody can have a way by a mote of its own number, and who has the root's is in no network of
     * it: others would take it for the root. */
    if (source == settings()->nodeid || (beacon->root == settings()->nodeid && !tree_is_root())) {
        namesake_heard(source);
        return false;
    }
    if (beacon->root != root || beacon->session != session) {
        /* A root flashed again has drawn its first session, and its network still lives in another:
         * whichever of the two is the later one, all follow what comes after both (as who meets an
         * older life's state of its own in OSPF, RFC 2328, 13.4). Once: should there be two roots
         * of one number, they are not to outdo each other for ever. */
        if (tree_is_root() && beacon->root == root && settings()->boots == 1)
            routing_renew_session(beacon->session);
        bool newer = beacon->root == root && (int16_t)(beacon->session - session) > 0;
        if (tree_is_root() || beacon->level == WIRE_NO_LEVEL ||
            (session_known && !newer && lonely < LONELY_WINDOWS)) {
            /* Motes that still live in a session that is over are awake now, by a clock that is not
             * ours. */
            if (tree_joined() && beacon->root == root && !newer)
                routing_request_beacon();
            return false;
        }
        restart(beacon);
    }
    if (beacon->parent == settings()->nodeid)
        child_age = 0;
    struct neighbour *neighbour = neighbour_beacon(source, beacon, entries, frame->lqi);
    if (neighbour && !app_srt_heard((uint8_t)(neighbour - neighbours()), told + slots,
                                    (uint8_t)(beacon->srts_length - slots),
                                    beacon->query_version == routing_query_version()))
        mac_counters.malformed++;
    if (!tree_is_root())
        slot_table_take(told, slots);
    if (!neighbour || tree_is_root())
        return true;
    if (neighbour_is_child(neighbour))
        child_told();
    if (source == parent) {
        bool below = beacon->parent == settings()->nodeid ||
                     (beacon->level != WIRE_NO_LEVEL && !later(beacon->root_sequence) &&
                      (beacon->level >= level || beacon->root_sequence != root_sequence));
        if (below)
            mac_counters.loops++;
        if (below) {
            if (!replace_parent())
                leave();
            return true;
        }
        if (beacon->level >= LEVEL_MAXIMUM) {
            give_parent_up();
            /* Where it has another way, that may become one for the parent of before. */
            if (beacon->level == WIRE_NO_LEVEL && routing_network_slow())
                tree_sought(beacon->root_sequence);
            return true;
        }
        if (!abandoned)
            stand(neighbour);
    }
    /* Of a parent that is hardly heard, no stamp comes for minutes; without the time its windows
     * are missed, and so are all others'. */
    if (beacon->level != WIRE_NO_LEVEL &&
        (source == parent || !tree_joined() || (beacon->level < level && clocksync_stale()))) {
        if (clocksync_stamp(source, beacon, frame->sfd)) {
            app_time_changed();
            if (tree_joined())
                routing_clock_jumped();
        }
    }
    choose();
    return true;
}

bool tree_beacon_due(uint32_t round)
{
    if (routing_query_version() != told_version) {
        told_version = routing_query_version();
        news = NEWS_WINDOWS;
    }
    return tree_is_root() || news || (round / 4 + settings()->nodeid) % BEACON_EVERY == 0;
}

bool tree_farewell(void) { return !tree_joined() && session_known && news; }

bool tree_has_children(void) { return child_age < CHILD_WINDOWS; }

void tree_child_heard(uint16_t source, uint8_t lqi)
{
    child_age = 0;
    neighbour_child(source, (uint8_t)(level + 1), lqi);
}

void tree_child_srts(uint16_t source, const struct wire_join *join, uint8_t length)
{
    const struct neighbour *child = neighbour_find(source);
    if (child && !app_srt_heard((uint8_t)(child - neighbours()), (const uint8_t *)join->srts,
                                (uint8_t)(length - sizeof *join), false))
        mac_counters.malformed++;
    else if (child)
        child_told();
}

uint8_t tree_write_beacon(struct wire_beacon *beacon)
{
    refresh_srts(false);
    struct clocksync_relation clock = clocksync_relation();
    beacon->offset = clock.offset;
    beacon->skew = clock.skew;
    beacon->root = root;
    beacon->session = session;
    if (tree_is_root())
        root_sequence = beacon_sequence;
    beacon->root_sequence = root_sequence;
    beacon->sequence = beacon_sequence++;
    beacon->level = level;
    beacon->parent = parent;
    beacon->cost = own_cost();
    beacon->query_version = routing_query_version();
    uint8_t slots = slot_table_write((uint8_t *)beacon->neighbours);
    beacon->srts_length = (uint8_t)(slots + app_srt_write((uint8_t *)beacon->neighbours + slots));
    struct wire_neighbour_entry *entry =
        (struct wire_neighbour_entry *)((uint8_t *)beacon->neighbours + beacon->srts_length);
    /* Beacons are not longer for slots: poor links lose long frames more often. */
    uint8_t left = (uint8_t)(BEACON_ENTRIES - (slots + sizeof *entry - 1) / sizeof *entry),
            place = beacon_turn;
    for (uint8_t i = 0; i < NEIGHBOURS && left > 0; i++) {
        const struct neighbour *n = &neighbours()[place];
        if (++place == NEIGHBOURS)
            place = 0;
        if (n->node == WIRE_NO_NODE)
            continue;
        entry->node = n->node;
        entry->heard = n->heard;
        entry++;
        left--;
    }
    beacon_turn = (uint8_t)(beacon_turn + 5) % NEIGHBOURS;
    return (uint8_t)((uint8_t *)entry - (uint8_t *)beacon);
}

/* Gives the parent up once it has been silent for too long. */
static void doubt_parent(const struct neighbour *up)
{
    /* Whoever is heard well, or is not heard any more, and does not acknowledge in control windows
     * either, is not just crowded. */
    bool silent = vain_joins && (up->age >= DOUBTFUL_WINDOWS || heard_well(up));
    uint8_t limit = silent                       ? DOUBTFUL_SLOTS
                    : !heard_well(up)            ? POOR_SLOTS
                    : !routing_may_switch(false) ? DEAD_SLOTS_DOUBTFUL
                                                 : DEAD_SLOTS;
    if (silent_slots >= limit)
        lose_parent();
}

void tree_sent(bool acknowledged)
{
    struct neighbour *up = tree_up();
    if (!up)
        return;
    neighbour_sent(up, acknowledged);
    silent_slots = acknowledged ? 0 : (uint8_t)(silent_slots + 1);
    if (acknowledged) {
        vain_parents = 0;
        vain_limit = VAIN_PARENTS;
    }
    if (acknowledged && abandoned)
        sought_no_more();
    if (acknowledged)
        confirm(up);
    /* it lives, and of some that hear well hardly a beacon arrives */
    if (acknowledged)
        up->age = 0;
    /* It may have forgotten this mote, or be of another level now: it will say so in a beacon. */
    if (silent_slots % ASK_SLOTS == ASK_SLOTS - 1)
        routing_send_join(parent, true);
    doubt_parent(up);
}

void tree_join_sent(bool acknowledged)
{
    struct neighbour *up = tree_up();
    if (!up)
        return;
    /* That a frame as short arrives does not say that rows would. */
    if (acknowledged) {
        if (abandoned)
            sought_no_more();
        confirm(up);
        vain_joins = up->age = 0;
        return;
    }
    /* Its beacons do not tell that this direction is the worse one: several tries count for more
     * than one frame. */
    neighbour_sent(up, false);
    neighbour_sent(up, false);
    bool probe = !confirmed;
    if (++vain_joins == VAIN_PROBES && probe) {
        neighbour_vain(up);
        if (replace_parent())
            return;
    }
    if (vain_joins < (probe ? VAIN_PROBES_ALL : VAIN_JOINS)) {
        if (probe && vain_joins < VAIN_PROBES)
            routing_repeat_join();
        doubt_parent(up);
        return;
    }
    vain_joins = 0;
    /* Others of its own level will do, too, by later news; in place of one that has never answered,
     * those of any. */
    if (!replace_parent())
        ask_first(probe ? LEVEL_MAXIMUM : (uint8_t)(level + 1));
}

void tree_age(void)
{
    neighbours_age();
    namesake_age();
    if (news)
        news--;
    if (sought)
        sought--;
    asked = sought;
    if (asked)
        routing_request_sequence_number(sought_from, sought_after);
    else if (abandoned)
        leave();
    refresh_srts(true);
    if (child_age < CHILD_WINDOWS)
        child_age++;
    if (tree_is_root())
        return;
    if (!tree_joined() && lonely < ALONE_WINDOWS)
        lonely++;
    const struct neighbour *up = tree_up();
    if (up && up->age >= ASK_WINDOWS)
        routing_send_join(parent, true);
    if (tree_joined() && (!up || up->age > DEAD_WINDOWS))
        lose_parent();
    else
        choose();
    if (!app_srt_chooses())
        settled = 0;
    else if (settled < YOUNG_WINDOWS)
        settled++;
    if (random_below(VALUES_EVERY) == 0)
        choose_by_values();
}
