/* blink(n): so many LEDs. */
#include "board.h"
#include "commands/command.h"

COMMAND(blink, 130, 0, 3)
{
    board_leds((uint8_t)((1 << argument) - 1));
    return true;
}
