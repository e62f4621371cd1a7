#include "net/schedule/tx_window.h"

#include "drivers/radio.h"
#include "drivers/settings.h"
#include "kernel/timer.h"
#include "net/app.h"
#include "net/mac/slot_table.h"
#include "net/net_conf.h"
#include "net/routing/neighbours.h"
#include "net/routing/parent_loss.h"
#include "net/routing/tree.h"
#include "net/schedule/slotframe.h"
#include "net/schedule/window.h"
#include "net/transport/join_packet.h"
#include "net/transport/transport_ops.h"
#include "net/transport/uplink.h"
#include "wire.h"

/* After a slot that was over before all was sent, a mote begins at the latest so many cells before
 * the end of its next one. */
#define LATEST_START_CELLS 8

static struct {
    struct timer end; /* of the slot */
    /* The parent that was there when an epoch's rows began to come, or that has acknowledged
     * something since, and the rounds, this one included, for which it listens; 0: it has been told
     * that nothing is left, or has been silent for too long. Another one listens. */
    uint16_t parent;
    uint8_t rounds : 7;
    bool cut_short : 1; /* the last slot was over before all was sent */
} tx = {.parent = WIRE_NO_NODE};

/* In this mote's own cell. The root listens to the whole slot: where the cell comes before that of
 * the mote that this one may count as, it sends behind that one; where the slot was over last time
 * before all was sent, not in one of the last cells. */
uint16_t tx_window_start(uint16_t representative)
{
    uint8_t level = tree_own_level();
    uint16_t own = slotframe_cell(level, settings()->nodeid);
    if (level != 1)
        return own;
    if (tx.cut_short) {
        uint16_t first = slot_table_start(level),
                 latest = (uint16_t)(slot_table_end(level) - LATEST_START_CELLS * SLOT_CELL_MS);
        if (latest < first)
            latest = first;
        return own < latest ? own : latest;
    }
    if (representative == WIRE_NO_NODE)
        return own;
    uint16_t behind = slotframe_cell(level, representative) + SLOT_CELL_MS;
    return own > behind ? own : behind;
}

bool tx_window_wanted(void)
{
    return uplink_waiting() && (tx.rounds > 0 || tx.parent != tree_own_parent()) &&
           !join_packet_holds_data();
}

static void end(void)
{
    window_close(WINDOW_TX);
    uplink_stop();
    tx.cut_short = uplink_waiting();
    window_sleep_if_idle();
}

void tx_window_open(void)
{
    window_open(WINDOW_TX);
    window_accept_by_room();
    radio_on();
    timer_start(&tx.end, slotframe_at(slot_table_end(tree_own_level()) + LAST_FRAME_MS), end);
    uplink_start();
}

void tx_window_abort(void)
{
    timer_stop(&tx.end);
    window_close(WINDOW_TX);
    uplink_stop();
}

/* A root listens to its whole slot until it is told that nothing is left. */
static void parent_listens(uint8_t rounds)
{
    tx.parent = tree_own_parent();
    tx.rounds = (rounds > 0 && tree_own_level() == 1 ? NEIGHBOUR_UNTIL_DONE : rounds) & 127U;
}

/* The parent has been silent in all rounds in which it listened. It is asked whether it is there,
 * and doubted as soon as one that listens, and is silent, in twice as many. */
static void held(void)
{
    for (uint8_t i = 0; i < SILENT_ROUNDS; i++)
        if (uplink_outstanding() && tx.parent == tree_own_parent())
            parent_frame_sent(false);
}

void tx_window_round(bool fresh)
{
    if (fresh)
        parent_listens(slotframe_rounds_of_silence());
    else if (tx.rounds > 0 && tx.rounds < NEIGHBOUR_UNTIL_DONE) {
        tx.rounds--;
        if (tx.rounds == 0)
            held();
    }
}

void uplink_done(void)
{
    window_close(WINDOW_TX);
    tx.cut_short = false;
    timer_stop(&tx.end);
    window_sleep_if_idle();
}

void uplink_sent(uint8_t flags)
{
    bool more = flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER);
    if (more)
        slotframe_expect_more();
    parent_listens(more ? slotframe_rounds_after(flags) : 0);
}

bool uplink_expects_more(void)
{
    return app_expects_more() || (slotframe_since_rows() < FLUSH_ROUNDS && tree_has_children() &&
                                  !neighbours_children_done());
}
