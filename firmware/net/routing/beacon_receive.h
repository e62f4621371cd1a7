/* A neighbour's beacon: what it says of the link, the session, the time and the tree. */
#ifndef SKERRY_NET_BEACON_RECEIVE_H
#define SKERRY_NET_BEACON_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/radio.h"
#include "wire.h"

/* A body of `length` bytes, the beacon's fixed part at least. False: it is malformed, or of another
 * root or session: what else it says is not for this one. */
bool beacon_receive(const struct radio_frame *frame, uint16_t source,
                    const struct wire_beacon *beacon, uint8_t length);

#endif
