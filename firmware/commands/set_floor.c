/* Sets the attribute floor, which outlives a restart. */
#include "commands/command.h"
#include "commands/constants.h"

COMMAND(set_floor, 5, -100, 1000)
{
    constants_keep(offsetof(struct wire_settings, floor), (uint16_t)argument);
    return true;
}
