/* Settings at the start of the ATmega1281's EEPROM. */
#include "drivers/settings.h"

#include <avr/eeprom.h>
#include <stddef.h>

static struct wire_settings current;

const struct wire_settings *settings_load(void)
{
    eeprom_read_block(&current, (const void *)0, sizeof current);
    if (current.magic != WIRE_SETTINGS_MAGIC) {
        current = (struct wire_settings){.magic = WIRE_SETTINGS_MAGIC, .nodeid = 0xFFFE, .pan = WIRE_PAN_DEFAULT, .channel = WIRE_CHANNEL_DEFAULT};
    }
    current.boots++;
    eeprom_update_block(&current, (void *)0, sizeof current);
    return &current;
}

const struct wire_settings *settings(void) { return &current; }

void settings_position(int32_t x, int32_t y)
{
    current.x = x;
    current.y = y;
    eeprom_update_block(&current, (void *)0, sizeof current);
}
