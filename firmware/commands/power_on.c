/* Sets the actuator pin high, as the paper's power-on does (TinyDB 2005, 3.7). */
#include "board.h"
#include "commands/command.h"

COMMAND(power_on, 2, 0, 0)
{
    (void)argument;
    board_actuator(true);
    return true;
}
