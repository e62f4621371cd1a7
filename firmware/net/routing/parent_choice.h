/* Which neighbour is the best parent: the feasible one of least cost, unless a semantic routing
 * tree prefers one that costs about as much. */
#ifndef SKERRY_NET_PARENT_CHOICE_H
#define SKERRY_NET_PARENT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/routing/neighbours.h"

/* The best one above level `above`, and not `except`; NULL: none is feasible. */
struct neighbour *parent_choice_best(uint16_t except, uint8_t above);
/* … of all that may have a way to the root, feasible or not: who may be asked for a number by which
 * it is. */
struct neighbour *parent_choice_to_ask(uint16_t except, uint8_t above);
/* The one whose values fit better than those of `choice`, among those that cost about as much as
 * `least`; or `choice`. */
struct neighbour *parent_choice_by_values(const struct neighbour *least, struct neighbour *choice);
/* Adopts the best one, where there is no parent or it is better by more than a little. */
void parent_choice_make(void);
/* Outside the tree: asks a neighbour for a number by which it may be the parent; false: there is
 * nobody to be asked. */
bool parent_choice_request_number(void);
/* A control window has passed. */
void parent_choice_age(void);

#endif
