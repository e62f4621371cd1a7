/* Ways from any mote to any other: which motes they lead by, and how they are opened and given up.
 * What is carried on them: carried.h; when: schedule/way_cells.h.
 *
 * A way goes up the tree to the first mote that has a trail to its destination, and down by that. A
 * mote lays a trail by telling its parent, and so on up to the root. Or it goes to a place
 * (routing/geographic.h). All of that happens in control windows. */
#ifndef SKERRY_NET_WAY_TABLE_H
#define SKERRY_NET_WAY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/transport/leading.h"
#include "net/transport/way.h"
#include "wire.h"

void ways_init(void);
/* All that are known, WAYS places. */
struct way *way_table(void);
/* A way from here to `destination`, with a cell in one round of 2 to the power `every`; NULL: there
 * is no room for one. It may not lead there yet. `route`: to the place where that stands or, of
 * WIRE_NO_NODE, to whoever stands nearest to it; or by which motes; NULL: it goes by the tree. */
struct way *way_to(uint16_t destination, const struct way_route *route, uint8_t every);
/* Whether a record waits, and may go. */
bool way_may_send(const struct way *way);
/* A record has come or gone: the way is in use. */
void way_used(struct way *way);
/* The next mote has not acknowledged a record in its cell. */
void way_vain(struct way *way);
/* A round in which it has cells is over. */
void way_idle(struct way *way);
/* A trail to a mote has been laid: ways to it, that wait for one, go on. */
void ways_trail_laid(uint16_t destination);
/* This mote is in no tree any more. */
void ways_forget(void);

/* ---- packets from neighbours; false: malformed ---- */
bool ways_open_heard(uint16_t from, const uint8_t *body, uint8_t length);
bool ways_state_heard(uint16_t from, const uint8_t *body, uint8_t length);
/* The way of a record that neighbour `from` has sent; NULL: none leads from there to this mote. */
struct way *way_of(uint16_t from, uint16_t source, uint8_t number);
/* One that this mote has forgotten in a restart: it ends here. NULL: there is no room for it. */
struct way *way_forgotten(uint16_t from, uint16_t source, uint8_t number, uint8_t hop);

/* ---- control windows ---- */
/* One begins. `all_awake`: those that a way may lead to are awake in it. */
void ways_window(bool all_awake);
bool ways_waiting(void);
/* Whether a neighbour may yet say in this window whether a way leads on. */
bool ways_awaited(void);
/* Sends the next thing due; false when nothing is. */
bool ways_control_send(void);

#endif
