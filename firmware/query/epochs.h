/* Epochs: when each query is due. Epoch n of a query starts at network time n * period on all motes. */
#ifndef SKERRY_QUERY_EPOCHS_H
#define SKERRY_QUERY_EPOCHS_H

#include <stdint.h>

#include "query/slots.h"

/* Queries have come, gone, fallen due or network time has moved: marks the due ones, plans the others,
 * drops those whose time is over and acquires. */
void epochs_update(void);
/* The same from the main loop, for callers deep in the stack. */
void epochs_update_soon(void);
/* Network time at which the slot's present epoch starts. */
void epochs_start(const struct slot *slot, uint32_t *seconds, uint32_t *milliseconds);

#endif
