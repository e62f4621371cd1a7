/* The routing tree: level, parent, cost. */
#ifndef SKERRY_NET_TREE_H
#define SKERRY_NET_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/radio.h"
#include "wire.h"

void tree_init(void);
bool tree_is_root(void);
/* In the tree: the root, or with a parent. */
bool tree_joined(void);
uint8_t tree_own_level(void);
/* WIRE_NO_NODE without one. */
uint16_t tree_own_parent(void);
/* A beacon of a neighbour. */
void tree_beacon(const struct radio_frame *frame, uint16_t source, const struct wire_beacon *beacon, uint8_t length);
/* Writes this mote's beacon body, but for the stamp; its length. */
uint8_t tree_write_beacon(struct wire_beacon *beacon);
/* Frames to the parent: one acknowledged, or a slot's tries all in vain. */
void tree_sent(bool acknowledged);
/* After each control window. */
void tree_age(void);

/* Implemented by net.c. */
void net_joined(void);
void net_left(void);
void net_parent_changed(void);

#endif
