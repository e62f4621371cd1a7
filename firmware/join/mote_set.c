#include "join/mote_set.h"

#include <stdbool.h>

#define ADDRESSES 7
#define LEAVES_OUT (1U << ADDRESSES)

/* Goes through all motes up to the one of this address, or of this number: its number, or its
 * address. */
static uint16_t find(struct mote_set set, uint16_t wanted, bool is_number)
{
    uint16_t mote = 0, number = 0, left_out = 0;
    for (uint8_t i = 0; i < set.length; i++) {
        uint8_t byte = set.bytes[i];
        if (byte >= LEAVES_OUT) {
            left_out = (uint16_t)(left_out * LEAVES_OUT + byte % LEAVES_OUT);
            continue;
        }
        mote = (uint16_t)(mote + ADDRESSES * left_out);
        left_out = 0;
        for (uint8_t bit = 0; bit < ADDRESSES; bit++, byte >>= 1, mote++) {
            if (!(byte & 1))
                continue;
            if (wanted == (is_number ? number : mote))
                return is_number ? mote : number;
            number++;
        }
    }
    return MOTE_SET_NONE;
}

uint16_t mote_set_number(struct mote_set set, uint16_t mote) { return find(set, mote, false); }

uint16_t mote_set_mote(struct mote_set set, uint16_t number) { return find(set, number, true); }
