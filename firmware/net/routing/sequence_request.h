/* Sequence number requests. A mote without a feasible parent asks for a later number of the root,
 * and each that has none passes the request on, hop by hop, to a mote that has one or to the root
 * (Babel's requests for sequence numbers, RFC 8966, 3.8.1.2). A mote has one at a time on its way,
 * in the JOINs that it sends. */
#ifndef SKERRY_NET_SEQUENCE_REQUEST_H
#define SKERRY_NET_SEQUENCE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers come round: the later one of two is ahead by less than half of them. */
static inline bool sequence_is_later(uint8_t number, uint8_t than)
{
    return (int8_t)(number - than) > 0;
}

/* Asks neighbour `to`, in this control window and so many `windows`, for a number later than
 * `after`. `for_parent`: this mote has given its parent up, and asks for itself alone; otherwise a
 * neighbour has asked. */
void sequence_request_start(uint16_t to, uint8_t after, uint8_t windows, bool for_parent);
/* An answer came, or nobody is interested any more. */
void sequence_request_end(void);
/* The mote has another parent: what is asked for, if anything, is asked of it. */
void sequence_request_redirect(uint16_t to);
/* A neighbour asks for a number later than `number`. True: the request on its way asks for as much
 * already, and goes on for `windows`. */
bool sequence_request_joins(uint8_t number, uint8_t windows);
/* Somebody has asked in this window: the radio stays on, as an answer may come. */
void sequence_request_heard(void);
/* Whether the radio is to stay on for that; to be called each 10 ms then, as what has not come is
 * asked for again. */
bool sequence_request_pending(void);
/* Whether `number` is what was asked for. */
bool sequence_request_answered_by(uint8_t number);
/* Whether the parent is given up, and the mote stays in the tree only as long as it asks. */
bool sequence_request_is_for_parent(void);
/* A control window has passed. False: nothing is asked for any more. */
bool sequence_request_age(void);

#endif
