/* States of aggregates over the tuples of an index that some motes store: what one of them begins
 * is put together with others' on the way. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_STATES_H
#define SKERRY_QUERY_OPERATORS_INDEX_STATES_H

#include <stdint.h>

#include "query/operators/gather_cell.h"
#include "wire.h"

/* Those of a mote that has no tuple yet; bytes. */
uint8_t index_states_begin(struct wire_states *states, uint16_t token, uint16_t mote,
                           uint8_t aggregates, const uint8_t *kinds);
/* One for each aggregate. */
struct gather_cell *index_states_cells(struct wire_states *states);

#endif
