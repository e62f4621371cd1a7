#include "net/schedule/schedule.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/channels.h"
#include "net/mac/clocksync.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/net_conf.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/schedule/search.h"
#include "net/transport/dissemination.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/snoop.h"
#include "net/transport/uplink.h"

/* Where all queries are this slow, in ms, or there are none, CONTROL_SELDOM holds, once a session
 * is so old, in s. */
#define SLOW_MS 10000
#define SESSION_YOUNG 150
/* A control window, ms. */
#define CONTROL_LONGEST 220
#define CONTROL_SHORTEST 48
/* Where the next window is seldom, so much more for each hop from CONTROL_NEAR on, up to
 * CONTROL_FAR: a flood whose first frames collided comes there when it would be quiet already, and
 * would be heard in that next window. */
#define CONTROL_HOP 8
#define CONTROL_NEAR 2
#define CONTROL_FAR 8
/* Beacons are spread over so much of it. Where many leaves beacon, they leave its beginning to
 * motes with children: a relay among them would never hear its own parent, whom they do not hear.
 */
#define CONTROL_BEACONS CLOCK_MS(38)
#define CONTROL_LEADERS CLOCK_MS(12)
#define CONTROL_DENSE 16
/* From one number's cell to the next one's, prime to all lengths: who needs two cells does not
 * always meet the next number. */
#define CELL_STEP 7
/* Who has more to send than there was time for begins so many cells before the end of its slot. */
#define IN_TIME 8
/* Every second control round has data slots whatever the queries: status, acknowledgements, what
 * was left over. */
#define DATA_EVERY 2
/* Rounds after that of an epoch's rows in which what failed is sent again. */
#define FLUSH_ROUNDS 8
/* At least so many more after a frame that says that its sender is not done. */
#define MORE_ROUNDS 3
/* Between frames of a flood, ms, and up to twice that: the last one is to be two hops away before
 * the next. */
#define FLOOD_PAUSE 7
/* A listener sleeps after so much silence. */
#define QUIET_CONTROL 30
#define QUIET_DATA 40
/* … after the beginning of a frame that was lost: as long as a flood's next may take. */
#define QUIET_LOST (2 * FLOOD_PAUSE + 6)
/* It stays so long for questions after a beacon, and for repetitions after a child's last frame. */
#define BEACON_SOON 16
#define LINGER_BEACON 14
#define LINGER_DATA 10
/* Who asks for news of the root outside the tree, and has heard none, asks again after so many ms.
 */
#define ASK_AGAIN 60
/* Who begins a session stays awake for so long, s; longer where there was one before: neighbours
 * that still live in that beacon by another clock, in a slow network each 48 s, on both channels by
 * turns. */
#define AWAKE_SECONDS 13
#define AWAKE_AGAIN_SECONDS 100
/* Bytes of the queue that the records of a frame take: each has two more there than in the frame,
 * and a row takes twelve. */
#define FRAME_ROOM (WIRE_PACKET_MAXIMUM * 7 / 6)
/* Bytes kept for this mote's own records of an epoch, at most. */
#define OWN_ROOM (4 * FRAME_ROOM)
/* Clocks may disagree by so much: listeners are early and late by it. */
#define GUARD CLOCK_MS(2)
/* A parent listens so long in a child's cell, from GUARD before it on, unless a frame comes. */
#define CELL_EAR (2 * GUARD + CLOCK_MS(4))
#define CELL_HEARD 6 /* ms from the cell's start */
/* Frames begin until so long behind their slot, ms. */
#define LAST_FRAME (SLOT_CELL_MS / 2)
/* From a frame's beginning until what it says is known, at most. */
#define LONGEST_FRAME CLOCK_MS(7)

/* Who snoops is that early, and listens that long: what it misses is sent, and no harm is done. A
 * frame begins within 2 ms of its cell. Where it may be silent because of one other only, it
 * listens to the end of that one's cell, as long frames are worth it too. */
#define SNOOP_GUARD 24
#define SNOOP_EAR (SNOOP_GUARD + 85)
/* Where a query snoops, a child that was silent in so many rounds is taken to have nothing to send.
 */
#define SILENT_ROUNDS 2

static struct timer step_timer, end_timer, quiet_timer, beacon_timer, send_timer;
static uint32_t round;
static bool in_control, listening, snooping, sending, beacon_due;
/* in the first window in which it is said, twice: a child that has not heard it comes a window
 * later */
static bool farewell_again;
static bool cut_short; /* the slot was over before all was sent */
/* of the queue: free bytes behind the last data slot, bytes that this mote has added since */
static uint16_t room_before, own_records;
/* the parent that has been told that nothing is left of the epoch */
static uint16_t told_done = WIRE_NO_NODE;
static bool ear;                       /* while listening: the radio is on for a child's cell */
static uint8_t since_rows = UINT8_MAX; /* rounds since the last for an epoch's rows */
static ticks_t control_began;
static uint8_t awake_seconds; /* 0: no more */
static uint32_t session_began;
static struct timer former_timer;
/* counts the windows of the session before that come each 16 s: they are on both channels by turns
 */
static uint8_t former;
static ticks_t former_due;

/* A mote's cell in the slot of its level. Numbers that differ by less than the slot has cells never
 * meet; others do in one round and not in the next. */
static uint16_t cell_start(uint8_t level, uint16_t node)
{
    uint8_t cells = slot_table_cells(level), cell = (uint8_t)(node % cells * CELL_STEP % cells);
    if (node >= cells)
        cell = (uint8_t)((cell + node / cells * (uint16_t)((1 + round) % cells)) % cells);
    return (uint16_t)(slot_table_start(level) + (uint16_t)(cell * SLOT_CELL_MS));
}

/* In this round. `ms`: at most 1488. Each ms is 32 ticks and 96/125, by a factor of 2^16 that
 * rounds down to the same so far. */
static ticks_t at(uint16_t ms)
{
    return time_local(
        (struct net_time){round, (uint16_t)(ms * 32U + (uint16_t)((uint32_t)ms * 50332U >> 16))});
}

bool schedule_session_young(void)
{
    if (clock_uptime() - session_began >= awake_seconds)
        awake_seconds = 0;
    return awake_seconds > 0;
}

/* There is a fast query. `settled`: for whom only those count whose flood is over. */
static bool fast(bool settled)
{
    uint8_t ids[WIRE_QUERIES_MAXIMUM], count = app_held(ids);
    for (uint8_t i = 0; i < count; i++)
        if ((!settled || dissemination_settled(ids[i])) && app_period(ids[i]) < SLOW_MS)
            return true;
    return false;
}

static bool slow(bool settled) { return round >= SESSION_YOUNG && !fast(settled); }

/* Whoever does not know of a fast query yet is awake in a part of its windows. */
bool schedule_slow(void) { return slow(false); }

/* Who knows that it lacks a query, which may be a fast one, asks again as soon as those that hold
 * that would be awake. */
static uint8_t control_every(void)
{
    return schedule_slow() && !dissemination_behind() ? CONTROL_SELDOM : CONTROL_EVERY;
}

/* `rounds`: a power of two. */
static bool each(uint8_t rounds) { return ((uint8_t)round & (uint8_t)(rounds - 1)) == 0; }

static bool has_control(void) { return each(control_every()); }

/* In which those are awake as well that do not know of queries on their way. */
static bool control_common(void) { return each(CONTROL_SELDOM) || !slow(true); }

/* Readings of an epoch travel in the next round; those after that are for what failed. */
static bool has_rows(void) { return round > 0 && app_epoch_in(round - 1); }
static bool has_rest(void) { return each((uint8_t)(DATA_EVERY * control_every())); }
/* Not in the round in which an epoch begins: some motes would have its rows already, and their
 * parents not expect them. */
static bool has_data(void)
{
    return since_rows == 0 || ((since_rows <= FLUSH_ROUNDS || has_rest()) && !app_epoch_in(round));
}

static void sleep_if_idle(void)
{
    if (!time_known() || !tree_joined() || in_control || ear || sending || mac_busy())
        return;
    if (schedule_session_young())
        return;
    radio_off();
}

/* Room for this frame and those that the radio may hold already: what is acknowledged is kept. And
 * for this mote's own records of the next epoch, of which nobody else has a copy: children can
 * wait. */
static void accept_by_room(void)
{
    radio_accept_unicast(queue_room() >= (1 + RADIO_HELD) * FRAME_ROOM + own_records);
}

/* No more was heard since the last data slot than this mote's own records of an epoch. */
static void measure_own(void)
{
    uint16_t room = queue_room(), bytes = room < room_before ? (uint16_t)(room_before - room) : 0;
    own_records = bytes < OWN_ROOM ? bytes : OWN_ROOM;
}

void queue_grew(void)
{
    if (ear || sending)
        accept_by_room();
}

/* ---- control window ---- */
static void control_end(void)
{
    if (!in_control)
        return;
    in_control = false;
    timer_stop(&beacon_timer);
    timer_stop(&quiet_timer);
    timer_stop(&end_timer);
    if (mac_busy())
        mac_cancel();
    tree_age();
    sleep_if_idle();
}

/* For so long this mote listens at least. */
static ticks_t control_shortest(void)
{
    uint8_t level = tree_own_level(), hops;
    if (!schedule_slow() || level <= CONTROL_NEAR)
        return CLOCK_MS(CONTROL_SHORTEST);
    hops = (uint8_t)((level < CONTROL_FAR ? level : CONTROL_FAR) - CONTROL_NEAR);
    return CLOCK_MS(CONTROL_SHORTEST) + hops * CLOCK_MS(CONTROL_HOP);
}

static void control_quiet(void)
{
    ticks_t earliest = control_began + GUARD + control_shortest(),
            heard = radio_last_start() + CLOCK_MS(QUIET_LOST);
    /* A frame that was lost, in a collision most likely, may be a flood's: it comes again. */
    if (!clock_reached(earliest, heard))
        earliest = heard;
    if (dissemination_waiting() || beacon_due || mac_busy() || tree_seeks())
        timer_after(&quiet_timer, CLOCK_MS(10), control_quiet);
    else if (!clock_reached(clock_now(), earliest))
        timer_start(&quiet_timer, earliest, control_quiet);
    else
        control_end();
}

/* Outside the tree, for as long as its window is open: the answer is a beacon, which may be lost.
 */
static void ask(void)
{
    if (tree_joined() || !radio_is_on() || !tree_farewell() || !tree_seek())
        return;
    dissemination_send();
    timer_after(&beacon_timer, CLOCK_MS(ASK_AGAIN), ask);
}

static void beacon_or_flood(void);

static void beacon_sent(enum radio_outcome outcome)
{
    (void)outcome;
    if (tree_joined() || !has_control())
        dissemination_sent();
    else if (farewell_again) {
        farewell_again = false;
        beacon_due = true;
        timer_after(&beacon_timer, random_between(CLOCK_MS(FLOOD_PAUSE), 2 * CLOCK_MS(FLOOD_PAUSE)),
                    beacon_or_flood);
    } else
        ask();
}

static void beacon_or_flood(void)
{
    if (!(in_control || tree_farewell()) || !radio_is_on())
        return;
    if (mac_busy()) {
        timer_after(&beacon_timer, CLOCK_MS(3), beacon_or_flood);
        return;
    }
    /* Floods first: they have several hops to go before motes far away call it quiet. But a beacon
     * there must be. */
    bool beacon_overdue = beacon_due && clock_now() - control_began >= CLOCK_MS(CONTROL_SHORTEST);
    if (tree_joined() && !beacon_overdue && dissemination_waiting() && dissemination_send())
        return;
    if (beacon_due && (tree_joined() || tree_farewell())) {
        beacon_due = false;
        struct wire_beacon *body = mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_BEACON);
        control_frame.stamp = (uint8_t)((const uint8_t *)&body->seconds - control_frame.bytes);
        mac_finish(&control_frame, tree_write_beacon(body));
        mac_send(&control_frame, 1, beacon_sent);
    }
}

void dissemination_sent(void)
{
    schedule_heard(false);
    if (in_control && (beacon_due || dissemination_waiting()))
        timer_after(&beacon_timer, random_between(CLOCK_MS(FLOOD_PAUSE), 2 * CLOCK_MS(FLOOD_PAUSE)),
                    beacon_or_flood);
}

void schedule_control(void)
{
    if (in_control && dissemination_waiting())
        timer_after(&beacon_timer, 1 + random_below(CLOCK_MS(6)), beacon_or_flood);
}

static void control_begin(void)
{
    in_control = true;
    control_began = clock_now();
    beacon_due = tree_beacon_due(round);
    dissemination_window(control_common());
    radio_accept_unicast(true);
    radio_channel(channel_control(round));
    radio_on();
    bool flood = dissemination_waiting(),
         waits = !flood && !tree_has_children() && neighbour_count() >= CONTROL_DENSE;
    uint16_t from = waits ? CONTROL_LEADERS : 0, to = flood ? CLOCK_MS(4) : CONTROL_BEACONS;
    if (beacon_due || flood)
        timer_after(&beacon_timer, (uint16_t)(2 * GUARD + random_between(from, to)),
                    beacon_or_flood);
    timer_after(&quiet_timer, GUARD + CLOCK_MS(CONTROL_SHORTEST), control_quiet);
    timer_after(&end_timer, GUARD + CLOCK_MS(CONTROL_LONGEST), control_end);
}

/* In the window that is open, by whatever clock, or in one of this mote alone. */
void schedule_beacon_now(void)
{
    if (!tree_joined())
        return;
    if (!in_control) {
        in_control = true;
        control_began = clock_now();
        radio_accept_unicast(true);
        radio_on();
        timer_after(&end_timer, CLOCK_MS(CONTROL_LONGEST), control_end);
    }
    beacon_due = true;
    timer_after(&beacon_timer, random_between(CLOCK_MS(2), CLOCK_MS(2) + CLOCK_MS(BEACON_SOON)),
                beacon_or_flood);
    timer_after(&quiet_timer, CLOCK_MS(QUIET_CONTROL), control_quiet);
}

/* A window of the session before: whoever is left in it, or looks for it without a word, listens
 * now, and hears of this one. */
static void former_window(void)
{
    if (tree_joined() && !in_control) {
        radio_channel(channel_search(former));
        schedule_beacon_now();
    }
    former++;
    former_due += CONTROL_SELDOM * CLOCK_TICKS_PER_SECOND;
    if (schedule_session_young())
        timer_start(&former_timer, former_due, former_window);
}

void schedule_session(bool again)
{
    awake_seconds = again ? AWAKE_AGAIN_SECONDS : AWAKE_SECONDS;
    session_began = clock_uptime();
    if (!again || !time_known())
        return;
    uint32_t window = time_at(clock_now()).seconds / CONTROL_SELDOM + 1;
    former = (uint8_t)window;
    former_due = time_local((struct net_time){window * CONTROL_SELDOM, 0});
    timer_start(&former_timer, former_due, former_window);
}

void schedule_beacon_heard(void)
{
    ticks_t due = clock_now() + CLOCK_MS(LINGER_BEACON);
    if (in_control && quiet_timer.running && clock_reached(due, quiet_timer.due))
        timer_start(&quiet_timer, due, control_quiet);
}

/* ---- data slots ---- */
static void ear_close(void)
{
    ear = false;
    sleep_if_idle();
}

static void listen_end(void)
{
    if (!listening)
        return;
    listening = false;
    timer_stop(&quiet_timer);
    timer_stop(&end_timer);
    ear_close();
}

static void ear_open(void)
{
    ear = true;
    accept_by_room();
    radio_on();
}

static void listen_cell(void);

/* A root listens to the whole slot: its children are many, and its CPU is late where the serial
 * line is slow. Other parents do when an epoch's rows come, and what failed for the first time, if
 * they have children whose cells they do not know. */
static bool hears_all(void)
{
    if (!tree_is_root())
        return since_rows < SILENT_ROUNDS && neighbours_crowded();
    return since_rows <= FLUSH_ROUNDS || neighbour_count() == NEIGHBOURS;
}

static void snoop_over(void)
{
    if (!snooping)
        return;
    snooping = false;
    timer_stop(&quiet_timer);
    radio_snoop(false);
    snoop_end();
    ear_close();
}

/* Children that have not said they are done; while snooping, siblings. */
static bool of_interest(const struct neighbour *neighbour)
{
    if (!snooping)
        return neighbour_is_child(neighbour) && neighbour->done != NEIGHBOUR_SILENT;
    return neighbour->level == tree_own_level();
}

static bool follows(void) { return snooping && snoop_speaker() != WIRE_NO_NODE; }

/* When this mote sends, ms: in its own cell. The root listens to the whole slot: where the cell
 * comes before that of the one that this mote may count as, it sends behind this one; where the
 * slot was over last time before all was sent, not in one of the last cells. */
static uint16_t send_start(void)
{
    uint8_t level = tree_own_level();
    uint16_t own = cell_start(level, settings()->nodeid);
    if (level != 1)
        return own;
    if (cut_short) {
        uint16_t first = slot_table_start(level),
                 latest = (uint16_t)(slot_table_end(level) - IN_TIME * SLOT_CELL_MS);
        if (latest < first)
            latest = first;
        return own < latest ? own : latest;
    }
    if (!follows())
        return own;
    uint16_t behind = cell_start(level, snoop_speaker()) + SLOT_CELL_MS;
    return own > behind ? own : behind;
}

/* The cells of interest that are still to come: the radio is off until the next. */
static void listen_next(void)
{
    if (hears_all())
        return;
    /* A frame that comes in, or has not reached the main loop yet, may say that more follows. */
    if (ear && !snooping && clock_now() - radio_last_start() < LONGEST_FRAME) {
        timer_after(&quiet_timer, CLOCK_MS(2), listen_next);
        return;
    }
    /* All in ms of the round: to reckon with network time takes a third of one. */
    uint16_t now = (uint16_t)((uint32_t)(clock_now() - at(0)) * 125 >> 12);
    uint8_t level = (uint8_t)(tree_own_level() + !snooping);
    if (snooping)
        ear_close();
    const uint16_t limit = snooping ? send_start() : UINT16_MAX;
    uint16_t first = limit;
    if (follows()) {
        uint16_t start = cell_start(level, snoop_speaker());
        if (now < start && start < first)
            first = start;
    } else
        for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n)) {
            if (!of_interest(n))
                continue;
            uint16_t start = cell_start(level, n->node);
            /* it has not been */
            if (now < (snooping ? start : start + CELL_HEARD) && start < first)
                first = start;
        }
    if (first == limit || (snooping && !snoop_take_cell())) {
        /* The last frame may still be on its way out of the radio: snooping is over when the own
         * cell begins. */
        if (!snooping)
            listen_end();
        return;
    }
    ticks_t due = at(first) - (snooping ? SNOOP_GUARD : GUARD);
    if (!clock_reached(clock_now() + CLOCK_MS(2), due))
        ear_close();
    timer_start(&quiet_timer, due, listen_cell);
}

static void listen_cell(void)
{
    ear_open();
    timer_after(&quiet_timer,
                (follows()  ? SNOOP_GUARD + CLOCK_MS(SLOT_CELL_MS)
                 : snooping ? SNOOP_EAR
                            : CELL_EAR),
                listen_next);
}

static void snoop_start(void)
{
    /* Levels that share the first slot are not told apart, and what fails is sent again all the
     * same. */
    if (since_rows != 0 || slot_table_shared(tree_own_level()) || dissemination_greeting() ||
        !snoop_begin())
        return;
    listen_end();
    snooping = true;
    radio_snoop(true);
    listen_next();
}

void net_overheard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length)
{
    if (!snooping)
        return;
    if (snoop_heard(source, destination, body, length))
        timer_after(&quiet_timer, 0, listen_next);
    else
        snoop_over();
}

/* Of the slot of this mote's children. */
static ticks_t children_end(void)
{
    return at(slot_table_end((uint8_t)(tree_own_level() + 1)) + LAST_FRAME);
}

static void listen_until(ticks_t end)
{
    listening = true;
    timer_start(&end_timer, end, listen_end);
}

static void listen_begin(void)
{
    if (!tree_has_children() && !hears_all())
        return;
    /* where a beacon of this mote's own, in between, has taken the timer that was to end it */
    listening = false;
    if (neighbour_count() < NEIGHBOURS && neighbours_children_silent())
        return;
    listen_until(children_end());
    if (hears_all())
        ear_open();
    else
        listen_next();
}

/* A child began so late in its cell that the radio was to be off already, and says that it has more
 * for this slot. */
static void listen_again(void)
{
    ticks_t end = children_end();
    if (in_control || sending || clock_reached(clock_now(), end))
        return;
    listen_until(end);
    ear_open();
}

void schedule_heard(bool pending)
{
    if (in_control)
        timer_after(&quiet_timer, CLOCK_MS(QUIET_CONTROL), control_quiet);
    if (!listening && pending)
        listen_again();
    if (!listening)
        return;
    /* A long frame ends when its cell's time is up: the radio may be off already, and more follows
     * at once. */
    if (pending)
        ear_open();
    else
        accept_by_room();
    if (!hears_all())
        timer_after(&quiet_timer, pending ? CLOCK_MS(QUIET_DATA) : CLOCK_MS(LINGER_DATA),
                    listen_next);
}

/* A frame with these flags has been sent or received. */
static void go_on(uint8_t flags)
{
    if (flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER) &&
        since_rows > FLUSH_ROUNDS - MORE_ROUNDS)
        since_rows = FLUSH_ROUNDS - MORE_ROUNDS;
}

void schedule_bundle(uint16_t source, uint8_t flags)
{
    go_on(flags);
    struct neighbour *child = neighbour_find(source);
    if (child)
        child->done = flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER) ? 0 : 1;
    schedule_heard(flags & WIRE_BUNDLE_PENDING);
}

bool uplink_expects_more(void)
{
    return since_rows < FLUSH_ROUNDS && tree_has_children() && !neighbours_children_done();
}

void uplink_sent(uint8_t flags)
{
    go_on(flags);
    told_done =
        flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER) ? WIRE_NO_NODE : tree_own_parent();
}

static void send_end(void)
{
    sending = false;
    uplink_stop();
    cut_short = uplink_waiting();
    sleep_if_idle();
}

void uplink_done(void)
{
    sending = cut_short = false;
    timer_stop(&send_timer);
    sleep_if_idle();
}

static void send_begin(void)
{
    snoop_over();
    app_fill_in();
    /* After a frame that said so, the parent does not listen until there is something new. */
    if (!uplink_waiting() || told_done == tree_own_parent() || dissemination_greeting())
        return;
    /* Levels that share the first slot go on listening to their children, who send in it, too. */
    if (!slot_table_shared(tree_own_level()))
        listen_end();
    sending = true;
    accept_by_room();
    radio_on();
    timer_start(&send_timer, at(slot_table_end(tree_own_level()) + LAST_FRAME), send_end);
    uplink_start();
}

/* ---- the round: each step plans the next ---- */
static void control_step(void), listen_step(void), snoop_step(void), send_step(void),
    over_step(void);

static void next_step(uint16_t ms, uint8_t early, timer_handler *step)
{
    timer_start(&step_timer, at(ms) - early, step);
}

static void control_step(void)
{
    clocksync_tick(tree_is_root());
    slot_table_round((uint16_t)round);
    schedule_round_begins((uint16_t)round);
    if (has_rows())
        since_rows = 0;
    else if (since_rows != UINT8_MAX)
        since_rows++;
    if (has_control())
        control_begin();
    next_step(slot_table_start((uint8_t)(tree_own_level() + 1)), GUARD, listen_step);
}

static void listen_step(void)
{
    if (has_data()) {
        control_end();
        radio_channel(channel_data((uint16_t)round));
        bool fresh = since_rows == 0 || has_rest();
        if (since_rows == 0)
            measure_own();
        neighbours_round(fresh);
        if (since_rows == SILENT_ROUNDS && snoop_alone())
            neighbours_silence();
        if (fresh)
            told_done = WIRE_NO_NODE;
        listen_begin();
    }
    /* the root has nobody to send to */
    if (tree_own_level() == 0)
        next_step(slot_table_over() + LAST_FRAME, 0, over_step);
    else
        next_step(slot_table_start(tree_own_level()), SNOOP_GUARD, snoop_step);
}

static void snoop_step(void)
{
    if (has_data())
        snoop_start();
    next_step(send_start(), 0, send_step);
}

static void send_step(void)
{
    if (has_data())
        send_begin();
    next_step(slot_table_over(), 0, over_step);
}

static void over_step(void)
{
    if (has_data())
        room_before = queue_room();
    if (tree_is_root()) {
        bool data = has_data();
        if (data)
            app_fill_in();
        schedule_round_over(data);
        slot_table_decide(round, schedule_report_rounds(),
                          fast(false) ? CONTROL_EVERY : CONTROL_SELDOM);
    }
    radio_channel(channel_home());
    round++;
    next_step(0, GUARD, control_step);
}

void search_farewell(uint16_t before)
{
    round = time_at(clock_now() + before).seconds; /* whether others are awake in it */
    if (!has_control())
        return;
    radio_channel(channel_control(round));
    beacon_due = true;
    timer_after(&beacon_timer,
                (uint16_t)(before + random_between(GUARD, GUARD + CLOCK_MS(CONTROL_SHORTEST / 2))),
                beacon_or_flood);
}

void schedule_restart(void)
{
    timer_stop(&step_timer);
    if (!time_known() || !tree_joined()) {
        bool awake = in_control; /* neighbours are */
        control_end();
        listen_end();
        snoop_over();
        timer_stop(&send_timer);
        sending = false;
        uplink_stop();
        since_rows = UINT8_MAX; /* nobody listens for what it had then, once it is back */
        search_begin();
        farewell_again = true;
        if (awake && tree_farewell())
            search_farewell(0);
        return;
    }
    search_end();
    round = time_at(clock_now() + GUARD).seconds + 1;
    next_step(0, GUARD, control_step);
    /* In the control window in which it joined, a mote beacons at once: the tree grows several
     * levels in one. */
    if (!tree_is_root())
        schedule_beacon_now();
}

void schedule_init(void)
{
    schedule_session(tree_is_root() && settings()->boots > 1);
    schedule_restart();
}
