/* Sets the attribute floor, which outlives a restart. */
#include "commands/command.h"
#include "drivers/settings.h"

COMMAND(set_floor, 5, -100, 1000)
{
    struct wire_settings changed = *settings();
    changed.floor = (int16_t)argument;
    settings_keep(&changed);
    return true;
}
