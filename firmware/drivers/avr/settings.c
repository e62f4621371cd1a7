/* Settings at the start of the ATmega1281's EEPROM. */
#include "drivers/settings.h"

#include "drivers/avr/eeprom.h"

_Static_assert(sizeof(struct wire_settings) <= EEPROM_SETTINGS, "rows lie behind them");
static struct wire_settings current;

const struct wire_settings *settings_load(void)
{
    eeprom_read(0, &current, sizeof current);
    if (current.magic != WIRE_SETTINGS_MAGIC) {
        current = (struct wire_settings){.magic = WIRE_SETTINGS_MAGIC,
                                         .nodeid = 0xFFFE,
                                         .pan = WIRE_PAN_DEFAULT,
                                         .channel = WIRE_CHANNEL_DEFAULT,
                                         .channels = WIRE_CHANNELS_DEFAULT};
    }
    current.boots++;
    eeprom_update(0, &current, sizeof current);
    return &current;
}

const struct wire_settings *settings(void) { return &current; }

void settings_keep(const struct wire_settings *changed)
{
    current = *changed;
    eeprom_update(0, &current, sizeof current);
}
