/* A set of motes' short addresses as programs carry it, in ascending order: numbers of a mote are
 * counted from 0 there.
 *
 * Each byte below 128 tells of the seven addresses behind those that were told of before, the first
 * from 0 on: bit i is set where the i-th is in the set. A byte of 128 + n leaves out 7 n of them;
 * where another one of 128 + m follows, both leave out 7 (128 n + m). */
#ifndef SKERRY_JOIN_MOTE_SET_H
#define SKERRY_JOIN_MOTE_SET_H

#include <stdint.h>

#define MOTE_SET_NONE 0xFFFFU

struct mote_set {
    const uint8_t *bytes;
    uint8_t length;
};

/* Which of its motes this one is; MOTE_SET_NONE: it is not there. */
uint16_t mote_set_number(struct mote_set set, uint16_t mote);
/* The mote of a number; MOTE_SET_NONE: there are fewer. */
uint16_t mote_set_mote(struct mote_set set, uint16_t number);

#endif
