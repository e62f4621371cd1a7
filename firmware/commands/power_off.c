/* Sets the actuator pin low. */
#include "board.h"
#include "commands/command.h"

COMMAND(power_off, 3, 0, 0)
{
    (void)argument;
    board_actuator(false);
    return true;
}
