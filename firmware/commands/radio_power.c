/* Sets the radio's output, in dBm; a restart sets it back to the highest. */
#include "commands/command.h"
#include "drivers/radio.h"

COMMAND(radio_power, 7, -17, 3)
{
    radio_set_power((int8_t)argument);
    return true;
}
