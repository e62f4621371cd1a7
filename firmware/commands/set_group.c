/* Sets the attribute group, which outlives a restart. */
#include "commands/command.h"
#include "commands/constants.h"

COMMAND(set_group, 6, 0, 65535)
{
    constants_keep(offsetof(struct wire_settings, group), (uint16_t)argument);
    return true;
}
