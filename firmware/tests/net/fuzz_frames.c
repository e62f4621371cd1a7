/* Feeds a mote's frame handlers, and the root's serial line, with anything: random bytes, valid
 * packets with a few bytes changed, plausible packets. Run under AddressSanitizer and
 * UndefinedBehaviorSanitizer: surviving is the test.
 *
 * fuzz_frames ROLE(mote|root) COUNT SEED */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/radio.h"
#include "host.h"
#include "join/pairs.h"
#include "kernel/clock.h"
#include "kernel/kernel.h"
#include "lib/cobs.h"
#include "lib/crc.h"
#include "net/app.h"
#include "net/content/content_state.h"
#include "net/mac/mac.h"
#include "net/net.h"
#include "net/routing/tree.h"
#include "net/transport/dissemination.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/program/clauses.h"
#include "query/program/query_table.h"
#include "query/query.h"
#include "storage/tuples.h"
#include "tests/fuzz.h"
#include "tests/net/fuzz_indexes.h"

#define MOTE 7
static bool root;
static uint16_t me;
/* The gateway's numbers, so that the root takes most frames for good ones. */
static uint8_t data_next, heard_next;
static uint16_t version;
/* What got through to the layers above. */
static uint32_t accepted, bundles, installs, opened, carried_on, searched, nominated, met;
/* Tuples of indexes that were stored at once, at most. */
static uint32_t stored_most;

static const uint8_t types[] = {
    WIRE_PACKET_BEACON,        WIRE_PACKET_QUERY_INSTALL, WIRE_PACKET_QUERY_STOP,
    WIRE_PACKET_QUERY_REQUEST, WIRE_PACKET_COMMAND,       WIRE_PACKET_BUNDLE,
    WIRE_PACKET_JOIN,          WIRE_PACKET_RESULT,        WIRE_PACKET_HELLO,
    WIRE_PACKET_WAY_OPEN,      WIRE_PACKET_WAY_STATE,     WIRE_PACKET_TRAIL,
    WIRE_PACKET_CARRIED,       WIRE_PACKET_POSITION,      WIRE_PACKET_CONTENT,
    WIRE_PACKET_SEARCH};

/* A way from one of few motes to one of few, so that packets meet what others have made. */
static uint8_t way_open(uint8_t *body)
{
    struct wire_way_open *open = (struct wire_way_open *)body;
    bool by_place = below(2);
    *open = (struct wire_way_open){.source = (uint16_t)below(12),
                                   .number = (uint8_t)below(3),
                                   .flags = (uint8_t)(by_place ? 2 + 4 * below(2) : below(2)),
                                   .destination = below(3)   ? me
                                                  : below(4) ? (uint16_t)below(20)
                                                             : WIRE_NO_NODE,
                                   .hop = (uint8_t)(1 + below(6)),
                                   .every = (uint8_t)(2 + below(7))};
    if (!by_place && below(2))
        return sizeof *open;
    if (!by_place) { /* a path vector */
        uint8_t vector = (uint8_t)below(WIRE_VECTOR_MAXIMUM + 2);
        open->flags = WIRE_WAY_VECTOR;
        for (uint8_t i = 0; i < vector; i++)
            open->more[i] = (uint8_t)(below(16) ? below(20) : below(256));
        return (uint8_t)(sizeof *open + vector);
    }
    struct wire_way_place *place = (struct wire_way_place *)open->more;
    *place = (struct wire_way_place){.x = coordinate(),
                                     .y = coordinate(),
                                     .sender_x = coordinate(),
                                     .sender_y = coordinate(),
                                     .entered_x = coordinate(),
                                     .entered_y = coordinate(),
                                     .crossed = (uint16_t)below(65536),
                                     .first = (uint16_t)below(20),
                                     .second = (uint16_t)below(20),
                                     .left = (uint8_t)below(66)};
    return sizeof *open + sizeof *place;
}

/* What motes search by, and roots of their trees: of few kinds, so that packets meet the state that
 * others have begun. */
static const uint16_t search_roots[WIRE_SEARCH_TREES] = {0, 3, MOTE};

static uint8_t search_attribute(void)
{
    return below(32) ? WIRE_ATTRIBUTE_ROOM : (uint8_t)below(256);
}

static uint8_t content(uint8_t *body)
{
    struct wire_content *frame = (struct wire_content *)body;
    struct wire_content_tree *tree = (struct wire_content_tree *)frame->trees;
    frame->attribute = search_attribute();
    frame->kind = below(32) ? 3 : (uint8_t)below(256);
    for (uint8_t i = 0; i < WIRE_SEARCH_TREES; i++, tree++) {
        tree->root = below(64) ? search_roots[i] : (uint16_t)below(65536);
        tree->parent = below(2) ? me : below(4) ? (uint16_t)below(20) : WIRE_NO_NODE;
        tree->hops = (uint8_t)(below(8) ? below(24) : below(256));
    }
    return sizeof *frame + WIRE_SEARCH_TREES * sizeof *tree;
}

static uint8_t search(uint8_t *body)
{
    struct wire_search *frame = (struct wire_search *)body;
    uint8_t motes = (uint8_t)(1 + below(below(4) ? 5 : 24));
    frame->attribute = search_attribute();
    frame->token = (uint16_t)below(65536);
    frame->low = -32768;
    frame->high = (int16_t)(below(65536) - 32768);
    frame->tree = (uint8_t)((below(2) ? 0x80 : 0) | (below(16) ? below(3) : below(128)));
    for (uint8_t i = 0; i < motes; i++) {
        uint16_t mote = (uint16_t)below(20);
        memcpy(frame->path + 2 * i, &mote, sizeof mote);
    }
    return (uint8_t)(sizeof *frame + 2 * motes - (below(16) == 0));
}

/* A query whose rows pairs of motes join, at this mote or another: its columns and its PAIRS. */
static uint8_t nomination(uint8_t *data)
{
    static const uint8_t roles[] = {WIRE_OP_CONST8, 3},
                         code[] = {WIRE_OP_ATTR, WIRE_ATTRIBUTE_TEMP},
                         later[] = {WIRE_OP_STORED, 0x01, WIRE_OP_STORED, 0x11, WIRE_OP_GT};
    struct wire_query_program program = {
        .period = 1000 * (1 + below(9)), .start = below(100), .end = WIRE_FOREVER};
    struct wire_program_field fields[] = {{.format = WIRE_FORMAT_U8, .code_length = sizeof roles},
                                          {.format = WIRE_FORMAT_I16, .code_length = sizeof code},
                                          {.aggregate = WIRE_AGGREGATE_PAIRS}};
    /* This mote, 0 or 7, has one of the first numbers in most of these sets. */
    uint8_t sets[12], motes = (uint8_t)(2 + below(3)), base = (uint8_t)below(3);
    for (uint8_t i = 0; i < motes + 2 * base; i++)
        sets[i] = (uint8_t)below(below(4) ? 128 : 256);
    if (below(8))
        sets[0] = (uint8_t)below(4);
    sets[me / 7] |= 1;
    struct wire_pairs pairs = {.rows = (uint8_t)below(4),
                               .epochs = (uint16_t)below(5),
                               .delay = (uint8_t)(1 + below(4)),
                               .width = 2,
                               .condition = below(2) ? sizeof later : 0,
                               .way = (uint8_t)below(3),
                               .motes = motes,
                               .s = base,
                               .t = base};
    uint8_t clause[64], length = sizeof pairs;
    memcpy(clause, &pairs, sizeof pairs);
    memcpy(clause + length, later, pairs.condition);
    length = (uint8_t)(length + pairs.condition);
    memcpy(clause + length, sets, motes + 2U * base);
    length = (uint8_t)(length + motes + 2 * base);
    for (uint32_t hosts = below(3); hosts; hosts--) {
        struct wire_pairs_host host = {(uint8_t)below(below(32) ? 3 : 256), (uint8_t)below(24),
                                       (uint8_t)below(6)};
        memcpy(clause + length, &host, sizeof host);
        length = (uint8_t)(length + sizeof host);
        bool relayed = !below(3);
        for (uint8_t i = 0; i < host.groups; i++)
            clause[length++] = (uint8_t)(below(below(32) ? 4 : 64) |
                                         (relayed && i < 2 ? 0 : 1 + below(3)) * PAIRS_MOTES);
    }
    fields[2].code_length = length;
    uint8_t *at = data;
    const uint8_t *codes[] = {roles, code, clause};
    memcpy(at, &program, sizeof program);
    at += sizeof program;
    for (uint8_t i = 0; i < 3; i++) {
        memcpy(at, &fields[i], sizeof fields[i]);
        memcpy(at + sizeof fields[i], codes[i], fields[i].code_length);
        at += sizeof fields[i] + fields[i].code_length;
    }
    return (uint8_t)(at - data);
}

/* A row on a way, of a mote and a query of few. */
static uint8_t pair_row(uint8_t *record)
{
    struct wire_result row = {.query = 1 + (uint8_t)below(9),
                              .node = below(2) ? me : (uint16_t)below(20),
                              .epoch = below(40),
                              .nulls = (uint16_t)below(4)};
    record[0] = WIRE_CARRIES_ROW;
    memcpy(record + 1, &row, sizeof row);
    return sizeof row + 1 + 3;
}

/* A body that its handler takes for good, at least in its fixed part. */
static uint8_t plausible_body(uint8_t type, uint8_t *body)
{
    uint8_t length = (uint8_t)below(105);
    for (uint8_t i = 0; i < 110; i++)
        body[i] = (uint8_t)below(256);
    if (type == WIRE_PACKET_BEACON) {
        struct wire_beacon *beacon = (struct wire_beacon *)body;
        beacon->root = 0;
        beacon->parent = below(6) ? (uint16_t)below(20) : me;
        beacon->query_version = (uint16_t)(version - below(2));
        beacon->session = 1 + (below(2000) == 0);
        beacon->level = (uint8_t)below(12);
        beacon->cost = (uint16_t)below(400);
        beacon->ticks = (uint16_t)below(33000);
        beacon->seconds = clock_uptime() + below(3);
        if (below(4)) { /* such as they are, mostly */
            struct wire_slots_entry *announced = (struct wire_slots_entry *)beacon->neighbours,
                                    *end = announced + below(3);
            for (; announced < end; announced++) {
                announced->srt = 0;
                announced->start = (uint8_t)(clock_uptime() / 16 + below(4));
                announced->table = below(3) ? below(8) << 4 * below(6) | below(32) << 24 : 0;
            }
            struct wire_srt_entry *entry = (struct wire_srt_entry *)end, *last = entry + below(4);
            for (; entry < last; entry++)
                entry->srt = (uint8_t)below(4);
            beacon->srts_length = (uint8_t)((uint8_t *)last - (uint8_t *)beacon->neighbours);
            return (uint8_t)(sizeof *beacon + beacon->srts_length + 3 * below(13));
        }
        return (uint8_t)(sizeof *beacon + 3 * below(13));
    }
    if (type == WIRE_PACKET_QUERY_INSTALL) {
        struct wire_query_install *install = (struct wire_query_install *)body;
        static const uint8_t code[] = {WIRE_OP_ATTR, WIRE_ATTRIBUTE_TEMP};
        struct wire_query_program program = {.flags = (uint8_t)below(3),
                                             .period = 1000 * (1 + below(9)),
                                             .start = below(100),
                                             .end = WIRE_FOREVER};
        struct wire_program_field field = {.format = 1 + (uint8_t)below(5),
                                           .aggregate =
                                               program.flags & 1 ? 1 + (uint8_t)below(5) : 0,
                                           .code_length = 2};
        install->query = 1 + (uint8_t)below(9);
        if (below(4) == 0)
            version++;
        install->query_version = (uint16_t)(version - (below(8) ? 0 : below(5)));
        install->offset = 0;
        if (below(3) == 0) {
            install->total = nomination(install->data);
            return (uint8_t)(sizeof *install + install->total);
        }
        install->total = sizeof program + sizeof field + sizeof code;
        memcpy(install->data, &program, sizeof program);
        memcpy(install->data + sizeof program, &field, sizeof field);
        memcpy(install->data + sizeof program + sizeof field, code, sizeof code);
        if (!(program.flags & 1) &&
            below(2)) { /* an index, which this mote stores, mostly, or asks */
            install->total = put_indexed(install->data, &program, me);
            return (uint8_t)(sizeof *install + install->total);
        }
        if (below(2)) { /* a semantic routing tree, or a query that goes by one */
            uint8_t *at = install->data + install->total;
            bool tree = below(3) == 0;
            struct wire_program_field clause = {.aggregate = tree ? WIRE_AGGREGATE_SRT
                                                                  : WIRE_AGGREGATE_ROUTE};
            struct wire_srt srt = {.srt = 1 + (uint8_t)below(3), .policy = (uint8_t)below(4)};
            struct wire_srt_axis axis = {.attribute =
                                             below(2) ? WIRE_ATTRIBUTE_NODEID : WIRE_ATTRIBUTE_TEMP,
                                         .step = 1 + below(9)};
            clause.code_length = tree ? sizeof srt + sizeof axis : sizeof(struct wire_route);
            memcpy(at, &clause, sizeof clause);
            memcpy(at + sizeof clause, &srt, tree ? sizeof srt : 1);
            if (tree)
                memcpy(at + sizeof clause + sizeof srt, &axis, sizeof axis);
            install->total = (uint8_t)(install->total + sizeof clause + clause.code_length);
        }
        return (uint8_t)(sizeof *install + install->total);
    }
    if (type == WIRE_PACKET_COMMAND) {
        struct wire_command *command = (struct wire_command *)body;
        if (command->op == WIRE_COMMAND_REBOOT)
            command->op = WIRE_COMMAND_PING;
        command->target = below(2) ? me : WIRE_BROADCAST;
        if (below(3) == 0) { /* what is stored of an index */
            uint16_t index = an_index();
            command->op = below(16) ? WIRE_COMMAND_INDEX_ASK : WIRE_COMMAND_INDEX_DROP;
            bool states = below(2);
            if (states)
                index |= 7U << 13;
            memcpy(command->arguments, &index, sizeof index);
            if (below(4) && states) { /* its part and how many, which has bounds, one of them */
                uint8_t kind = (uint8_t)(below(6) << 4 | (below(2) ? 15 : below(3)));
                uint8_t group = (uint8_t)(below(4) ? 13 + below(2) : below(3));
                bool grouped = below(2);
                uint8_t asked[] = {(uint8_t)(below(2) | (grouped ? 8U : 0U) | below(5) << 4),
                                   (uint8_t)below(2), grouped ? group : kind, kind};
                memcpy(command->arguments + sizeof index, asked, sizeof asked);
            } else if (below(4))
                memcpy(command->arguments + sizeof index, "\x00\xF0\xFF", 3);
            return (uint8_t)(sizeof *command + sizeof index +
                             (below(2) ? 3 + below(2) : below(19)));
        }
        if (below(3) == 0) {
            struct wire_event event = {.event = (uint16_t)(1 + below(3)),
                                       .node = below(2) ? me : (uint16_t)below(20),
                                       .seconds = clock_uptime() - below(10)};
            command->op = WIRE_COMMAND_EVENT;
            memcpy(command->arguments, &event, sizeof event);
            return sizeof *command + sizeof event;
        }
        if (below(3) == 0) { /* a ping, to a mote or a place */
            uint16_t to_seconds[2] = {below(4) ? (uint16_t)below(20) : WIRE_NO_NODE,
                                      (uint16_t)below(60)};
            int32_t place[2] = {coordinate() * 10, coordinate() * 10};
            if (below(3) == 0) {
                struct wire_search_command *asked =
                    (struct wire_search_command *)command->arguments;
                command->op = WIRE_COMMAND_SEARCH;
                asked->attribute = search_attribute();
                asked->kind = below(16) ? 3 : (uint8_t)below(256);
                asked->seeker = below(2) ? me : (uint16_t)below(20);
                asked->wait = (uint8_t)below(4);
                memcpy(asked->roots, search_roots, sizeof search_roots);
                return sizeof *command + sizeof *asked;
            }
            command->op = below(3) ? WIRE_COMMAND_PING_TO : WIRE_COMMAND_PING_BY;
            memcpy(command->arguments, to_seconds, sizeof to_seconds);
            memcpy(command->arguments + sizeof to_seconds, place, sizeof place);
            return (uint8_t)(sizeof *command + sizeof to_seconds + (below(2) ? sizeof place : 0));
        }
        return (uint8_t)(sizeof *command + below(20));
    }
    if (type == WIRE_PACKET_WAY_OPEN)
        return way_open(body);
    if (type == WIRE_PACKET_CONTENT)
        return content(body);
    if (type == WIRE_PACKET_SEARCH)
        return search(body);
    if (type == WIRE_PACKET_WAY_STATE || type == WIRE_PACKET_CARRIED) {
        struct wire_carried *carried_frame = (struct wire_carried *)body;
        carried_frame->source = (uint16_t)below(12);
        carried_frame->number = (uint8_t)below(3);
        carried_frame->record[0] = below(2) ? WIRE_CARRIES_PING : (uint8_t)below(8);
        carried_frame->deadline = (uint16_t)(clock_uptime() + below(40));
        if (type == WIRE_PACKET_CARRIED && below(3) == 0)
            return (uint8_t)(sizeof *carried_frame + pair_row(carried_frame->record));
        if (type == WIRE_PACKET_CARRIED && carried_frame->record[0] == WIRE_CARRIES_TUPLE)
            return (uint8_t)(sizeof *carried_frame + put_tuples(carried_frame->record));
        if (type == WIRE_PACKET_CARRIED && carried_frame->record[0] == WIRE_CARRIES_GATHERED)
            return (uint8_t)(sizeof *carried_frame + put_gathered(carried_frame->record, me));
        if (type == WIRE_PACKET_CARRIED && carried_frame->record[0] == WIRE_CARRIES_HANDED)
            return (uint8_t)(sizeof *carried_frame + put_handed(carried_frame->record));
        if (type == WIRE_PACKET_CARRIED && carried_frame->record[0] == WIRE_CARRIES_KEPT)
            return (uint8_t)(sizeof *carried_frame + put_kept(carried_frame->record));
        return type == WIRE_PACKET_WAY_STATE
                   ? (uint8_t)sizeof(struct wire_way_state)
                   : (uint8_t)(sizeof *carried_frame + 1 + below(WIRE_CARRIED_MAXIMUM));
    }
    if (type == WIRE_PACKET_TRAIL) {
        struct wire_trail *trail = (struct wire_trail *)body;
        trail->destination = (uint16_t)below(20);
        trail->hop = (uint8_t)(1 + below(9));
        return sizeof *trail;
    }
    if (type == WIRE_PACKET_POSITION) {
        struct wire_position *position = (struct wire_position *)body;
        position->x = coordinate();
        position->y = coordinate();
        memcpy(position->asked, &me, sizeof me);
        return (uint8_t)(sizeof *position + 2 * below(WIRE_POSITIONS_ASKED + 1));
    }
    if (type == WIRE_PACKET_BUNDLE) {
        uint8_t at = 1;
        if (below(16)) /* of this session */
            body[0] = (uint8_t)(tree_session() * WIRE_BUNDLE_SESSION + below(WIRE_BUNDLE_SESSION));
        while (at < 70) {
            struct wire_record *record = (struct wire_record *)(body + at);
            record->type = below(8) ? WIRE_PACKET_RESULT + (uint8_t)below(5) : WIRE_PACKET_STATES;
            record->body_length = (uint8_t)below(30);
            if (record->type == WIRE_PACKET_STATES)
                record->body_length = put_states((uint8_t *)(record + 1));
            if (record->type == WIRE_PACKET_PARTIAL && below(2)) { /* such as merge */
                struct wire_partial *partial = (struct wire_partial *)(record + 1);
                partial->query = 1 + (uint8_t)below(9);
                partial->epoch = below(4);
                record->body_length =
                    (uint8_t)(sizeof *partial + sizeof(struct wire_aggregate_state));
            }
            at = (uint8_t)(at + sizeof *record + record->body_length);
        }
        return below(4) ? at : length;
    }
    return length;
}

/* As the mote before this one on a way that leads by here sends it. */
static void on_a_way(struct wire_mac_header *header, struct wire_carried *carried)
{
    const struct way *way = &way_table()[below(WAYS)];
    if (way->source == WIRE_NO_NODE || way->previous == WIRE_NO_NODE)
        return;
    header->source = way->previous;
    carried->source = way->source;
    carried->number = way->number;
}

static uint8_t make_frame(uint8_t *frame)
{
    if (below(8) == 0) {
        uint8_t length = (uint8_t)below(RADIO_FRAME_MAXIMUM + 1);
        for (uint8_t i = 0; i < length; i++)
            frame[i] = (uint8_t)below(256);
        return length;
    }
    struct wire_mac_header *header = (struct wire_mac_header *)frame;
    *header = (struct wire_mac_header){
        .sequence = (uint8_t)below(256), .pan = WIRE_PAN_DEFAULT, .source = (uint16_t)below(20)};
    header->destination = below(2) ? me : WIRE_BROADCAST;
    header->frame_control =
        header->destination == me ? WIRE_FRAME_CONTROL_DATA_ACK : WIRE_FRAME_CONTROL_DATA;
    uint8_t *packet = (uint8_t *)(header + 1);
    packet[0] = WIRE_PROTOCOL_VERSION;
    packet[1] = types[below(sizeof types)];
    uint8_t length = (uint8_t)(sizeof *header + 2 + plausible_body(packet[1], packet + 2));
    if (packet[1] == WIRE_PACKET_CARRIED && below(2))
        on_a_way(header, (struct wire_carried *)(packet + 2));
    if (packet[1] == WIRE_PACKET_SEARCH && below(8))
        memcpy(&frame[length - 2], &header->source, sizeof header->source);
    if (below(2))
        for (uint32_t i = 1 + below(8); i; i--)
            frame[below(length)] = (uint8_t)below(256);
    /* A command to reboot is obeyed, which would end the run. */
    if (packet[1] == WIRE_PACKET_COMMAND && packet[6] == WIRE_COMMAND_REBOOT)
        packet[6] = WIRE_COMMAND_PING;
    if (below(8) == 0)
        length = (uint8_t)below(length + 1);
    return length > RADIO_FRAME_MAXIMUM ? RADIO_FRAME_MAXIMUM : length;
}

/* The number after the last DATA frame that the root sent, from what it wrote on the line. */
static void read_line(void)
{
    static uint8_t frame[256], length;
    for (uint16_t i = 0; i < host_written_length; i++) {
        if (host_written[i]) {
            frame[length++] = host_written[i];
            continue;
        }
        uint8_t size = cobs_decode(frame, length);
        if (size >= 4 && frame[0] == WIRE_FRAME_DATA)
            heard_next = (uint8_t)(frame[1] + 1);
        if (size >= 4 && frame[0] == WIRE_FRAME_ACK) {
            accepted += frame[1] == (uint8_t)(data_next + 1);
            data_next = frame[1];
        }
        if (size >= 4 && frame[0] >= WIRE_FRAME_RESET)
            data_next = heard_next = 0;
        length = 0;
    }
    host_written_length = 0;
}

/* Byte by byte, as the line brings them. */
static void serial_input(void)
{
    uint8_t body[160], frame[124], stuffed[130];
    uint8_t type = types[below(sizeof types)];
    read_line();
    frame[0] = below(16) ? 1 + (uint8_t)below(2) : (uint8_t)below(6);
    frame[1] = frame[0] == WIRE_FRAME_ACK ? heard_next : data_next;
    if (below(8) == 0)
        frame[1] = (uint8_t)below(256);
    frame[2] = WIRE_PROTOCOL_VERSION;
    frame[3] = type;
    uint8_t length = plausible_body(type, body);
    if (length > 114)
        length = 114;
    memcpy(frame + 4, body, length);
    length = (uint8_t)(length + 4);
    if (frame[0] == WIRE_FRAME_ACK && below(2))
        length = 2;
    if (below(3) == 0)
        for (uint32_t i = 1 + below(8); i; i--)
            frame[below(length)] = (uint8_t)below(256);
    if (frame[3] == WIRE_PACKET_COMMAND && frame[8] == WIRE_COMMAND_REBOOT)
        frame[8] = WIRE_COMMAND_PING;
    uint16_t crc = 0;
    for (uint8_t i = 0; i < length; i++)
        crc = crc_xmodem(crc, frame[i]);
    frame[length++] = (uint8_t)(crc >> 8);
    frame[length++] = (uint8_t)crc;
    uint8_t written = cobs_encode(frame, length, stuffed);
    if (below(8) == 0)
        for (uint8_t i = 0; i < written; i++)
            stuffed[i] = (uint8_t)below(256);
    for (uint8_t i = 0; i < written; i++) {
        host_serial(stuffed + i, 1);
        (void)kernel_step();
    }
}

static uint32_t ways_held(void)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < WAYS; i++)
        count += way_table()[i].source != WIRE_NO_NODE;
    return count;
}

static uint32_t records_held(void)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < WAYS; i++)
        count += way_has_records(&way_table()[i]);
    return count;
}

/* Queries that run here and say of pairs of motes who joins them. */
static uint32_t nominations(void)
{
    uint32_t count = 0;
    struct program_field field;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        count += entry_clause(entry, WIRE_AGGREGATE_PAIRS, 0, &field);
    return count;
}

/* The way that a frame's row would end here; NULL: it brings none, or goes on. */
static const struct way *way_of_row(const uint8_t *frame, uint8_t length)
{
    const struct wire_mac_header *header = (const struct wire_mac_header *)frame;
    const struct wire_carried *row = (const struct wire_carried *)(frame + sizeof *header + 2);
    if (length < sizeof *header + 2 + sizeof *row + 1 || frame[10] != WIRE_PACKET_CARRIED ||
        row->record[0] != WIRE_CARRIES_ROW)
        return NULL;
    const struct way *way = way_of(header->source, row->source, row->number);
    return way && way->ends ? way : NULL;
}

static uint32_t searching(void)
{
    uint32_t count = 0;
    const struct content *known = content_state();
    for (uint8_t i = 0; known && i < WIRE_SEARCH_TREES; i++)
        count += known->hands[i].used;
    return count;
}

int main(int count_of_arguments, char **arguments)
{
    if (count_of_arguments != 4)
        return 2;
    root = strcmp(arguments[1], "root") == 0;
    uint32_t inputs = (uint32_t)strtoul(arguments[2], NULL, 10);
    fuzz_seed(strtoull(arguments[3], NULL, 10));
    me = root ? 0 : MOTE;
    struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC,
                                .nodeid = me,
                                .pan = WIRE_PAN_DEFAULT,
                                .channel = 26,
                                .root = root,
                                .boots = 2, /* a first start ends where another session is heard */
                                .session = 1};
    host_settings(&own);
    query_init();
    net_init();
    static uint8_t frame[256];
    for (uint32_t i = 0; i < inputs; i++) {
        host_acknowledges = below(4) != 0;
        uint32_t before_nominations = nominations();
        if (root && below(2))
            serial_input();
        else {
            radio_on(); /* whatever the schedule says: every input is to reach a handler */
            uint16_t room = queue_room(), before = dissemination_version();
            uint32_t ways_before = ways_held(), carried_before = records_held();
            uint32_t before_searches = searching();
            uint8_t length = make_frame(frame);
            const struct way *way = way_of_row(frame, length);
            uint8_t number = way ? way->sequence : 0;
            host_receive(frame, length, (uint8_t)below(256));
            met += way && way->sequence != number;
            bundles += length > 10 && frame[10] == WIRE_PACKET_BUNDLE && queue_room() < room;
            installs += length > 10 && frame[10] == WIRE_PACKET_QUERY_INSTALL &&
                        dissemination_version() != before;
            opened += length > 10 && frame[10] == WIRE_PACKET_WAY_OPEN && ways_held() > ways_before;
            searched +=
                length > 10 && frame[10] == WIRE_PACKET_SEARCH && searching() > before_searches;
            carried_on +=
                length > 10 && frame[10] == WIRE_PACKET_CARRIED && records_held() > carried_before;
        }
        nominated += nominations() > before_nominations;
        host_run(1 + below(300), 64);
        struct tuples_statistics kept;
        tuples_statistics(&kept);
        stored_most = kept.tuples > stored_most ? kept.tuples : stored_most;
    }
    printf("%s: %u inputs, seed %s, %u frames sent in answer\n", arguments[1], inputs, arguments[3],
           host_sent_count);
    printf("taken: bundles %u, installs %u, serial %u, rows %u, dropped %u, malformed %u, "
           "ways %u, carried %u, searches %u, nominations %u, met %u, tuples %u\n",
           bundles, installs, accepted, app_rows(), queue_dropped(), mac_counters.malformed, opened,
           carried_on, searched, nominated, met, stored_most);
    return 0;
}
