/* Partial states that siblings make superfluous are not sent (TinyDB 2005, 6.3.2): a mote listens
 * in cells of its slot that come before its own, and takes back what changes nothing in what it
 * heard. */
#ifndef SKERRY_NET_SNOOP_H
#define SKERRY_NET_SNOOP_H

#include <stdbool.h>
#include <stdint.h>

/* The slot begins. True where listening may save a frame: all that waits are states of queries that
 * snoop. */
bool snoop_begin(void);
/* Whether queries that snoop are all that this mote has seen of the epoch: its children may have
 * nothing to send. */
bool snoop_may_be_silent(void);
/* While it may: one of the siblings' cells is about to begin; false: they have been enough. */
bool snoop_take_cell(void);
/* A bundle of another mote to another one. False: nothing more to listen for. */
bool snoop_heard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length);
/* The only sibling to listen to; WIRE_NO_NODE: all of them. */
uint16_t snoop_representative(void);
/* The mote's own cell begins, or nothing is left to send: what was heard is forgotten. */
void snoop_end(void);

#endif
