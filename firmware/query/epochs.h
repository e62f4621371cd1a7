/* Epochs: when each query is due. Epoch n of a query starts at network time n * period on all
 * motes. */
#ifndef SKERRY_QUERY_EPOCHS_H
#define SKERRY_QUERY_EPOCHS_H

#include <stdint.h>

#include "query/slots.h"

/* A timer this early has reached its time: conversions between clocks round. */
#define EPOCHS_EARLY_TICKS 2

/* Queries have come, gone or network time has moved: from the main loop, so that sampling never
 * runs on top of the radio's handlers, marks the due ones, plans the others, drops those whose time
 * is over and acquires. */
void epochs_update_soon(void);
/* The same, once the frame that brought a query is passed on: planning takes 2 ms on an AVR, for
 * which all who heard that frame would be silent, and then speak at once. */
void epochs_update_later(void);
/* Network time at which the slot's present epoch starts. */
void epochs_start(const struct slot *slot, uint32_t *seconds, uint32_t *milliseconds);

#endif
