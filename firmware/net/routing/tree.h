/* Where this mote stands in the routing tree: parent, level, the root and its session; how it
 * joins, changes and leaves. */
#ifndef SKERRY_NET_TREE_H
#define SKERRY_NET_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/neighbours.h"
#include "wire.h"

void tree_init(void);
bool tree_is_root(void);
/* In the tree: the root, or with a parent. */
bool tree_joined(void);
uint8_t tree_own_level(void);
/* Of the root, which counts them. */
uint16_t tree_session(void);
/* WIRE_NO_NODE without one. */
uint16_t tree_own_parent(void);
/* The attributes parent, root and level; false: NULL, as the mote is in no tree. */
bool tree_parent(uint16_t *parent);
bool tree_root(uint16_t *root);
bool tree_level(uint8_t *level);
/* What is known of the parent as a neighbour; NULL: nothing, or there is none. */
struct neighbour *tree_up(void);
/* Expected transmissions to the root, in sixteenths; COST_NONE: there is no way. */
uint16_t tree_cost(void);
/* A mote that has just left the tree says so: its children must look for another parent. */
bool tree_leave_notice_due(void);

/* ---- children ---- */
/* Whether some mote has this one as its parent, or had lately. */
bool tree_has_children(void);
/* A beacon has come that names this mote as its sender's parent … */
void tree_child_beaconed(void);
/* … or a frame that only a child sends to its parent. */
void tree_child_heard(uint16_t source, uint8_t lqi);
/* What a child's JOIN says of semantic routing trees. */
void tree_child_srts(uint16_t source, const struct wire_join *join, uint8_t length);
/* A child has told of values below it, in a JOIN or a beacon. */
void tree_child_told(void);
/* Brings what is below this mote in semantic routing trees up to date; a mote that has more to tell
 * than before has news, and true is returned. `window`: a control window has passed. */
bool tree_refresh_srts(bool window);

/* ---- sequence numbers of the root, which keep the tree free of loops ---- */
/* The number that this mote's way to the root stands on. */
uint8_t tree_root_sequence(void);
/* At the root: its next beacon has this number, and so have the ways that stand on it. */
void tree_renew_root_sequence(uint8_t number);
/* No loop can be made by this parent: it stands on a later number, or is closer to the root by the
 * same. */
bool tree_is_feasible(const struct neighbour *neighbour);
/* A neighbour asks for a number of the root later than `number`. */
void tree_sequence_requested(uint8_t number);

/* ---- for routing/ alone, which decides when ---- */
/* Takes this neighbour for the parent: the mote joins, or changes over. */
void tree_adopt(const struct neighbour *up);
void tree_leave(void);
/* The parent's level or number may have changed: the mote stands a level below it. */
void tree_stand_below(const struct neighbour *up);
/* The parent has acknowledged a frame. */
void tree_confirm_parent(const struct neighbour *up);
/* … at some time since it was adopted. */
bool tree_parent_is_confirmed(void);
/* A root's session has been heard of: this is the root, and tree_session its session. */
bool tree_knows_session(void);
uint16_t tree_root_node(void);
bool tree_is_of_session(const struct wire_beacon *beacon);
/* A beacon's session takes the place of the mote's own: all that was of that is forgotten. */
void tree_enter_session(const struct wire_beacon *beacon);
/* Control windows that have passed outside the tree, up to ALONE_WINDOWS. */
uint8_t tree_windows_outside(void);
/* A control window has passed. */
void tree_age(void);

/* Implemented by parent_loss, which counts what was in vain: a parent was adopted, another one than
 * before if `changed`; the mote has left the tree. */
void tree_parent_adopted(bool changed);
void tree_parent_left(void);

#endif
