/* Lights LEDs: bit 0 red, 1 green, 2 yellow. */
#include "board.h"
#include "commands/command.h"

COMMAND(leds, 1, 0, 7)
{
    board_leds((uint8_t)argument);
    return true;
}
