/* The slotframe: a round of one second of network time. Which round it is, where its slots and
 * cells lie, and what it has: a control window, data slots, an epoch's rows. */
#ifndef SKERRY_NET_SLOTFRAME_H
#define SKERRY_NET_SLOTFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/clock.h"

/* The round's number: its network second. */
uint32_t slotframe_round(void);
void slotframe_enter(uint32_t round);

/* Local time of an instant in this round; `ms`: at most 1488. */
ticks_t slotframe_at(uint16_t ms);
/* The time since the round began, in ms. */
uint16_t slotframe_now(void);
/* Start of a mote's cell in the slot of its level, ms. Numbers that differ by less than the slot
 * has cells never meet; others do in one round and not in the next. */
uint16_t slotframe_cell(uint8_t level, uint16_t node);

/* Whether a query of a short period is held; `ignore_flooding`: as those motes see it that do not
 * know of queries whose flood is not over. */
bool slotframe_has_fast_query(bool ignore_flooding);
/* All queries have long periods, or there are none: control windows and reports are rare. A mote
 * that does not know of a fast query yet is awake in a part of the windows of those that do; one
 * that has dropped a fast query is in all of them for a while. */
bool slotframe_is_slow(void);
bool slotframe_has_control(void);
/* Whether motes that do not know of queries on their way are awake in this control window as well.
 */
bool slotframe_control_is_common(void);
/* Data slots for what is left over, whatever the queries: reports, acknowledgements of commands. */
bool slotframe_has_rest(void);
bool slotframe_has_data(void);
/* Whether children may still hold a query that this mote has dropped. */
bool slotframe_queries_end(void);
/* Whether children may send in this round, for such a query or because it has data slots. */
bool slotframe_children_may_send(void);

/* A round begins: it may have an epoch's rows. */
void slotframe_count(void);
/* Rounds since the last that had an epoch's rows: 0: this one has; UINT8_MAX: none. */
uint8_t slotframe_since_rows(void);
/* Rounds, this one included, for which a parent listens to a child of which nothing has come since
 * an epoch's rows are due, and after a frame with these of enum wire_bundle has: what a child has
 * in later ones waits for the next epoch's. Of NEIGHBOUR_UNTIL_DONE at most. */
uint8_t slotframe_rounds_of_silence(void);
uint8_t slotframe_rounds_after(uint8_t flags);
/* Somebody has more to send of the epoch: there are data slots for some rounds more. */
void slotframe_expect_more(void);
/* Nobody listens any more for what the epochs before have left. */
void slotframe_forget_rows(void);

#endif
