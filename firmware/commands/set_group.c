/* Sets the attribute group, which outlives a restart. */
#include "commands/command.h"
#include "drivers/settings.h"

COMMAND(set_group, 6, 0, 65535)
{
    struct wire_settings changed = *settings();
    changed.group = (uint16_t)argument;
    settings_keep(&changed);
    return true;
}
