/* Settings at the start of the ATmega1281's EEPROM. */
#include "drivers/settings.h"

#include "drivers/avr/eeprom.h"
#include "drivers/settings_start.h"

_Static_assert(sizeof(struct wire_settings) <= EEPROM_SETTINGS, "rows lie behind them");
static struct wire_settings current;

const struct wire_settings *settings_load(void)
{
    eeprom_read(0, &current, sizeof current);
    if (current.magic != WIRE_SETTINGS_MAGIC)
        current = settings_defaults();
    settings_start(&current);
    eeprom_update(0, &current, sizeof current);
    return &current;
}

const struct wire_settings *settings(void) { return &current; }

void settings_keep(const struct wire_settings *changed)
{
    current = *changed;
    eeprom_update(0, &current, sizeof current);
}

void settings_renew(uint16_t other)
{
    settings_pass(&current, other);
    eeprom_update(0, &current, sizeof current);
}
