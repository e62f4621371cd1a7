#include "net/schedule/way_cells.h"

#include <stddef.h>

#include "drivers/radio.h"
#include "kernel/timer.h"
#include "net/app.h"
#include "net/mac/channels.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/net_conf.h"
#include "net/schedule/slotframe.h"
#include "net/schedule/window.h"
#include "net/transport/carried.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"

/* A cell has room for a frame, its acknowledgement, and both again; and for what a mote on the way
 * does with the frame before its own cell, which is the next one: a record goes along a way of
 * CELLS - FIRST_CELLS hops in one round, and farther in the way's next one. The first one is
 * another in each other round, so that ways do not meet again and again: where two senders do not
 * hear each other, neither is heard. */
#define CELL_MS 14
#define CELLS 17
#define FIRST_CELLS 11
#define FIRST_MS 6
/* Ms from the beginning of a cell: until then a frame begins, … */
#define BEGINS_MS 4
/* … and it is over. */
#define OVER_MS 11
/* From a frame's beginning until it is known, at most. */
#define LONGEST_FRAME CLOCK_MS(7)

_Static_assert(FIRST_MS + CELLS * CELL_MS < SLOTS_BEGIN_MS - 2,
               "the cells of ways end before the slots of the tree begin");

static struct {
    struct timer step;
    uint8_t cell;       /* the one that is next, or has begun */
    struct way *sender; /* whose record goes in it */
} cells;

static ticks_t start(void) { return slotframe_at((uint16_t)(FIRST_MS + cells.cell * CELL_MS)); }

/* What tells ways apart in time, whatever opening of it a mote knows. */
static uint16_t hash(const struct way *way)
{
    return (uint16_t)(way->source * 31U + way->number / WAY_OPENINGS * 7U);
}

/* Whether it has cells in this round: never where there may be a control window. */
static bool has_cells(const struct way *way)
{
    if (way->source == WIRE_NO_NODE)
        return false;
    uint16_t turn = hash(way);
    uint8_t every = (uint8_t)(1U << (way->every - WAY_EVERY_LEAST)),
            phase = (uint8_t)(1 + turn % (CONTROL_EVERY - 1)),
            more = (uint8_t)(turn / (CONTROL_EVERY - 1) % every);
    return ((uint8_t)slotframe_round() & (uint8_t)(every * CONTROL_EVERY - 1)) ==
           (uint8_t)(phase + more * CONTROL_EVERY);
}

/* Of the mote that stands so many hops from the source, in which it sends to the next. */
static uint8_t cell_of(const struct way *way, uint8_t hop)
{
    uint16_t round = (uint16_t)slotframe_round(), mixed = (uint16_t)((hash(way) + round) * 40503U);
    /* Without the second product two ways would lie equally far apart in most rounds. */
    mixed = (uint16_t)((mixed ^ mixed >> 8) * (2U * round + 1U)) >> 8;
    return (uint8_t)((mixed % FIRST_CELLS + hop) % CELLS);
}

bool way_cells_now(const struct way *way)
{
    return !way->opening && !way->lost && has_cells(way) && cell_of(way, way->hop) >= cells.cell;
}

static void plan(void);

static void over(void)
{
    bool sent = cells.sender != NULL;
    carried_cell_over();
    cells.sender = NULL;
    window_close(WINDOW_WAY);
    window_sleep_if_idle();
    cells.cell++;
    /* In its own cells it is awake, and has room again. */
    if (sent)
        app_rows_due(false);
    plan();
}

static void listen(void)
{
    ticks_t end = start() + CLOCK_MS(OVER_MS);
    if (!clock_reached(clock_now(), end) && clock_now() - radio_last_start() < LONGEST_FRAME)
        timer_after(&cells.step, CLOCK_MS(2), listen);
    else
        over();
}

static void send(void)
{
    timer_start(&cells.step, start() + CLOCK_MS(OVER_MS), over);
    carried_cell(cells.sender);
}

/* What waits goes first; a mote whose own record is late hears others' the next time. */
static void begin(void)
{
    bool listens = false;
    cells.sender = NULL;
    for (struct way *way = way_table(); way < way_table() + WAYS; way++) {
        if (!has_cells(way))
            continue;
        if (cell_of(way, way->hop) == cells.cell && way_may_send(way))
            cells.sender = way;
        listens |= way->hop > 0 && cell_of(way, (uint8_t)(way->hop - 1)) == cells.cell;
    }
    if (!(cells.sender || (listens && carried_room())) || window_is_open(WINDOW_CONTROL) ||
        mac_busy()) {
        cells.cell++;
        plan();
        return;
    }
    window_open(WINDOW_WAY);
    radio_channel(channel_data((uint16_t)slotframe_round()));
    radio_accept_unicast(true);
    radio_on();
    if (cells.sender)
        timer_start(&cells.step, start(), send);
    else
        timer_start(&cells.step, start() + CLOCK_MS(BEGINS_MS) + GUARD_TIME, listen);
}

/* The next cell that may be of use to this mote. */
static void plan(void)
{
    uint8_t next = CELLS;
    for (const struct way *way = way_table(); way < way_table() + WAYS; way++) {
        if (!has_cells(way))
            continue;
        for (uint8_t hop = way->hop ? (uint8_t)(way->hop - 1) : 0; hop <= way->hop; hop++) {
            uint8_t cell = cell_of(way, hop);
            if (cell >= cells.cell && cell < next)
                next = cell;
        }
    }
    cells.cell = next;
    if (next < CELLS)
        timer_start(&cells.step, start() - GUARD_TIME, begin);
    else
        radio_channel(channel_home());
}

void way_cells_begin(void)
{
    cells.cell = 0;
    app_rows_due(true);
    app_tuples_due();
#ifdef BOARD_TUPLES
    app_handing_due();
#endif
    carried_age();
    bool any = false;
    for (struct way *way = way_table(); way < way_table() + WAYS; way++) {
        if (!has_cells(way))
            continue;
        any = true;
        way_idle(way);
    }
    if (!any)
        return;
    plan();
}

void way_cells_stop(void)
{
    timer_stop(&cells.step);
    carried_cell_over();
    window_close(WINDOW_WAY);
}
