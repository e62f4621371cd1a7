#include "net/schedule/control_window.h"

#include <stddef.h>

#include "drivers/radio.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/content/content.h"
#include "net/mac/channels.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/time.h"
#include "net/net_conf.h"
#include "net/routing/ageing.h"
#include "net/routing/beacon_due.h"
#include "net/routing/beacon_send.h"
#include "net/routing/neighbours.h"
#include "net/routing/parent_choice.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"
#include "net/schedule/search.h"
#include "net/schedule/session.h"
#include "net/schedule/slotframe.h"
#include "net/schedule/window.h"
#include "net/transport/dissemination.h"
#include "net/transport/transport_ops.h"
#include "net/transport/way_table.h"

/* Where the next window is seldom, a mote listens for so many ms more for each hop from HOPS_NEAR
 * on, up to HOPS_FAR: a flood whose first frames collided comes there when it would be quiet
 * already, and would be heard in that next window.
 */
#define HOP_MS 8
#define HOPS_NEAR 2
#define HOPS_FAR 8
/* Beacons are spread over so much of the window. Where many leaves beacon, they leave its beginning
 * to motes with children: a relay among them would never hear its own parent, which they do not
 * hear. */
#define BEACONS CLOCK_MS(38)
#define LEADERS CLOCK_MS(12)
#define NEIGHBOURS_DENSE 16
/* Ways begin to be opened within so much of it: of those that begin at once, of several motes about
 * one that do not hear each other, most would be lost, and later ones find motes some hops away
 * asleep. */
#define WAYS_OPEN CLOCK_MS(20)
/* Between frames of a flood, ms, and up to twice that: the last one is to be two hops away before
 * the next. */
#define FLOOD_PAUSE_MS 7
/* A listener sleeps after so much silence, ms … */
#define QUIET_MS 30
/* … and after the beginning of a frame that was lost: as long as a flood's next may take. */
#define QUIET_LOST_MS (2 * FLOOD_PAUSE_MS + 6)
/* … and where it has sent on a way, of which the neighbour may say in the same window that it leads
 * there: two hops further on, and back. */
#define QUIET_AWAITED_MS 70
/* It stays awake so long for questions after a beacon, ms. */
#define LINGER_BEACON_MS 14
/* A beacon that is to go at once is spread over so many ms. */
#define BEACON_SOON_MS 16
/* A mote outside the tree that has asked for news of the root, and has heard none, asks again after
 * so many ms. */
#define ASK_AGAIN_MS 60

static struct {
    struct timer send;       /* the next frame */
    ticks_t began;           /* the window that is open */
    bool beacon_due;         /* this mote's beacon has not gone in this window yet */
    bool leave_notice_again; /* the leave notice goes twice in its first window: a child that misses
                            it comes a window later */
    struct timer former; /* windows of the session before, each CONTROL_SELDOM s: the next one, */
    ticks_t former_due;  /* when it is */
    uint8_t former_channel; /* and a count of them: they are on both channels by turns */
} control;

static void send_next(void);

static bool something_waits(void)
{
    return dissemination_waiting() || ways_waiting() || content_waiting();
}

void control_window_close(void)
{
    if (!window_is_open(WINDOW_CONTROL))
        return;
    window_close(WINDOW_CONTROL);
    timer_stop(&control.send);
    window_look_no_more();
    window_closes_no_more();
    if (mac_busy())
        mac_cancel();
    routing_age();
    window_sleep_if_idle();
}

/* For so long this mote listens at least. */
static ticks_t shortest(void)
{
    uint8_t level = tree_own_level(), hops;
    if (!slotframe_is_slow() || level <= HOPS_NEAR)
        return CLOCK_MS(CONTROL_SHORTEST_MS);
    hops = (uint8_t)((level < HOPS_FAR ? level : HOPS_FAR) - HOPS_NEAR);
    return CLOCK_MS(CONTROL_SHORTEST_MS) + hops * CLOCK_MS(HOP_MS);
}

/* Nothing has been heard for a while. */
static void quiet(void)
{
    ticks_t earliest = control.began + GUARD_TIME + shortest(),
            heard = radio_last_start() +
                    (ways_awaited() ? CLOCK_MS(QUIET_AWAITED_MS) : CLOCK_MS(QUIET_LOST_MS));
    /* A frame that was lost, in a collision most likely, may be a flood's: it comes again. */
    if (!clock_reached(earliest, heard))
        earliest = heard;
    if (something_waits() || control.beacon_due || mac_busy() || sequence_request_pending())
        window_look_after(CLOCK_MS(10), quiet);
    else if (!clock_reached(clock_now(), earliest))
        window_look(earliest, quiet);
    else
        control_window_close();
}

/* Outside the tree, for as long as its window is open: the answer is a beacon, which may be lost.
 */
static void ask(void)
{
    if (tree_joined() || !radio_is_on() || !tree_leave_notice_due() ||
        !parent_choice_request_number())
        return;
    dissemination_send();
    timer_after(&control.send, CLOCK_MS(ASK_AGAIN_MS), ask);
}

static void send_after_pause(void)
{
    timer_after(&control.send,
                random_between(CLOCK_MS(FLOOD_PAUSE_MS), 2 * CLOCK_MS(FLOOD_PAUSE_MS)), send_next);
}

static void beacon_sent(enum radio_outcome outcome)
{
    (void)outcome;
    if (tree_joined() || !slotframe_has_control())
        dissemination_sent();
    else if (control.leave_notice_again) {
        control.leave_notice_again = false;
        control.beacon_due = true;
        send_after_pause();
    } else
        ask();
}

static void send_next(void)
{
    if (!(window_is_open(WINDOW_CONTROL) || tree_leave_notice_due()) || !radio_is_on())
        return;
    if (mac_busy()) {
        timer_after(&control.send, CLOCK_MS(3), send_next);
        return;
    }
    /* Floods first: they have several hops to go before motes far away call it quiet. But a beacon
     * there must be. */
    bool beacon_overdue =
        control.beacon_due && clock_now() - control.began >= CLOCK_MS(CONTROL_SHORTEST_MS);
    if (tree_joined() && !beacon_overdue &&
        ((dissemination_waiting() && dissemination_send()) ||
         (ways_waiting() && ways_control_send()) || content_send()))
        return;
    if (control.beacon_due && (tree_joined() || tree_leave_notice_due())) {
        control.beacon_due = false;
        struct wire_beacon *body = mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_BEACON);
        control_frame.stamp = (uint8_t)((const uint8_t *)&body->seconds - control_frame.bytes);
        mac_finish(&control_frame, beacon_write(body));
        mac_send(&control_frame, 1, beacon_sent);
    }
}

void control_window_next(void)
{
    if (window_is_open(WINDOW_CONTROL) && (control.beacon_due || something_waits()))
        send_after_pause();
}

void control_window_send_soon(void)
{
    if (window_is_open(WINDOW_CONTROL) && something_waits())
        timer_after(&control.send, 1 + random_below(CLOCK_MS(6)), send_next);
}

void control_window_open(void)
{
    window_open(WINDOW_CONTROL);
    control.began = clock_now();
    control.beacon_due = beacon_due(slotframe_round());
    dissemination_window(slotframe_control_is_common());
    radio_accept_unicast(true);
    radio_channel(channel_control(slotframe_round()));
    radio_on();
    content_window(slotframe_control_is_common());
    ways_window(slotframe_control_is_common());
    bool flood = dissemination_waiting() || content_waiting(), opening = ways_waiting(),
         leaf = !tree_has_children(),
         waits = !flood && !opening && leaf && neighbour_count() >= NEIGHBOURS_DENSE;
    uint16_t from = waits ? LEADERS : 0, to = flood ? CLOCK_MS(4) : opening ? WAYS_OPEN : BEACONS;
    if (control.beacon_due || flood || opening)
        timer_after(&control.send, (uint16_t)(2 * GUARD_TIME + random_between(from, to)),
                    send_next);
    window_look_after(GUARD_TIME + CLOCK_MS(CONTROL_SHORTEST_MS), quiet);
    window_closes(clock_now() + GUARD_TIME + CLOCK_MS(CONTROL_LONGEST_MS), control_window_close);
}

void control_window_beacon_now(void)
{
    if (!tree_joined())
        return;
    if (!window_is_open(WINDOW_CONTROL)) {
        window_open(WINDOW_CONTROL);
        control.began = clock_now();
        radio_accept_unicast(true);
        radio_on();
        window_closes(clock_now() + CLOCK_MS(CONTROL_LONGEST_MS), control_window_close);
    }
    control.beacon_due = true;
    timer_after(&control.send, random_between(CLOCK_MS(2), CLOCK_MS(2) + CLOCK_MS(BEACON_SOON_MS)),
                send_next);
    window_look_after(CLOCK_MS(QUIET_MS), quiet);
}

/* A window of the session before: motes that are left in it, or look for it without a word, listen
 * now, and hear of this one. */
static void former_window(void)
{
    if (tree_joined() && !window_is_open(WINDOW_CONTROL)) {
        radio_channel(channel_search(control.former_channel));
        control_window_beacon_now();
    }
    control.former_channel++;
    control.former_due += CONTROL_SELDOM * CLOCK_TICKS_PER_SECOND;
    if (session_is_young())
        timer_start(&control.former, control.former_due, former_window);
}

void control_window_session(bool again)
{
    session_begins(again);
    if (!again || !time_known())
        return;
    uint32_t window = time_at(clock_now()).seconds / CONTROL_SELDOM + 1;
    control.former_channel = (uint8_t)window;
    control.former_due = time_local((struct net_time){window * CONTROL_SELDOM, 0});
    timer_start(&control.former, control.former_due, former_window);
}

void control_window_heard(void)
{
    if (window_is_open(WINDOW_CONTROL))
        window_look_after(CLOCK_MS(QUIET_MS), quiet);
}

void control_window_beacon_heard(void)
{
    ticks_t due = clock_now() + CLOCK_MS(LINGER_BEACON_MS);
    if (window_is_open(WINDOW_CONTROL))
        window_look_not_before(due, quiet);
}

void search_leave_notice(uint16_t before)
{
    slotframe_enter(time_at(clock_now() + before).seconds); /* whether others are awake in it */
    if (!slotframe_has_control())
        return;
    radio_channel(channel_control(slotframe_round()));
    control.beacon_due = true;
    timer_after(&control.send,
                (uint16_t)(before + random_between(GUARD_TIME,
                                                   GUARD_TIME + CLOCK_MS(CONTROL_SHORTEST_MS / 2))),
                send_next);
}

void control_window_left(bool awake)
{
    control.leave_notice_again = true;
    if (awake && tree_leave_notice_due())
        search_leave_notice(0);
}
