/* A command is one file here: COMMAND and a body, which returns false for an argument that it
 * cannot use.
 *
 *     COMMAND(leds, 1, 0, 7)
 *     {
 *         board_leds((uint8_t)argument);
 *         return true;
 *     }
 *
 * Name, number and bounds of the argument are also in skerry_protocol/commands.py; of a command
 * from outside this tree (make firmware EXTENSIONS=folder), whose number is 128 or above, the
 * gateway reads them from its file (--extensions folder). What takes no argument has the bounds 0,
 * 0. tools/registry.py makes the table that finds them. */
#ifndef SKERRY_COMMANDS_COMMAND_H
#define SKERRY_COMMANDS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#define COMMAND(name, number, low, high)                                                           \
    bool command_##name(int32_t argument);                                                         \
    bool command_##name(int32_t argument)

enum command_outcome { COMMAND_DONE, COMMAND_UNKNOWN, COMMAND_BAD_ARGUMENT };

/* Runs the command of that number. In the generated registry.c. */
enum command_outcome command_run(uint8_t number, int32_t argument);

#endif
