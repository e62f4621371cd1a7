#include "net/schedule/schedule.h"

#include "drivers/radio.h"
#include "drivers/settings.h"
#include "kernel/timer.h"
#include "net/app.h"
#include "net/mac/channels.h"
#include "net/mac/clocksync.h"
#include "net/mac/slot_table.h"
#include "net/net_conf.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/schedule/control_window.h"
#include "net/schedule/rx_window.h"
#include "net/schedule/search.h"
#include "net/schedule/slotframe.h"
#include "net/schedule/tx_window.h"
#include "net/schedule/way_cells.h"
#include "net/schedule/window.h"
#include "net/transport/dissemination.h"
#include "net/transport/snoop.h"
#include "net/transport/transport_ops.h"

static struct {
    struct timer step; /* the next of a round: each step plans the one after it */
} schedule;

void schedule_heard(bool pending)
{
    control_window_heard();
    rx_window_heard(pending);
}

void schedule_bundle(uint16_t source, uint8_t flags)
{
    bool more = flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER);
    if (more)
        slotframe_expect_more();
    struct neighbour *child = neighbour_find(source);
    if (child) {
        child->done = !more;
        child->rounds = slotframe_rounds_after(flags) & 127U;
    }
    schedule_heard(flags & WIRE_BUNDLE_PENDING);
}

void dissemination_sent(void)
{
    schedule_heard(false);
    control_window_next();
}

static void control_step(void), listen_step(void), snoop_step(void), send_step(void),
    over_step(void);

static void next_step(uint16_t ms, uint8_t early, timer_handler *step)
{
    timer_start(&schedule.step, slotframe_at(ms) - early, step);
}

static void control_step(void)
{
    clocksync_tick(tree_is_root());
    slot_table_round((uint16_t)slotframe_round());
    schedule_round_begins((uint16_t)slotframe_round());
    slotframe_count();
    if (slotframe_has_control())
        control_window_open();
    else
        way_cells_begin();
    next_step(slot_table_start((uint8_t)(tree_own_level() + 1)), GUARD_TIME, listen_step);
}

static void listen_step(void)
{
    if (slotframe_children_may_send()) {
        control_window_close();
        radio_channel(channel_data((uint16_t)slotframe_round()));
        bool fresh = slotframe_since_rows() == 0 || slotframe_has_rest();
        if (slotframe_since_rows() == 0)
            window_measure_own();
        /* What children have said of this mote's queries says nothing of those that it dropped. */
        neighbours_round(fresh || slotframe_queries_end(), slotframe_rounds_of_silence());
        if (slotframe_since_rows() == SILENT_ROUNDS && snoop_may_be_silent())
            neighbours_silence();
        tx_window_round(fresh);
        rx_window_listen();
    }
    /* the root has nobody to send to */
    if (tree_own_level() == 0)
        next_step(slot_table_over() + LAST_FRAME_MS, 0, over_step);
    else
        next_step(slot_table_start(tree_own_level()), SNOOP_GUARD_TIME, snoop_step);
}

static void snoop_step(void)
{
    if (slotframe_has_data())
        rx_window_snoop();
    next_step(tx_window_start(rx_window_representative()), 0, send_step);
}

static void send(void)
{
    rx_window_snoop_over();
    app_fill_in();
    if (!tx_window_wanted())
        return;
    /* Levels that share the first slot go on listening to their children, who send in it, too. */
    if (!slot_table_shared(tree_own_level()))
        rx_window_close();
    tx_window_open();
}

static void send_step(void)
{
    if (slotframe_has_data())
        send();
    next_step(slot_table_over(), 0, over_step);
}

static void over_step(void)
{
    if (slotframe_has_data())
        window_note_room();
    if (tree_is_root()) {
        bool data = slotframe_children_may_send();
        if (data)
            app_fill_in();
        schedule_round_over(data);
        slot_table_decide(slotframe_round(), schedule_report_rounds(),
                          slotframe_has_fast_query(false) ? CONTROL_EVERY : CONTROL_SELDOM);
    }
    radio_channel(channel_home());
    slotframe_enter(slotframe_round() + 1);
    next_step(0, GUARD_TIME, control_step);
}

void schedule_restart(void)
{
    timer_stop(&schedule.step);
    way_cells_stop();
    if (!time_known() || !tree_joined()) {
        bool awake = window_is_open(WINDOW_CONTROL); /* neighbours are */
        control_window_close();
        rx_window_close();
        rx_window_snoop_over();
        tx_window_abort();
        slotframe_forget_rows();
        search_begin();
        control_window_left(awake);
        return;
    }
    search_end();
    slotframe_enter(time_at(clock_now() + GUARD_TIME).seconds + 1);
    next_step(0, GUARD_TIME, control_step);
    /* In the control window in which it joined, a mote beacons at once: the tree grows several
     * levels in one. */
    if (!tree_is_root())
        control_window_beacon_now();
}

void schedule_init(void)
{
    control_window_session(tree_is_root() && settings()->boots > 1);
    schedule_restart();
}
