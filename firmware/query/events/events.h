/* Events: raised by a query's action on a mote (raising.h), or by the gateway, and told to every
 * mote by a flood. They start the queries that wait for them (ON EVENT) and end those that are to
 * (STOP ON EVENT). Source: TinyDB 2005, 3.5. */
#ifndef SKERRY_QUERY_EVENTS_EVENTS_H
#define SKERRY_QUERY_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

/* Whether an epoch that starts at network second `start` belongs to the entry's query: always,
 * unless it waits for an event. */
bool events_runs(const struct query_entry *entry, uint32_t start);
/* Whether this mote has a row of its own to make in an epoch that starts at `start`: a query of
 * ENTRY_EACH runs everywhere, so that rows of others find their way, and makes rows where an event
 * of those that it reads about lets it. */
bool events_concern(const struct query_entry *entry, uint32_t start);
/* An event that lets the entry's query run; NULL: none does. */
const struct wire_event *events_event(const struct query_entry *entry);
/* The events that the context's epoch belongs to, one after the other, from *run = 0 on; false past
 * the last. Without ENTRY_EACH it belongs to one, or to none: the context keeps what it has. */
bool events_next(struct eval_context *context, uint8_t *run);
/* Whether a later epoch may run without another event, though that of `start` does not: it waits
 * for a timer, or its epochs are aligned. */
bool events_goes_on(const struct query_entry *entry, uint32_t start);
/* Whether a query of this mote waits for an event that came about in network second `seconds`:
 * others have the same queries. */
bool events_awaited(uint16_t number, uint32_t seconds);
/* Whether another mote's query may do something about the event, as one of this mote does: a query
 * that is of each mote's own events (an index of events) needs nobody to be told. */
bool events_shared(uint16_t number);
/* Whether an entry's query is such a one. */
bool events_own(const struct query_entry *entry);
/* Whether the entry is to be kept though it runs no more: another event may start it, or the
 * gateway has not stopped it yet. */
bool events_keeps(const struct query_entry *entry);

#endif
