/* Feeds a mote's frame handlers, and the root's serial line, with anything: random bytes, valid packets with a few bytes changed,
 * plausible packets. Run under AddressSanitizer and UndefinedBehaviorSanitizer: surviving is the test.
 *
 * fuzz_frames ROLE(mote|root) COUNT SEED */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/radio.h"
#include "host.h"
#include "kernel/clock.h"
#include "net/cobs.h"
#include "net/net.h"
#include "query/query.h"

static uint64_t state;
static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

#define ME 7
static const uint8_t types[] = {WIRE_PACKET_BEACON, WIRE_PACKET_QUERY_INSTALL, WIRE_PACKET_QUERY_STOP, WIRE_PACKET_QUERY_REQUEST, WIRE_PACKET_COMMAND,
                                WIRE_PACKET_BUNDLE, WIRE_PACKET_RESULT, WIRE_PACKET_HELLO};

/* A body that its handler takes for good, at least in its fixed part. */
static uint8_t plausible_body(uint8_t type, uint8_t *body)
{
    uint8_t length = (uint8_t)draw(105);
    for (uint8_t i = 0; i < 110; i++) body[i] = (uint8_t)draw(256);
    if (type == WIRE_PACKET_BEACON) {
        struct wire_beacon *beacon = (struct wire_beacon *)body;
        beacon->root = 0;
        beacon->session = 1 + (draw(2000) == 0);
        beacon->level = (uint8_t)draw(12);
        beacon->cost = (uint16_t)draw(400);
        beacon->ticks = (uint16_t)draw(33000);
        beacon->seconds = clock_uptime() + draw(3);
        return (uint8_t)(sizeof *beacon + 3 * draw(13));
    }
    if (type == WIRE_PACKET_QUERY_INSTALL) {
        struct wire_query_install *install = (struct wire_query_install *)body;
        static const uint8_t code[] = {WIRE_OP_ATTR, WIRE_ATTRIBUTE_TEMP};
        struct wire_query_program program = {.flags = (uint8_t)draw(3), .period = 1000 * (1 + draw(9)), .start = draw(100), .end = WIRE_FOREVER};
        struct wire_program_field field = {.format = 1 + (uint8_t)draw(5), .aggregate = program.flags & 1 ? 1 + (uint8_t)draw(5) : 0, .code_length = 2};
        install->query = 1 + (uint8_t)draw(9);
        install->query_version = (uint16_t)draw(50);
        install->offset = 0;
        install->total = sizeof program + sizeof field + sizeof code;
        memcpy(install->data, &program, sizeof program);
        memcpy(install->data + sizeof program, &field, sizeof field);
        memcpy(install->data + sizeof program + sizeof field, code, sizeof code);
        return (uint8_t)(sizeof *install + install->total);
    }
    if (type == WIRE_PACKET_COMMAND) {
        struct wire_command *command = (struct wire_command *)body;
        if (command->op == WIRE_COMMAND_REBOOT) command->op = WIRE_COMMAND_PING;
        command->target = draw(2) ? ME : WIRE_BROADCAST;
        return (uint8_t)(sizeof *command + draw(20));
    }
    if (type == WIRE_PACKET_BUNDLE) {
        uint8_t at = 1;
        while (at < 80) {
            struct wire_record *record = (struct wire_record *)(body + at);
            record->type = WIRE_PACKET_RESULT + (uint8_t)draw(5);
            record->body_length = (uint8_t)draw(30);
            at = (uint8_t)(at + sizeof *record + record->body_length);
        }
        return draw(4) ? at : length;
    }
    return length;
}

static uint8_t make_frame(uint8_t *frame)
{
    if (draw(8) == 0) {
        uint8_t length = (uint8_t)draw(RADIO_FRAME_MAXIMUM + 1);
        for (uint8_t i = 0; i < length; i++) frame[i] = (uint8_t)draw(256);
        return length;
    }
    struct wire_mac_header *header = (struct wire_mac_header *)frame;
    *header = (struct wire_mac_header){.sequence = (uint8_t)draw(256), .pan = WIRE_PAN_DEFAULT, .source = (uint16_t)draw(20)};
    header->destination = draw(2) ? ME : WIRE_BROADCAST;
    header->frame_control = header->destination == ME ? WIRE_FRAME_CONTROL_DATA_ACK : WIRE_FRAME_CONTROL_DATA;
    uint8_t *packet = (uint8_t *)(header + 1);
    packet[0] = WIRE_PROTOCOL_VERSION;
    packet[1] = types[draw(sizeof types)];
    uint8_t length = (uint8_t)(sizeof *header + 2 + plausible_body(packet[1], packet + 2));
    if (draw(2))
        for (uint32_t i = 1 + draw(8); i; i--) frame[draw(length)] = (uint8_t)draw(256);
    /* A command to reboot is obeyed, which would end the run. */
    if (packet[1] == WIRE_PACKET_COMMAND && packet[6] == WIRE_COMMAND_REBOOT) packet[6] = WIRE_COMMAND_PING;
    if (draw(8) == 0) length = (uint8_t)draw(length + 1);
    return length > RADIO_FRAME_MAXIMUM ? RADIO_FRAME_MAXIMUM : length;
}

static void serial_input(void)
{
    uint8_t body[160], frame[124], stuffed[130];
    uint8_t type = types[draw(sizeof types)];
    frame[0] = 1 + (uint8_t)draw(4);
    frame[1] = (uint8_t)draw(8);
    frame[2] = WIRE_PROTOCOL_VERSION;
    frame[3] = type;
    uint8_t length = plausible_body(type, body);
    if (length > 114) length = 114;
    memcpy(frame + 4, body, length);
    length = (uint8_t)(length + 4);
    if (draw(3) == 0) frame[draw(length)] = (uint8_t)draw(256);
    if (frame[3] == WIRE_PACKET_COMMAND && frame[8] == WIRE_COMMAND_REBOOT) frame[8] = WIRE_COMMAND_PING;
    uint16_t crc = 0;
    for (uint8_t i = 0; i < length; i++) crc = crc_xmodem(crc, frame[i]);
    frame[length++] = (uint8_t)(crc >> 8);
    frame[length++] = (uint8_t)crc;
    uint8_t written = cobs_encode(frame, length, stuffed);
    if (draw(4) == 0)
        for (uint8_t i = 0; i < written; i++) stuffed[i] = (uint8_t)draw(256);
    host_serial(stuffed, written);
}

int main(int count_of_arguments, char **arguments)
{
    if (count_of_arguments != 4) return 2;
    bool root = strcmp(arguments[1], "root") == 0;
    uint32_t inputs = (uint32_t)strtoul(arguments[2], NULL, 10);
    state = strtoull(arguments[3], NULL, 10) * 2654435761U + 1;
    struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC, .nodeid = root ? 0 : ME, .pan = WIRE_PAN_DEFAULT, .channel = 26, .root = root, .boots = 1};
    host_settings(&own);
    query_init();
    net_init();
    static uint8_t frame[256];
    for (uint32_t i = 0; i < inputs; i++) {
        host_acknowledges = draw(4) != 0;
        if (root && draw(2)) serial_input();
        else {
            radio_on(); /* whatever the schedule says: every input is to reach a handler */
            host_receive(frame, make_frame(frame), (uint8_t)draw(256));
        }
        host_run(1 + draw(300), 64);
    }
    printf("%s: %u inputs, seed %s, %u frames sent in answer\n", arguments[1], inputs, arguments[3], host_sent_count);
    return 0;
}
