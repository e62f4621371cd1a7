/* Which record of the queue goes next, and what becomes of it. query/ implements it
 * (query/queueing/queue_discipline.c), as QUEUE clauses of queries decide; uplink and, at the root,
 * link call it. */
#ifndef SKERRY_NET_QUEUE_DISCIPLINE_H
#define SKERRY_NET_QUEUE_DISCIPLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/transport/outbox.h"

/* The record that is to go next, of those not in flight, health reports after rows; `partials`:
 * partial state records may, too. NULL: none. */
struct queue_record *discipline_next(bool partials);
/* Bytes of its body that travel. */
uint8_t discipline_length(const struct queue_record *record);
/* It is sent for the first time: others are compared with it from now on. Once for each record,
 * before discipline_on_acked. */
void discipline_on_transmit(struct queue_record *record);
/* The receiver has it: it need not be sent again. */
void discipline_on_acked(struct queue_record *record);
/* It is to be sent again, and as it is. */
void discipline_on_requeue(struct queue_record *record);

#endif
