#include "net/schedule/slotframe.h"

#include "net/app.h"
#include "net/mac/slot_table.h"
#include "net/mac/time.h"
#include "net/net_conf.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/transport/dissemination.h"
#include "net/transport/transport_ops.h"
#include "wire.h"

/* Every second control round has data slots whatever the queries: status, acknowledgements, what
 * was left over. */
#define DATA_EVERY 2
/* At least so many rounds more after a frame that says that its sender is not done. */
#define MORE_ROUNDS 3
/* Cells from one number's to the next one's, prime to all lengths of slots: a mote that needs two
 * cells does not always meet the next number. */
#define CELL_STEP 7

/* A mote that has dropped a query goes on for so many rounds as those do that have not heard of its
 * end: it comes to their control windows, where the query was a fast one, and listens for their
 * rows. They would take a parent that does neither for a lost one. Two control windows of a slow
 * network, as one may pass unheard. */
#define ENDING_ROUNDS (2 * CONTROL_SELDOM)
_Static_assert(ENDING_ROUNDS < 64 && APP_EPOCH_ALL < 4, "they have room in their bits");

static struct {
    uint32_t round;     /* network second */
    uint8_t since_rows; /* rounds since the last that had an epoch's rows */
    uint8_t ending;     /* rounds for which others may hold a query that this mote has dropped */
    uint8_t ending_fast : 6; /* … a fast query */
    uint8_t rows : 2;        /* the last epoch's: of enum app_epoch */
} slotframe = {.since_rows = UINT8_MAX};

uint32_t slotframe_round(void) { return slotframe.round; }

void slotframe_enter(uint32_t round) { slotframe.round = round; }

/* Each ms is 32 ticks and 96/125, by a factor of 2^16 that rounds down to the same so far. */
ticks_t slotframe_at(uint16_t ms)
{
    return time_local((struct net_time){
        slotframe.round, (uint16_t)(ms * 32U + (uint16_t)((uint32_t)ms * 50332U >> 16))});
}

/* To reckon with network time would take a third of a millisecond. */
uint16_t slotframe_now(void)
{
    return (uint16_t)((uint32_t)(clock_now() - slotframe_at(0)) * 125 >> 12);
}

uint16_t slotframe_cell(uint8_t level, uint16_t node)
{
    uint8_t cells = slot_table_cells(level), cell = (uint8_t)(node % cells * CELL_STEP % cells);
    if (node >= cells)
        cell = (uint8_t)((cell + node / cells * (uint16_t)((1 + slotframe.round) % cells)) % cells);
    return (uint16_t)(slot_table_start(level) + (uint16_t)(cell * SLOT_CELL_MS));
}

bool slotframe_has_fast_query(bool ignore_flooding)
{
    uint8_t ids[WIRE_QUERIES_MAXIMUM], count = app_held(ids);
    for (uint8_t i = 0; i < count; i++)
        if ((!ignore_flooding || dissemination_settled(ids[i])) &&
            app_period(ids[i]) < SLOW_PERIOD_MS)
            return true;
    return false;
}

static bool has_slow_queries(bool ignore_flooding)
{
    return slotframe.round >= SESSION_YOUNG_SECONDS && !slotframe_has_fast_query(ignore_flooding);
}

static bool is_slow(bool ignore_flooding)
{
    return !slotframe.ending_fast && has_slow_queries(ignore_flooding);
}

void dissemination_drops(uint8_t query)
{
    uint8_t ids[WIRE_QUERIES_MAXIMUM], count = app_held(ids);
    for (uint8_t i = 0; i < count; i++) {
        if (query != 0 && ids[i] != query)
            continue;
        slotframe.ending = ENDING_ROUNDS;
        if (app_period(ids[i]) < SLOW_PERIOD_MS)
            slotframe.ending_fast = ENDING_ROUNDS;
    }
}

bool slotframe_is_slow(void) { return is_slow(false); }

/* A mote that knows that it lacks a query, which may be a fast one, asks again as soon as those
 * that hold it would be awake. */
static uint8_t control_every(void)
{
    return slotframe_is_slow() && !dissemination_behind() ? CONTROL_SELDOM : CONTROL_EVERY;
}

/* `rounds`: a power of two. */
static bool each(uint8_t rounds) { return ((uint8_t)slotframe.round & (uint8_t)(rounds - 1)) == 0; }

bool slotframe_has_control(void) { return each(control_every()); }

bool slotframe_control_is_common(void) { return each(CONTROL_SELDOM) || !is_slow(true); }

/* A mote that comes to control windows more often than its queries ask for cannot know that its
 * parent does. */
bool slotframe_has_rest(void)
{
    return each(DATA_EVERY * (has_slow_queries(false) ? CONTROL_SELDOM : CONTROL_EVERY));
}

/* Not in the round in which an epoch begins: some motes would have its rows already, and their
 * parents not expect them. */
bool slotframe_has_data(void)
{
    return slotframe.since_rows == 0 ||
           ((slotframe.since_rows <= FLUSH_ROUNDS || slotframe_has_rest()) &&
            !app_epoch_in(slotframe.round));
}

bool slotframe_children_may_send(void) { return slotframe.ending || slotframe_has_data(); }

bool slotframe_queries_end(void) { return slotframe.ending; }

void slotframe_count(void)
{
    if (slotframe.ending)
        slotframe.ending--;
    if (slotframe.ending_fast)
        slotframe.ending_fast--;
    /* Readings of an epoch travel in the next round; those after that are for what failed. */
    enum app_epoch rows = slotframe.round > 0 ? app_epoch_in(slotframe.round - 1) : APP_EPOCH_NONE;
    if (rows != APP_EPOCH_NONE) {
        slotframe.since_rows = 0;
        slotframe.rows = (uint8_t)rows & 3U;
    } else if (slotframe.since_rows != UINT8_MAX)
        slotframe.since_rows++;
}

uint8_t slotframe_since_rows(void) { return slotframe.since_rows; }

/* Where each mote has something, who is silent has failed; and where rows come too late an epoch
 * later, motes below a root count on its listening to what comes to them late. */
static bool listens_on(void)
{
    return slotframe.since_rows <= FLUSH_ROUNDS &&
           (slotframe.rows == APP_EPOCH_ALL ||
            (slotframe.rows == APP_EPOCH_JOINED && tree_is_root()));
}

uint8_t slotframe_rounds_of_silence(void)
{
    return listens_on() ? NEIGHBOUR_UNTIL_DONE : SILENT_ROUNDS;
}

uint8_t slotframe_rounds_after(uint8_t flags)
{
    if (listens_on() && flags & (WIRE_BUNDLE_PENDING | WIRE_BUNDLE_LATER))
        return NEIGHBOUR_UNTIL_DONE;
    return flags & WIRE_BUNDLE_PENDING ? NEIGHBOUR_DONE_ROUNDS + 1 : NEIGHBOUR_DONE_ROUNDS;
}

void slotframe_expect_more(void)
{
    if (slotframe.since_rows > FLUSH_ROUNDS - MORE_ROUNDS)
        slotframe.since_rows = FLUSH_ROUNDS - MORE_ROUNDS;
}

void slotframe_forget_rows(void) { slotframe.since_rows = UINT8_MAX; }
