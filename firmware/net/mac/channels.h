/* Which channel at what time, where the settings name several: data slots hop over all of them,
 * control windows alternate between two, so that interference on one channel leaves the others. */
#ifndef SKERRY_NET_CHANNELS_H
#define SKERRY_NET_CHANNELS_H

#include <stdint.h>

/* Where a mote listens when it has no other reason: that of the settings. */
uint8_t channel_home(void);
/* Of a round's data slots. */
uint8_t channel_data(uint16_t round);
/* Of the control window that begins with a network second. */
uint8_t channel_control(uint32_t second);
/* Of a mote that looks for a network and does not know the time, in its n-th spell of listening:
 * one is long enough for a window of a slow network. */
uint8_t channel_search(uint8_t spell);

#endif
