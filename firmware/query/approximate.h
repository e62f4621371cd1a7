/* Aggregates that a query asks for within a tolerance (APPROXIMATE WITHIN; TinyDB 2005, 6.3.2, and
 * a step beyond).
 *
 * A mote that stands for its own reading alone names, in the last cell of its state, a sibling
 * whose reading it heard and that is within the tolerance of its own: its speaker. From then on it
 * may be silent where it hears its speaker's reading, is within the tolerance of it, and both have
 * the same parent; each eighth epoch it says something all the same. The parent keeps who named
 * whom, and counts a silent child as its speaker a second time. So no reading counts by more than
 * the tolerance too much or too little, whatever other siblings report. */
#ifndef SKERRY_QUERY_APPROXIMATE_H
#define SKERRY_QUERY_APPROXIMATE_H

#include <stdint.h>

#include "board.h"
#include "wire.h"

struct aggregate;
/* The cell that names a mote's speaker: its `count` is the speaker's address + 1, 0: none is named.
 */
extern const IN_FLASH struct aggregate aggregate_speaker;

#endif
