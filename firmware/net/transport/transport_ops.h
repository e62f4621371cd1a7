/* What transport asks of the layers above it. schedule/ implements it, but for net_execute, which
 * net.c does: nothing in this folder includes a header of either. Which record goes next, query/
 * says: net/transport/queue_discipline.h. */
#ifndef SKERRY_NET_TRANSPORT_OPS_H
#define SKERRY_NET_TRANSPORT_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* ---- records on their way up ---- */
/* The queue holds more than before. */
void queue_grew(void);
/* Nothing is left to send, or the cell is over. */
void uplink_done(void);
/* The parent has acknowledged a frame with this enum wire_bundle. */
void uplink_sent(uint8_t flags);
/* Whether children may send more of this epoch's records in later rounds. */
bool uplink_expects_more(void);

/* ---- queries and commands on their way down ---- */
/* A control frame is through, and the next may go. */
void dissemination_sent(void);
/* This mote is about to drop a query, or, of 0, all; others may not have heard of its end. */
void dissemination_drops(uint8_t query);
/* ---- records from mote to mote ---- */
/* One has come to this mote, which is at the end of its way; or one was not carried on by it.
 * `hops`: that it took; the record is valid during the call only. False: it cannot be taken yet,
 * and waits here. */
bool net_carried(uint16_t origin, uint8_t hops, const uint8_t *record, uint8_t length);
void net_not_carried(uint16_t origin, uint8_t outcome, const uint8_t *record, uint8_t length);

/* A command has come that is new here; `arguments`: bytes behind its fixed part. */
void net_execute(const struct wire_command *command, uint8_t arguments);

#endif
