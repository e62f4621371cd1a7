/* `repeats`: which transmission of a flooded frame is next at this mote: FLOOD_NEW, 2, FLOOD_HELD
 * until the next window in which all are awake, (FLOOD_LAST_COMMANDS,) FLOOD_LAST, 0. */
#ifndef SKERRY_NET_FLOOD_H
#define SKERRY_NET_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

/* Transmissions of each flooded frame by each mote: two, and one kept for the next control window,
 * when what collided in this one meets another order of things; two of commands, as nobody asks for
 * those. */
#define FLOOD_NEW 3
#define FLOOD_HELD 1
#define FLOOD_LAST 4
#define FLOOD_LAST_COMMANDS 5

/* In a window in which all are awake. */
static inline bool flood_due(uint8_t repeats) { return repeats > FLOOD_HELD; }

static inline uint8_t flood_spent(uint8_t repeats)
{
    return repeats == FLOOD_LAST ? 0 : (uint8_t)(repeats - 1);
}

/* Such a window begins. */
static inline void flood_release(uint8_t *repeats, uint8_t last)
{
    if (*repeats == FLOOD_HELD)
        *repeats = last;
}

#endif
