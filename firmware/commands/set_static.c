/* Sets one of the static attributes that users have named, which outlives a restart. */
#include "commands/command.h"
#include "drivers/settings.h"

COMMAND(set_static, 8, 0, 655359)
{
    struct wire_settings changed = *settings();
    changed.statics[argument / 65536] = (uint16_t)argument;
    settings_keep(&changed);
    return true;
}
