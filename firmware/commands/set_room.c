/* Sets the attribute room, which outlives a restart. */
#include "commands/command.h"
#include "commands/constants.h"

COMMAND(set_room, 4, 0, 65535)
{
    constants_keep(offsetof(struct wire_settings, room), (uint16_t)argument);
    return true;
}
