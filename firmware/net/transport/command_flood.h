/* Commands from the root, or from a mote, to all motes: flooded in control windows in which all are
 * awake, and executed once. */
#ifndef SKERRY_NET_COMMAND_FLOOD_H
#define SKERRY_NET_COMMAND_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* From a neighbour, of this mote or, at the root, from the gateway. */
void command_flood_take(const struct wire_command *command, uint8_t length);
/* Whether another one could be flooded. */
bool command_flood_room(void);
/* Likewise a mote's own, for which one that has been sent in a window already gives way. */
bool command_flood_signal_room(void);
/* A window begins in which all are awake; in it: whether one is due, and the next in the control
 * frame; its length, 0 when none is. */
void command_flood_window(void);
bool command_flood_waits(void);
uint8_t command_flood_write(void);
void command_flood_forget(void);

#endif
