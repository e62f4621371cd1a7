/* What a query's QUEUE clause makes of the mote's own rows while they wait (TinyDB 2005, 6.3.1):
 * which give way when there is no room, and which go first. The network's side of it is
 * net/transport/queue_discipline.h. */
#ifndef SKERRY_QUERY_QUEUEING_QUEUE_DISCIPLINE_H
#define SKERRY_QUERY_QUEUEING_QUEUE_DISCIPLINE_H

#include <stdint.h>

#include "wire.h"

/* Queues a row of this mote, with room for a tally behind its `length` bytes. Where there is no
 * room for it, its query's policy says what is combined or left out, and the tallies say how much.
 */
void discipline_row(struct wire_result *row, uint8_t length);

#endif
