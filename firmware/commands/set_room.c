/* Sets the attribute room, which outlives a restart. */
#include "commands/command.h"
#include "drivers/settings.h"

COMMAND(set_room, 4, 0, 65535)
{
    struct wire_settings changed = *settings();
    changed.room = (uint16_t)argument;
    settings_keep(&changed);
    return true;
}
