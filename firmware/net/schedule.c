#include "net/schedule.h"

#include "kernel/timer.h"
#include "net/neighbours.h"
#include "net/clocksync.h"
#include "net/dissemination.h"
#include "net/mac.h"
#include "net/outbox.h"
#include "net/random.h"
#include "net/status.h"
#include "net/tree.h"
#include "net/uplink.h"
#include "query/query.h"

/* The round, in ms of its second. */
#define CONTROL_EVERY 4     /* rounds */
#define CONTROL_LONGEST 220
#define CONTROL_SHORTEST 48 /* beacons are spread over the first four fifths of it */
#define SLOT_FIRST 250
#define SLOT_LENGTH 90
#define SLOTS 8
#define ROUND_OVER (SLOT_FIRST + SLOTS * SLOT_LENGTH + 5)
/* Every eighth round has data slots whatever the queries: status, acknowledgements, what was left over. */
#define DATA_EVERY 8
/* Between frames of a flood, ms, and up to twice that: the last one is to be two hops away before the next. */
#define FLOOD_PAUSE 7
/* A listener sleeps after so much silence. */
#define QUIET_CONTROL 30
#define QUIET_DATA 40
#define QUIET_FLUSH 25
/* It stays so long for questions after a beacon, and for repetitions after a child's last frame. */
#define BEACON_SOON 16
#define LINGER_BEACON 14
#define LINGER_DATA 10
/* Who begins a session stays awake for so long, s: neighbours that still live in the one before beacon by another clock. */
#define AWAKE_SECONDS 13
/* Clocks may disagree by so much: listeners are early and late by it. */
#define GUARD CLOCK_MS(2)

enum step { STEP_CONTROL, STEP_LISTEN, STEP_SEND, STEP_OVER };

static struct timer step_timer, end_timer, quiet_timer, beacon_timer, send_timer;
static enum step step;
static uint32_t round;
static bool in_control, listening, sending, beacon_due, child_pending;
static ticks_t control_began;
static bool awake = true;
static uint32_t session_began;
static struct mac_frame beacon;

static void next_step(void);
static void detached_wait(void);

static uint8_t slot_of(uint8_t level) { return level >= SLOTS ? 0 : (uint8_t)(SLOTS - level); }

static ticks_t at(uint32_t second, uint16_t ms)
{
    return time_local((struct net_time){second, (uint16_t)((uint32_t)ms * 4096U / 125U)});
}

bool schedule_session_young(void)
{
    if (awake && clock_uptime() - session_began >= AWAKE_SECONDS) awake = false;
    return awake;
}

static bool has_control(uint32_t second) { return second % CONTROL_EVERY == 0; }

/* Readings of an epoch travel in the next round; the one after that is for what failed. */
static bool has_rows(uint32_t second) { return second % DATA_EVERY == 0 || (second > 0 && query_epoch_in(second - 1)); }
static bool has_data(uint32_t second) { return has_rows(second) || (second > 1 && query_epoch_in(second - 2)); }

static void sleep_if_idle(void)
{
    if (!time_known() || !tree_joined() || in_control || listening || sending || mac_busy()) return;
    if (schedule_session_young()) return;
    radio_off();
}

/* Room for this frame and one that may be in the chip already: what is acknowledged is kept. */
static void accept_by_room(void) { radio_accept_unicast(queue_room() >= 2 * (WIRE_PACKET_MAXIMUM + 8 * sizeof(struct queue_record))); }

void schedule_queue_grew(void)
{
    if (listening || sending) accept_by_room();
}

void schedule_session(void)
{
    awake = true;
    session_began = clock_uptime();
}

/* ---- control window ---- */
static void control_end(void)
{
    if (!in_control) return;
    in_control = false;
    timer_stop(&beacon_timer);
    timer_stop(&quiet_timer);
    timer_stop(&end_timer);
    if (mac_busy()) mac_cancel();
    tree_age();
    sleep_if_idle();
}

static void control_quiet(void)
{
    ticks_t earliest = control_began + GUARD + CLOCK_MS(CONTROL_SHORTEST);
    if (dissemination_waiting() || beacon_due || mac_busy()) timer_start(&quiet_timer, clock_now() + CLOCK_MS(10), control_quiet);
    else if (!clock_reached(clock_now(), earliest)) timer_start(&quiet_timer, earliest, control_quiet);
    else control_end();
}

static void beacon_sent(enum radio_outcome outcome)
{
    (void)outcome;
    dissemination_sent();
}

static void beacon_or_flood(void)
{
    if (!(in_control || tree_farewell()) || !radio_is_on()) return;
    if (mac_busy()) {
        timer_start(&beacon_timer, clock_now() + CLOCK_MS(3), beacon_or_flood);
        return;
    }
    /* Floods first: they have several hops to go before motes far away call it quiet. But a beacon there must be. */
    bool beacon_overdue = beacon_due && clock_reached(clock_now(), control_began + CLOCK_MS(CONTROL_SHORTEST));
    if (tree_joined() && !beacon_overdue && dissemination_waiting() && dissemination_send()) return;
    if (beacon_due && (tree_joined() || tree_farewell())) {
        beacon_due = false;
        struct wire_beacon *body = mac_begin(&beacon, WIRE_BROADCAST, WIRE_PACKET_BEACON);
        beacon.stamp = (uint8_t)((const uint8_t *)&body->seconds - beacon.bytes);
        mac_finish(&beacon, tree_write_beacon(body));
        mac_send(&beacon, 1, beacon_sent);
    }
}

void dissemination_sent(void)
{
    schedule_heard(false);
    if (in_control && (beacon_due || dissemination_waiting()))
        timer_start(&beacon_timer, clock_now() + CLOCK_MS(FLOOD_PAUSE) + random_below(CLOCK_MS(FLOOD_PAUSE)), beacon_or_flood);
}

void schedule_control(void)
{
    if (in_control && dissemination_waiting()) timer_start(&beacon_timer, clock_now() + 1 + random_below(CLOCK_MS(6)), beacon_or_flood);
}

static void control_begin(void)
{
    in_control = true;
    control_began = clock_now();
    beacon_due = tree_beacon_due(round);
    dissemination_window();
    radio_accept_unicast(true);
    radio_on();
    uint16_t spread = dissemination_waiting() ? 4 : CONTROL_SHORTEST * 4 / 5;
    if (beacon_due || dissemination_waiting())
        timer_start(&beacon_timer, clock_now() + 2 * GUARD + random_below((uint16_t)CLOCK_MS(spread)), beacon_or_flood);
    timer_start(&quiet_timer, clock_now() + GUARD + CLOCK_MS(CONTROL_SHORTEST), control_quiet);
    timer_start(&end_timer, clock_now() + GUARD + CLOCK_MS(CONTROL_LONGEST), control_end);
}

/* In the window that is open, by whatever clock, or in one of this mote alone. */
void schedule_beacon_now(void)
{
    if (!tree_joined()) return;
    if (!in_control) {
        in_control = true;
        control_began = clock_now();
        radio_accept_unicast(true);
        radio_on();
        timer_start(&end_timer, clock_now() + CLOCK_MS(CONTROL_LONGEST), control_end);
    }
    beacon_due = true;
    timer_start(&beacon_timer, clock_now() + CLOCK_MS(2) + random_below(CLOCK_MS(BEACON_SOON)), beacon_or_flood);
    timer_start(&quiet_timer, clock_now() + CLOCK_MS(QUIET_CONTROL), control_quiet);
}

void schedule_beacon_heard(void)
{
    ticks_t due = clock_now() + CLOCK_MS(LINGER_BEACON);
    if (in_control && quiet_timer.running && clock_reached(due, quiet_timer.due)) timer_start(&quiet_timer, due, control_quiet);
}

/* ---- data slots ---- */
static void listen_end(void)
{
    if (!listening) return;
    listening = false;
    timer_stop(&quiet_timer);
    timer_stop(&end_timer);
    sleep_if_idle();
}

static void listen_quiet(void)
{
    if (!child_pending) listen_end();
}

static void listen_begin(void)
{
    if (!tree_is_root() && !tree_has_children()) return;
    control_end();
    listening = true;
    child_pending = false;
    neighbours_slot_begins();
    accept_by_room();
    radio_on();
    timer_start(&quiet_timer, clock_now() + 2 * GUARD + CLOCK_MS(has_rows(round) ? QUIET_DATA : QUIET_FLUSH), listen_quiet);
    timer_start(&end_timer, clock_now() + 2 * GUARD + CLOCK_MS(SLOT_LENGTH), listen_end);
}

void schedule_heard(bool pending)
{
    if (in_control) timer_start(&quiet_timer, clock_now() + CLOCK_MS(QUIET_CONTROL), control_quiet);
    if (!listening) return;
    child_pending = pending;
    accept_by_room();
    timer_start(&quiet_timer, clock_now() + CLOCK_MS(QUIET_DATA), listen_quiet);
}

void schedule_bundle(uint16_t source, bool pending)
{
    struct neighbour *child = neighbour_find(source);
    schedule_heard(pending);
    if (child) child->done = !pending;
    if (listening && !pending && neighbours_children_done()) timer_start(&quiet_timer, clock_now() + CLOCK_MS(LINGER_DATA), listen_quiet);
}

static void send_end(void)
{
    sending = false;
    uplink_stop();
    sleep_if_idle();
}

void uplink_done(void)
{
    sending = false;
    timer_stop(&send_timer);
    sleep_if_idle();
}

static void send_begin(void)
{
    if (!uplink_waiting()) return;
    /* Levels that share the first slot go on listening to their children, who send in it, too. */
    if (tree_own_level() < SLOTS) listen_end();
    sending = true;
    accept_by_room();
    radio_on();
    timer_start(&send_timer, clock_now() + CLOCK_MS(SLOT_LENGTH - 5), send_end);
    uplink_start(!has_rows(round));
}

/* ---- the round ---- */
static void run_step(void)
{
    switch (step) {
    case STEP_CONTROL:
        clocksync_tick(tree_is_root());
        status_round(round);
        if (has_control(round)) control_begin();
        break;
    case STEP_LISTEN:
        if (has_data(round)) listen_begin();
        break;
    case STEP_SEND:
        if (has_data(round)) send_begin();
        break;
    case STEP_OVER:
        if (tree_is_root() && has_data(round)) link_round_over();
        break;
    }
    if (step == STEP_OVER) round++;
    step = step == STEP_OVER ? STEP_CONTROL : (enum step)(step + 1);
    next_step();
}

static void next_step(void)
{
    uint8_t level = tree_own_level();
    ticks_t due = 0;
    if (step == STEP_SEND && level == 0) step = STEP_OVER; /* the root has nobody to send to */
    switch (step) {
    case STEP_CONTROL: due = at(round, 0) - GUARD; break;
    case STEP_LISTEN: due = at(round, (uint16_t)(SLOT_FIRST + SLOT_LENGTH * slot_of((uint8_t)(level + 1)))) - GUARD; break;
    case STEP_SEND: due = at(round, (uint16_t)(SLOT_FIRST + SLOT_LENGTH * slot_of(level))) + GUARD; break;
    case STEP_OVER: due = at(round, ROUND_OVER); break;
    }
    timer_start(&step_timer, due, run_step);
}

/* Outside the tree there are no rounds, but neighbours age all the same, and children listen when the control windows are. */
static void detached(void)
{
    clocksync_tick(tree_is_root());
    if (tree_farewell()) {
        beacon_due = true;
        timer_start(&beacon_timer, clock_now() + GUARD + random_below(CLOCK_MS(CONTROL_SHORTEST / 2)), beacon_or_flood);
    }
    tree_age();
    detached_wait();
}

static void detached_wait(void)
{
    ticks_t due = clock_now() + CONTROL_EVERY * CLOCK_TICKS_PER_SECOND;
    if (time_known()) due = at((time_at(clock_now() + 2 * GUARD).seconds / CONTROL_EVERY + 1) * CONTROL_EVERY, 0);
    timer_start(&step_timer, due, detached);
}

void schedule_restart(void)
{
    timer_stop(&step_timer);
    if (!time_known() || !tree_joined()) {
        control_end();
        listen_end();
        timer_stop(&send_timer);
        sending = false;
        uplink_stop();
        radio_accept_unicast(true);
        radio_on();
        detached_wait();
        return;
    }
    round = time_at(clock_now() + GUARD).seconds + 1;
    step = STEP_CONTROL;
    next_step();
    /* In the control window in which it joined, a mote beacons at once: the tree grows several levels in one. */
    if (!tree_is_root()) schedule_beacon_now();
}

void schedule_init(void) { schedule_restart(); }
