/* Nobody asks for a command that he has not heard: it is sent again where no neighbour has been
 * heard to repeat it. */
#include "net/transport/command_flood.h"

#include <string.h>

#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/transport/flood.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

#define ARGUMENTS_MAXIMUM sizeof(struct wire_event)
/* More windows for a command that nobody has been heard to repeat: hidden from each other, several
 * that begin at once collide at the motes that hear them. */
#define UNHEARD_WINDOWS 6

static struct {
    /* Where there is none `repeats` is 0. */
    struct command_flood {
        uint8_t bytes[sizeof(struct wire_command) + ARGUMENTS_MAXIMUM];
        uint8_t length, repeats;
        uint8_t unheard; /* windows for which it is repeated as nobody has been heard to */
    } floods[COMMANDS];
    /* Tokens of the last commands, so that none is executed twice: a ring. */
    uint16_t tokens[TOKENS];
    uint8_t token_next, token_count;
} commands;

/* Where a command is kept that is to be flooded: in place of none, or of one that has been sent in
 * a window already. COMMANDS: nowhere. */
static uint8_t flood_place(void)
{
    uint8_t place = COMMANDS;
    for (uint8_t i = 0; i < COMMANDS; i++) {
        uint8_t repeats = commands.floods[i].repeats;
        if (repeats == 0)
            return i;
        if (repeats == FLOOD_HELD || repeats >= FLOOD_LAST)
            place = i;
    }
    return place;
}

void command_flood_take(const struct wire_command *command, uint8_t length)
{
    uint8_t arguments = (uint8_t)(length - sizeof *command), place;
    for (uint8_t i = 0; i < COMMANDS; i++)
        if (((const struct wire_command *)commands.floods[i].bytes)->token == command->token)
            commands.floods[i].unheard = 0;
    for (uint8_t i = 0; i < commands.token_count; i++)
        if (commands.tokens[i] == command->token)
            return;
    commands.tokens[commands.token_next] = command->token;
    commands.token_next = (uint8_t)((commands.token_next + 1) % TOKENS);
    if (commands.token_count < TOKENS)
        commands.token_count++;
    net_execute(command, arguments);
    if (arguments > ARGUMENTS_MAXIMUM || (place = flood_place()) == COMMANDS)
        return;
    memcpy(commands.floods[place].bytes, command, length);
    commands.floods[place].length = length;
    commands.floods[place].repeats = FLOOD_NEW;
    commands.floods[place].unheard = UNHEARD_WINDOWS;
}

bool command_flood_signal_room(void) { return flood_place() < COMMANDS; }

bool command_flood_room(void)
{
    uint8_t place = flood_place();
    return place < COMMANDS && !commands.floods[place].repeats;
}

void command_flood_window(void)
{
    for (uint8_t i = 0; i < COMMANDS; i++)
        flood_release(&commands.floods[i].repeats, FLOOD_LAST_COMMANDS);
}

static struct command_flood *first_due(void)
{
    for (struct command_flood *flood = commands.floods; flood < commands.floods + COMMANDS; flood++)
        if (flood_due(flood->repeats))
            return flood;
    return NULL;
}

bool command_flood_waits(void) { return first_due(); }

uint8_t command_flood_write(void)
{
    struct command_flood *flood = first_due();
    if (!flood)
        return 0;
    flood->repeats = flood_spent(flood->repeats);
    if (!flood->repeats && flood->unheard) {
        flood->unheard--;
        flood->repeats = FLOOD_HELD;
    }
    memcpy(mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_COMMAND), flood->bytes,
           flood->length);
    return flood->length;
}

void command_flood_forget(void) { memset(&commands, 0, sizeof commands); }
