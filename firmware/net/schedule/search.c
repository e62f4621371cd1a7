/* Outside the tree there are no rounds, but windows in which neighbours beacon. A mote that knows
 * the time listens in those alone. */
#include "net/schedule/search.h"

#include <stdbool.h>
#include <stdint.h>

#include "drivers/radio.h"
#include "kernel/timer.h"
#include "net/mac/channels.h"
#include "net/mac/clocksync.h"
#include "net/net_conf.h"
#include "net/routing/ageing.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"

/* A mote searches for so many windows of 4 s, then in so many of every so many. Spells of SPELL
 * windows are numbered, and those at the beginning of each CYCLE have all remainders by SPELLS in
 * turn. A mote that does not know the time listens all the time; one that does listens for
 * LISTEN_MS in each control window, and all the time in one spell of SPELLS unless it hears
 * neighbours. */
#define WINDOWS 72
#define SPELL 8
/* Spells of the beginning: a mote in a slow network beacons each 96 s on the same channel. The
 * first one is among those that have their turn. */
#define SPELL_LONG 24
#define SPELL_FIRST 3
#define CYCLE 280
#define SPELLS 4
#define LISTEN_MS 100
/* While it asks others for a sequence number it listens as long as a window may last. */
#define LISTEN_ASKING_MS CONTROL_LONGEST_MS
/* It begins so much before the window: its clock is nobody's any more. */
#define EARLY CLOCK_MS(4)

static struct {
    struct timer window; /* the next one */
    struct timer listen; /* until when this mote listens in it */
    uint16_t windows;    /* searched, from WINDOWS on by cycles */
    bool renewed;        /* it has begun anew once already, as nobody was heard any more */
} search;

static void wait(void);

static void listen_end(void)
{
    if (!tree_joined())
        radio_off();
}

/* The neighbours' windows, by the time that this mote knows. Where no neighbour confirms that, it
 * may be of a session that is over, whose windows are at other times and could be on the other
 * channel each time: one spell of a few is as if it did not know it. */
static void listen(void)
{
    uint8_t spell = (uint8_t)(search.windows < WINDOWS ? search.windows / SPELL_LONG + SPELL_FIRST
                                                       : search.windows / SPELL);
    bool now = search.windows < WINDOWS || (search.windows - WINDOWS) % CYCLE < SPELL ||
               tree_leave_notice_due();
    bool by_time = time_known() && (neighbour_count() || (spell + 1) % SPELLS);
    uint32_t second = time_at(clock_now() + EARLY).seconds;
    if (by_time)
        radio_channel(channel_control(second));
    else
        radio_channel(channel_search(time_known() ? spell / SPELLS : (uint8_t)(spell + 1)));
    if (now || (by_time && (uint8_t)second % CONTROL_SELDOM == 0))
        radio_on();
    else
        radio_off();
    if (by_time)
        timer_after(&search.listen,
                    tree_leave_notice_due() ? CLOCK_MS(LISTEN_ASKING_MS) : CLOCK_MS(LISTEN_MS),
                    listen_end);
}

/* Neighbours age all the same, and children listen when the control windows are. */
static void window(void)
{
    if (++search.windows == WINDOWS + SPELLS * CYCLE)
        search.windows = WINDOWS;
    listen();
    clocksync_tick(false);
    if (tree_leave_notice_due())
        search_leave_notice(EARLY);
    bool had = neighbour_count();
    routing_age();
    /* Neighbours that were known are heard no more, and may have gone over to another session: the
     * search begins anew. Once: some motes hear others now and then. */
    if (had && !neighbour_count() && !search.renewed) {
        search.renewed = true;
        search.windows = 0;
    }
    wait();
}

static void wait(void)
{
    ticks_t due = clock_now() + CONTROL_EVERY * CLOCK_TICKS_PER_SECOND;
    if (time_known())
        due = time_local((struct net_time){
                  (time_at(clock_now() + 2 * EARLY).seconds / CONTROL_EVERY + 1) * CONTROL_EVERY,
                  0}) -
              EARLY;
    timer_start(&search.window, due, window);
}

void search_begin(void)
{
    timer_stop(&search.listen);
    /* A child that asks whether its parent is there is to hear nothing. */
    radio_accept_unicast(false);
    radio_channel(channel_home());
    radio_on();
    search.windows = 0;
    search.renewed = false;
    wait();
}

void search_end(void)
{
    timer_stop(&search.window);
    timer_stop(&search.listen);
}
