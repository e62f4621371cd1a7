/* The routing tree: level, parent, cost. */
#ifndef SKERRY_NET_TREE_H
#define SKERRY_NET_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/radio.h"
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
/* What is known of it as a neighbour; NULL: nothing, or there is none. */
struct neighbour *tree_up(void);
/* A beacon of a neighbour; false: of another root or session, what else it says is not for this
 * one. */
bool tree_beacon(const struct radio_frame *frame, uint16_t source, const struct wire_beacon *beacon,
                 uint8_t length);
/* Whether to beacon in this round's control window. */
bool tree_beacon_due(uint32_t round);
/* A neighbour asks for later news of the root than its number `number`. */
void tree_sought(uint8_t number);
/* Somebody has asked in this window, so that the radio stays on; to be called each 10 ms then, as
 * what has not come is asked for again. */
bool tree_seeks(void);
/* Outside the tree: asks for some, if there is anybody to be asked. */
bool tree_seek(void);
/* A mote that has just left the tree says so: its children must look for another parent. */
bool tree_farewell(void);
/* Whether some mote has this one as its parent; a bundle tells. */
bool tree_has_children(void);
void tree_child_heard(uint16_t source, uint8_t lqi);
/* What a child's JOIN says of semantic routing trees. */
void tree_child_srts(uint16_t source, const struct wire_join *join, uint8_t length);
/* Writes this mote's beacon body, but for the stamp; its length. */
uint8_t tree_write_beacon(struct wire_beacon *beacon);
/* Frames to the parent: one acknowledged, or a slot's tries all in vain. */
void tree_sent(bool acknowledged);
/* JOIN to the parent: acknowledged, or all its tries in vain. */
void tree_join_sent(bool acknowledged);
/* After each control window. */
void tree_age(void);

#endif
