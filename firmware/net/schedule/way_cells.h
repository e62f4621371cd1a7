/* Cells of ways from mote to mote (transport/way_table.h): in rounds without a control window, in
 * the time that one would have. Only motes on a way that is in use are awake in them. */
#ifndef SKERRY_NET_WAY_CELLS_H
#define SKERRY_NET_WAY_CELLS_H

#include <stdbool.h>

#include "net/transport/way.h"

/* Whether a record that is handed to the way now goes in this round: it is open, and has cells. */
bool way_cells_now(const struct way *way);
/* A round begins. */
void way_cells_begin(void);
/* This mote has left the tree, or plans anew. */
void way_cells_stop(void);

#endif
