#include "net/mac/channels.h"

#include "drivers/settings.h"
#include "net/mac/mac_conf.h"
#include "net/net_conf.h"

#define CHANNEL_FIRST 11

uint8_t channel_home(void) { return settings()->channel; }

/* The n-th channel of the mask, from the lowest on and around. */
static uint8_t nth(uint8_t n)
{
    uint16_t left = settings()->channels;
    uint8_t channel = CHANNEL_FIRST;
    if (left == 0)
        return channel_home();
    for (;; channel++, left >>= 1) {
        if (left == 0)
            left = settings()->channels, channel = CHANNEL_FIRST;
        if (left & 1 && n-- == 0)
            return channel;
    }
}

/* Control windows' other one: the lowest in the mask that is not at home. */
static uint8_t other(void)
{
    uint8_t lowest = nth(0);
    return lowest == channel_home() ? nth(1) : lowest;
}

uint8_t channel_data(uint16_t round)
{
    /* Rounds in which a period's rows travel have a common divisor: a product's middle bits
     * (Fibonacci hashing) have none. */
    return nth((((uint16_t)(round * 40503U) ^ settings()->pan) >> 6) & 15);
}

uint8_t channel_control(uint32_t second)
{
    /* Alternating both for windows each CONTROL_EVERY s and for those each CONTROL_SELDOM s. */
    uint8_t windows = (uint8_t)(second / CONTROL_EVERY), slow = (uint8_t)(second / CONTROL_SELDOM);
    return second >= HOME_SECONDS && (windows ^ slow) & 1 ? other() : channel_home();
}

uint8_t channel_search(uint8_t spell) { return spell & 1 ? other() : channel_home(); }
