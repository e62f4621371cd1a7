#include "net/routing/beacon_receive.h"

#include "drivers/settings.h"
#include "net/app.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/parent_choice.h"
#include "net/routing/parent_loss.h"
#include "net/routing/routing_conf.h"
#include "net/routing/routing_ops.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"

/* A root flashed again has drawn its first session, and its network still lives in another:
 * whichever of the two is the later one, all follow what comes after both (as a router that meets
 * an older life's state of its own in OSPF, RFC 2328, 13.4). Once: should there be two roots of one
 * number, they are not to outdo each other for ever. */
static void renew_session(const struct wire_beacon *beacon)
{
    if (tree_is_root() && beacon->root == tree_root_node() && settings()->boots == 1)
        routing_renew_session(beacon->session);
}

/* A beacon of another root or session. Whether the mote enters it. */
static bool enter(const struct wire_beacon *beacon)
{
    renew_session(beacon);
    bool newer =
        beacon->root == tree_root_node() && (int16_t)(beacon->session - tree_session()) > 0;
    if (tree_is_root() || beacon->level == WIRE_NO_LEVEL ||
        (tree_knows_session() && !newer && tree_windows_outside() < LONELY_WINDOWS)) {
        /* Motes that still live in a session that is over are awake now, by a clock that is not
         * ours. */
        if (tree_joined() && beacon->root == tree_root_node() && !newer)
            routing_request_beacon();
        return false;
    }
    tree_enter_session(beacon);
    return true;
}

/* The parent has told how it stands. False: it is the parent no more. */
static bool parent_told(const struct neighbour *up, const struct wire_beacon *beacon)
{
    uint8_t own = tree_root_sequence();
    bool below =
        beacon->parent == settings()->nodeid ||
        (beacon->level != WIRE_NO_LEVEL && !sequence_is_later(beacon->root_sequence, own) &&
         (beacon->level >= tree_own_level() || beacon->root_sequence != own));
    if (below) {
        mac_counters.loops++;
        if (!parent_replace())
            tree_leave();
        return false;
    }
    if (beacon->level >= LEVEL_MAXIMUM) {
        parent_give_up();
        /* Where this mote has another way, that may become one for the parent of before. */
        if (beacon->level == WIRE_NO_LEVEL && routing_network_slow())
            tree_sequence_requested(beacon->root_sequence);
        return false;
    }
    if (!sequence_request_is_for_parent())
        tree_stand_below(up);
    return true;
}

/* Of a parent that is hardly heard, no stamp comes for minutes; without the time its windows are
 * missed, and so are all others': motes closer to the root tell it as well. */
static void take_time(const struct radio_frame *frame, uint16_t source,
                      const struct wire_beacon *beacon)
{
    bool wanted = source == tree_own_parent() || !tree_joined() ||
                  (beacon->level < tree_own_level() && clocksync_stale());
    if (beacon->level == WIRE_NO_LEVEL || !wanted || !clocksync_stamp(source, beacon, frame->sfd))
        return;
    app_time_changed();
    if (tree_joined())
        routing_clock_jumped();
}

bool beacon_receive(const struct radio_frame *frame, uint16_t source,
                    const struct wire_beacon *beacon, uint8_t length)
{
    uint8_t rest = (uint8_t)(length - sizeof *beacon),
            entries = (uint8_t)((uint8_t)(rest - beacon->srts_length) /
                                sizeof(struct wire_neighbour_entry));
    const uint8_t *told = (const uint8_t *)beacon->neighbours;
    bool possible = beacon->ticks < WIRE_TICKS_PER_SECOND &&
                    beacon->skew >= -CLOCKSYNC_SKEW_MAXIMUM &&
                    beacon->skew <= CLOCKSYNC_SKEW_MAXIMUM && beacon->srts_length <= rest;
    uint8_t table = possible ? slot_table_length(told, beacon->srts_length) : 0;
    if (!possible || !slot_table_possible(told, table)) {
        mac_counters.malformed++;
        return false;
    }
    /* Nobody can have a way by a mote of its own number, and a mote that has the root's is in no
     * network of it: others would take it for the root. */
    if (source == settings()->nodeid || (beacon->root == settings()->nodeid && !tree_is_root())) {
        namesake_heard(source);
        return false;
    }
    if (!tree_is_of_session(beacon) && !enter(beacon))
        return false;
    if (beacon->parent == settings()->nodeid)
        tree_child_beaconed();
    struct neighbour *neighbour = neighbour_beacon(source, beacon, entries, frame->lqi);
    if (neighbour && !app_srt_heard((uint8_t)(neighbour - neighbours()), told + table,
                                    (uint8_t)(beacon->srts_length - table),
                                    beacon->query_version == routing_query_version()))
        mac_counters.malformed++;
    if (!tree_is_root())
        slot_table_take(told, table);
    if (!neighbour || tree_is_root())
        return true;
    if (neighbour_is_child(neighbour))
        tree_child_told();
    if (source == tree_own_parent() && !parent_told(neighbour, beacon))
        return true;
    take_time(frame, source, beacon);
    parent_choice_make();
    return true;
}
