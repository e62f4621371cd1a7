/* Which channel at what time. sources: net/mac/channels.c */
#include <stdbool.h>

#include "unit.h"

#include "drivers/settings.h"
#include "net/mac/channels.h"

static struct wire_settings own = {
    .pan = WIRE_PAN_DEFAULT, .channel = WIRE_CHANNEL_DEFAULT, .channels = WIRE_CHANNELS_DEFAULT};
const struct wire_settings *settings(void) { return &own; }

static bool in_mask(uint8_t channel)
{
    return channel >= 11 && channel <= 26 && own.channels >> (channel - 11) & 1;
}

static void without_a_mask_all_is_at_home(void)
{
    own.channels = 0;
    for (uint16_t i = 0; i < 1000; i++) {
        CHECK_EQUAL(channel_data(i), own.channel);
        CHECK_EQUAL(channel_control(i), own.channel);
        CHECK_EQUAL(channel_search((uint8_t)i), own.channel);
    }
    own.channels = WIRE_CHANNELS_DEFAULT;
}

/* Whatever the period, in whose every n-th round rows travel: no channel has more than half of
 * them. */
static void data_rounds_of_any_period_use_all_channels(void)
{
    for (uint32_t mask = 3; mask <= 0xFFFF; mask = mask * 3 + 1) {
        own.channels = (uint16_t)mask;
        uint8_t number = 0;
        for (uint16_t left = own.channels; left; left &= (uint16_t)(left - 1))
            number++;
        for (uint32_t period = 1; period <= 120; period++) {
            uint16_t used[27] = {0};
            uint8_t channels = 0;
            for (uint32_t n = 0; n < 400; n++) {
                uint8_t channel = channel_data((uint16_t)(100000 + n * period));
                CHECK(in_mask(channel));
                used[channel]++;
            }
            for (uint8_t c = 11; c <= 26; c++) {
                channels = (uint8_t)(channels + (used[c] > 0));
                CHECK(used[c] <= 400 * 2 / number + 40);
            }
            CHECK_EQUAL(channels, number);
        }
    }
    own.channels = WIRE_CHANNELS_DEFAULT;
}

static void control_windows_alternate_in_fast_and_in_slow_networks(void)
{
    for (uint32_t s = 0; s < 64; s += 4)
        CHECK_EQUAL(channel_control(s), own.channel);
    for (uint32_t every = 4; every <= 16; every *= 4) {
        uint16_t home = 0;
        for (uint32_t s = 64; s < 64 + 400 * every; s += every) {
            home = (uint16_t)(home + (channel_control(s) == own.channel));
            CHECK(in_mask(channel_control(s)));
            /* Never a third one in a row on the same. */
            CHECK(channel_control(s) != channel_control(s + every) ||
                  channel_control(s) != channel_control(s + 2 * every));
        }
        CHECK(home >= 199 && home <= 201);
    }
}

static void home_is_never_both_of_the_two(void)
{
    own.channel = 15;
    CHECK_EQUAL(channel_search(0), 15);
    CHECK_EQUAL(channel_search(1), 20);
    own.channel = 13; /* outside the mask */
    CHECK_EQUAL(channel_search(1), 15);
    own.channels = 1 << 2; /* that alone */
    CHECK_EQUAL(channel_search(1), 13);
    own.channel = WIRE_CHANNEL_DEFAULT;
    own.channels = WIRE_CHANNELS_DEFAULT;
}

static const struct test tests[] = {
    TEST(without_a_mask_all_is_at_home),
    TEST(data_rounds_of_any_period_use_all_channels),
    TEST(control_windows_alternate_in_fast_and_in_slow_networks),
    TEST(home_is_never_both_of_the_two),
};
UNIT_MAIN(tests)
