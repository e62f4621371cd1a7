/* When the parent is given up: what frames to it have come to, and what takes its place. */
#ifndef SKERRY_NET_PARENT_LOSS_H
#define SKERRY_NET_PARENT_LOSS_H

#include <stdbool.h>

/* Frames to the parent: one was acknowledged, or a slot's tries were all in vain. */
void parent_frame_sent(bool acknowledged);
/* A JOIN to the parent was acknowledged, or all its tries were in vain. */
void parent_join_sent(bool acknowledged);
/* Another parent of a lower level takes the place of this one; false: there is none, or too many
 * were tried in vain. */
bool parent_replace(void);
/* The parent is replaced, or another is asked for, or the mote leaves the tree. */
void parent_give_up(void);
/* A control window has passed: the parent may be dead, or there may be a better one. */
void parent_age(void);

#endif
