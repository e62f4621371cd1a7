#include "net/schedule/rx_window.h"

#include <stddef.h>

#include "drivers/radio.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/net_conf.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/schedule/slotframe.h"
#include "net/schedule/tx_window.h"
#include "net/schedule/window.h"
#include "net/transport/join_packet.h"
#include "net/transport/snoop.h"
#include "wire.h"

/* A parent listens so long in a child's cell, in ticks from GUARD_TIME before it on, unless a frame
 * comes … */
#define CELL_TICKS (2 * GUARD_TIME + CLOCK_MS(4))
/* … and a cell that began so long ago, ms, is over for it. */
#define CELL_HEARD_MS 6
/* A mote that snoops listens that long: a frame begins within 2 ms of its cell. Where it may be
 * silent because of one other only, it listens to the end of that one's cell, as long frames are
 * worth it too. */
#define SNOOP_TICKS (SNOOP_GUARD_TIME + 85)
/* Where more is said to follow, the radio stays on for so long, ms; for repetitions after a child's
 * last frame so long.
 */
#define QUIET_MS 40
#define LINGER_MS 10
/* From a frame's beginning until what it says is known, at most. */
#define LONGEST_FRAME CLOCK_MS(7)

/* Whose cells this mote listens to. */
enum rx_sources {
    RX_CHILDREN = 1 << 0,
    RX_SIBLINGS = 1 << 1,
};

static struct {
    /* Of enum rx_sources; 0: the window is closed. Both, where a child is so late that it says only
     * in the siblings' slot that it has more: what follows is taken, while snooping goes on. */
    uint8_t sources;
} rx;

static bool listening(void) { return rx.sources & RX_CHILDREN; }

static bool snooping(void) { return rx.sources & RX_SIBLINGS; }

/* The radio is on for a cell, and off until the next. */
static void cell_close(void)
{
    window_close(WINDOW_RX);
    window_sleep_if_idle();
}

static void cell_open(void)
{
    window_open(WINDOW_RX);
    window_accept_by_room();
    radio_on();
}

static void drop(enum rx_sources sources) { rx.sources = (uint8_t)(rx.sources & ~sources); }

void rx_window_close(void)
{
    if (!listening())
        return;
    drop(RX_CHILDREN);
    window_look_no_more();
    window_closes_no_more();
    cell_close();
}

void rx_window_snoop_over(void)
{
    if (!snooping())
        return;
    drop(RX_SIBLINGS);
    window_look_no_more();
    radio_snoop(false);
    snoop_end();
    cell_close();
}

/* A root listens to the whole slot: its children are many, and its CPU is late where the serial
 * line is slow. Other parents do when an epoch's rows come, and what failed for the first time, if
 * they have children whose cells they do not know. */
static bool hears_all(void)
{
    if (!tree_is_root())
        return slotframe_since_rows() < SILENT_ROUNDS && neighbours_crowded();
    return slotframe_since_rows() <= FLUSH_ROUNDS || slotframe_queries_end() ||
           neighbour_count() == NEIGHBOURS;
}

/* Children that have not said they are done; while snooping, siblings. */
static bool is_of_interest(const struct neighbour *neighbour)
{
    if (!snooping())
        return neighbour_is_child(neighbour) && neighbour->rounds > 0;
    return neighbour->level == tree_own_level();
}

uint16_t rx_window_representative(void)
{
    return snooping() ? snoop_representative() : WIRE_NO_NODE;
}

static void listen_cell(void);

/* The first cell of interest that is still to come, ms, and before `limit`; else `limit`. */
static uint16_t next_cell(uint16_t now, uint16_t limit)
{
    uint16_t first = limit, representative = rx_window_representative();
    uint8_t level = (uint8_t)(tree_own_level() + !snooping());
    if (representative != WIRE_NO_NODE) {
        uint16_t start = slotframe_cell(level, representative);
        return now < start && start < limit ? start : limit;
    }
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n)) {
        if (!is_of_interest(n))
            continue;
        uint16_t start = slotframe_cell(level, n->node);
        /* it has not been */
        if (now < (snooping() ? start : start + CELL_HEARD_MS) && start < first)
            first = start;
    }
    return first;
}

/* The radio is off until the next cell of interest. */
static void listen_next(void)
{
    if (hears_all())
        return;
    /* A frame that comes in, or has not reached the main loop yet, may say that more follows. */
    if (window_is_open(WINDOW_RX) && !snooping() &&
        clock_now() - radio_last_start() < LONGEST_FRAME) {
        window_look_after(CLOCK_MS(2), listen_next);
        return;
    }
    uint16_t now = slotframe_now();
    if (snooping())
        cell_close();
    const uint16_t limit = snooping() ? tx_window_start(rx_window_representative()) : UINT16_MAX;
    uint16_t first = next_cell(now, limit);
    if (first == limit || (snooping() && !snoop_take_cell())) {
        /* The last frame may still be on its way out of the radio: snooping is over when the own
         * cell begins. */
        if (!snooping())
            rx_window_close();
        return;
    }
    ticks_t due = slotframe_at(first) - (snooping() ? SNOOP_GUARD_TIME : GUARD_TIME);
    if (!clock_reached(clock_now() + CLOCK_MS(2), due))
        cell_close();
    window_look(due, listen_cell);
}

static void listen_cell(void)
{
    cell_open();
    window_look_after((rx_window_representative() != WIRE_NO_NODE
                           ? SNOOP_GUARD_TIME + CLOCK_MS(SLOT_CELL_MS)
                       : snooping() ? SNOOP_TICKS
                                    : CELL_TICKS),
                      listen_next);
}

void rx_window_snoop(void)
{
    /* Levels that share the first slot are not told apart, and what fails is sent again all the
     * same. */
    if (slotframe_since_rows() != 0 || slot_table_shared(tree_own_level()) ||
        join_packet_holds_data() || !snoop_begin())
        return;
    rx_window_close();
    rx.sources |= RX_SIBLINGS;
    radio_snoop(true);
    listen_next();
}

void net_overheard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length)
{
    if (!snooping())
        return;
    if (snoop_heard(source, destination, body, length))
        window_look_after(0, listen_next);
    else
        rx_window_snoop_over();
}

/* Of the slot of this mote's children. */
static ticks_t children_end(void)
{
    return slotframe_at(slot_table_end((uint8_t)(tree_own_level() + 1)) + LAST_FRAME_MS);
}

static void listen_until(ticks_t end)
{
    rx.sources |= RX_CHILDREN;
    window_closes(end, rx_window_close);
}

void rx_window_listen(void)
{
    if (!tree_has_children() && !hears_all())
        return;
    /* A beacon of this mote's own, in between, may have taken the timer that was to end it. */
    drop(RX_CHILDREN);
    if (neighbour_count() < NEIGHBOURS && neighbours_children_silent())
        return;
    listen_until(children_end());
    if (hears_all())
        cell_open();
    else
        listen_next();
}

/* A child began so late in its cell that the radio was to be off already, and says that it has more
 * for this slot. */
static void listen_again(void)
{
    ticks_t end = children_end();
    if (window_is_open(WINDOW_CONTROL) || window_is_open(WINDOW_TX) ||
        clock_reached(clock_now(), end))
        return;
    listen_until(end);
    cell_open();
}

void rx_window_heard(bool pending)
{
    if (!listening() && pending)
        listen_again();
    if (!listening())
        return;
    /* A long frame ends when its cell's time is up: the radio may be off already, and more follows
     * at once. */
    if (pending)
        cell_open();
    else
        window_accept_by_room();
    if (!hears_all())
        window_look_after(pending ? CLOCK_MS(QUIET_MS) : CLOCK_MS(LINGER_MS), listen_next);
}
