/* Decodes and encodes golden vectors with the structs of wire.h, for comparison with the Python
 * side.
 *
 * Reads lines `decode KIND HEX` and `encode KIND NAME=VALUE …` from standard input and answers each
 * with a line: the fields by name, or the bytes in hex. Numbers are decimal, bytes hex; elements of
 * a list are NAME.INDEX.FIELD. KIND is a struct of wire.h without `wire_`, "packet" (header and the
 * body its type names), or "line" (a link frame with CRC and COBS, by the firmware's own
 * lib/cobs.c). */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cobs.h"
#include "lib/crc.h"
#include "wire.h"

#define BYTES_MAXIMUM 256
#define LINE_MAXIMUM 8192

struct member {
    const char *name;
    uint8_t offset, size;
    bool is_signed;
};

/* A struct: fixed members; bytes counted by the last of them; then bytes or elements up to the end.
 */
struct layout {
    const char *name;
    uint8_t size;
    const struct member *members;
    uint8_t count;
    const char *counted;
    const char *rest;
    const struct layout *elements; /* NULL: the rest is bytes */
};

#define MEMBER(structure, field)                                                                   \
    {#field, offsetof(struct wire_##structure, field),                                             \
     sizeof(((struct wire_##structure *)0)->field),                                                \
     _Generic(((struct wire_##structure *)0)->field,                                               \
         int32_t: true,                                                                            \
         int16_t: true,                                                                            \
         default: false)}
#define LAYOUT_AS(variable, structure, counted, rest, elements)                                    \
    static const struct layout variable = {#structure,                                             \
                                           sizeof(struct wire_##structure),                        \
                                           structure##_members,                                    \
                                           sizeof structure##_members / sizeof(struct member),     \
                                           counted,                                                \
                                           rest,                                                   \
                                           elements}
#define LAYOUT(structure, counted, rest, elements)                                                 \
    LAYOUT_AS(structure, structure, counted, rest, elements)

/* Members by struct, in the order of wire.h; a length before counted bytes is not a member of its
 * own. */
static const struct member mac_header_members[] = {
    MEMBER(mac_header, frame_control), MEMBER(mac_header, sequence), MEMBER(mac_header, pan),
    MEMBER(mac_header, destination), MEMBER(mac_header, source)};
LAYOUT(mac_header, NULL, "payload", NULL);
static const struct member neighbour_entry_members[] = {MEMBER(neighbour_entry, node),
                                                        MEMBER(neighbour_entry, heard)};
LAYOUT(neighbour_entry, NULL, NULL, NULL);
static const struct member srt_entry_members[] = {
    MEMBER(srt_entry, srt),    MEMBER(srt_entry, low),   MEMBER(srt_entry, high),
    MEMBER(srt_entry, low2),   MEMBER(srt_entry, high2), MEMBER(srt_entry, value),
    MEMBER(srt_entry, value2), MEMBER(srt_entry, cells)};
LAYOUT(srt_entry, NULL, NULL, NULL);
static const struct member beacon_members[] = {
    MEMBER(beacon, root),          MEMBER(beacon, session), MEMBER(beacon, sequence),
    MEMBER(beacon, root_sequence), MEMBER(beacon, level),   MEMBER(beacon, parent),
    MEMBER(beacon, cost),          MEMBER(beacon, seconds), MEMBER(beacon, ticks),
    MEMBER(beacon, offset),        MEMBER(beacon, skew),    MEMBER(beacon, query_version)};
LAYOUT(beacon, "srts", "neighbours", &neighbour_entry);
static const struct member query_install_members[] = {
    MEMBER(query_install, query_version), MEMBER(query_install, query),
    MEMBER(query_install, total), MEMBER(query_install, offset)};
LAYOUT(query_install, NULL, "data", NULL);
static const struct member stopped_members[] = {MEMBER(stopped, query_version),
                                                MEMBER(stopped, query)};
LAYOUT(stopped, NULL, NULL, NULL);
static const struct member query_stop_members[] = {MEMBER(query_stop, query_version),
                                                   MEMBER(query_stop, query)};
LAYOUT(query_stop, NULL, "earlier", &stopped);
static const struct member query_request_members[] = {MEMBER(query_request, query_version)};
LAYOUT(query_request, NULL, "queries", NULL);
static const struct member program_field_members[] = {MEMBER(program_field, format),
                                                      MEMBER(program_field, aggregate)};
LAYOUT(program_field, "code", NULL, NULL);
static const struct member query_program_members[] = {
    MEMBER(query_program, flags), MEMBER(query_program, period), MEMBER(query_program, start),
    MEMBER(query_program, end)};
LAYOUT(query_program, "where", "fields", &program_field);
static const struct member command_members[] = {MEMBER(command, target), MEMBER(command, token),
                                                MEMBER(command, op)};
LAYOUT(command, NULL, "arguments", NULL);
static const struct member join_members[] = {MEMBER(join, level), MEMBER(join, session),
                                             MEMBER(join, root_sequence)};
LAYOUT(join, NULL, "srts", &srt_entry);
static const struct member record_members[] = {MEMBER(record, type)};
LAYOUT(record, "body", NULL, NULL);
static const struct member bundle_members[] = {MEMBER(bundle, flags)};
LAYOUT(bundle, NULL, "records", &record);
static const struct member result_members[] = {MEMBER(result, query), MEMBER(result, node),
                                               MEMBER(result, epoch), MEMBER(result, nulls)};
LAYOUT(result, NULL, "values", NULL);
static const struct member series_members[] = {MEMBER(series, query), MEMBER(series, node),
                                               MEMBER(series, epoch)};
LAYOUT(series, NULL, "values", NULL);
static const struct member aggregate_state_members[] = {MEMBER(aggregate_state, count),
                                                        MEMBER(aggregate_state, value)};
LAYOUT(aggregate_state, NULL, NULL, NULL);
static const struct member partial_members[] = {MEMBER(partial, query), MEMBER(partial, epoch),
                                                MEMBER(partial, motes), MEMBER(partial, overflow)};
LAYOUT(partial, NULL, "states", &aggregate_state);
static const struct member static_value_members[] = {MEMBER(static_value, attribute),
                                                     MEMBER(static_value, value)};
LAYOUT(static_value, NULL, NULL, NULL);
static const struct member status_members[] = {MEMBER(status, node),
                                               MEMBER(status, boots),
                                               MEMBER(status, reset_cause),
                                               MEMBER(status, invariant),
                                               MEMBER(status, board),
                                               MEMBER(status, attributes),
                                               MEMBER(status, parent),
                                               MEMBER(status, level),
                                               MEMBER(status, link),
                                               MEMBER(status, neighbours),
                                               MEMBER(status, query_version),
                                               MEMBER(status, x),
                                               MEMBER(status, y),
                                               MEMBER(status, voltage),
                                               MEMBER(status, free_ram),
                                               MEMBER(status, queue_length),
                                               MEMBER(status, seconds),
                                               MEMBER(status, radio_on),
                                               MEMBER(status, uptime),
                                               MEMBER(status, rows),
                                               MEMBER(status, dropped),
                                               MEMBER(status, sent),
                                               MEMBER(status, repeated),
                                               MEMBER(status, malformed),
                                               MEMBER(status, loops),
                                               MEMBER(status, factory)};
LAYOUT(status, NULL, "statics", &static_value);
static const struct member command_ack_members[] = {
    MEMBER(command_ack, node), MEMBER(command_ack, token), MEMBER(command_ack, status)};
LAYOUT(command_ack, NULL, NULL, NULL);
static const struct member log_members[] = {MEMBER(log, node), MEMBER(log, severity)};
LAYOUT_AS(log_line, log, NULL, "text", NULL); /* `log` is a library function */
static const struct member refusal_members[] = {MEMBER(refusal, node), MEMBER(refusal, query),
                                                MEMBER(refusal, reason), MEMBER(refusal, missing)};
LAYOUT(refusal, NULL, NULL, NULL);
static const struct member event_members[] = {MEMBER(event, event),   MEMBER(event, node),
                                              MEMBER(event, x),       MEMBER(event, y),
                                              MEMBER(event, seconds), MEMBER(event, value)};
LAYOUT(event, NULL, NULL, NULL);
static const struct member hello_members[] = {MEMBER(hello, node), MEMBER(hello, session),
                                              MEMBER(hello, seconds), MEMBER(hello, ticks),
                                              MEMBER(hello, query_version)};
LAYOUT(hello, NULL, "queries", NULL);
static const struct member time_members[] = {MEMBER(time, seconds), MEMBER(time, ticks),
                                             MEMBER(time, more)};
LAYOUT_AS(time_stamp, time, NULL, NULL, NULL); /* `time` is a library function */
static const struct member session_members[] = {MEMBER(session, node), MEMBER(session, session)};
LAYOUT(session, NULL, NULL, NULL);
static const struct member namesake_members[] = {MEMBER(namesake, node), MEMBER(namesake, factory),
                                                 MEMBER(namesake, other)};
LAYOUT(namesake, NULL, NULL, NULL);
static const struct member way_open_members[] = {
    MEMBER(way_open, source),      MEMBER(way_open, number), MEMBER(way_open, flags),
    MEMBER(way_open, destination), MEMBER(way_open, hop),    MEMBER(way_open, every)};
LAYOUT(way_open, NULL, "more", NULL);
static const struct member way_state_members[] = {
    MEMBER(way_state, source), MEMBER(way_state, number), MEMBER(way_state, state)};
LAYOUT(way_state, NULL, NULL, NULL);
static const struct member trail_members[] = {MEMBER(trail, destination), MEMBER(trail, hop)};
LAYOUT(trail, NULL, NULL, NULL);
static const struct member carried_members[] = {
    MEMBER(carried, source), MEMBER(carried, number), MEMBER(carried, sequence),
    MEMBER(carried, origin), MEMBER(carried, hops),   MEMBER(carried, deadline)};
LAYOUT(carried, NULL, "record", NULL);
static const struct member position_members[] = {MEMBER(position, x), MEMBER(position, y)};
LAYOUT(position, NULL, "asked", NULL);
static const struct member arrival_members[] = {MEMBER(arrival, node),    MEMBER(arrival, source),
                                                MEMBER(arrival, outcome), MEMBER(arrival, hops),
                                                MEMBER(arrival, seconds), MEMBER(arrival, ticks)};
LAYOUT(arrival, NULL, "ping", NULL);
static const struct member joined_members[] = {MEMBER(joined, query),   MEMBER(joined, s),
                                               MEMBER(joined, s_epoch), MEMBER(joined, s_nulls),
                                               MEMBER(joined, t),       MEMBER(joined, t_epoch),
                                               MEMBER(joined, t_nulls)};
LAYOUT(joined, NULL, "values", NULL);
static const struct member index_count_members[] = {
    MEMBER(index_count, index), MEMBER(index_count, tuples), MEMBER(index_count, own),
    MEMBER(index_count, revision)};
LAYOUT(index_count, NULL, NULL, NULL);
static const struct member flash_members[] = {MEMBER(flash, node),      MEMBER(flash, pages),
                                              MEMBER(flash, capacity),  MEMBER(flash, used),
                                              MEMBER(flash, evicted),   MEMBER(flash, erased_most),
                                              MEMBER(flash, erased_sum)};
LAYOUT(flash, NULL, "indexes", &index_count);
static const struct member stored_members[] = {MEMBER(stored, node), MEMBER(stored, token),
                                               MEMBER(stored, part), MEMBER(stored, last)};
LAYOUT(stored, NULL, "tuples", NULL);
static const struct member states_members[] = {MEMBER(states, token), MEMBER(states, aggregates),
                                               MEMBER(states, motes)};
LAYOUT(states, NULL, "more", NULL);
static const struct member content_members[] = {MEMBER(content, attribute), MEMBER(content, kind),
                                                MEMBER(content, left)};
LAYOUT(content, NULL, "trees", NULL);
static const struct member search_members[] = {MEMBER(search, attribute), MEMBER(search, token),
                                               MEMBER(search, low),       MEMBER(search, high),
                                               MEMBER(search, tree),      MEMBER(search, except)};
LAYOUT(search, NULL, "path", NULL);
static const struct member found_members[] = {MEMBER(found, node), MEMBER(found, token),
                                              MEMBER(found, mote), MEMBER(found, tree),
                                              MEMBER(found, hops), MEMBER(found, frames)};
LAYOUT(found, NULL, NULL, NULL);
static const struct member passed_members[] = {MEMBER(passed, query), MEMBER(passed, node),
                                               MEMBER(passed, epoch), MEMBER(passed, epochs),
                                               MEMBER(passed, s),     MEMBER(passed, t)};
LAYOUT(passed, NULL, NULL, NULL);
static const struct member settings_members[] = {
    MEMBER(settings, magic),      MEMBER(settings, nodeid),     MEMBER(settings, pan),
    MEMBER(settings, channel),    MEMBER(settings, root),       MEMBER(settings, x),
    MEMBER(settings, y),          MEMBER(settings, boots),      MEMBER(settings, session),
    MEMBER(settings, factory),    MEMBER(settings, room),       MEMBER(settings, floor),
    MEMBER(settings, group),      MEMBER(settings, channels),   MEMBER(settings, statics[0]),
    MEMBER(settings, statics[1]), MEMBER(settings, statics[2]), MEMBER(settings, statics[3]),
    MEMBER(settings, statics[4]), MEMBER(settings, statics[5]), MEMBER(settings, statics[6]),
    MEMBER(settings, statics[7]), MEMBER(settings, statics[8]), MEMBER(settings, statics[9])};
LAYOUT(settings, NULL, NULL, NULL);
static const struct member link_header_members[] = {MEMBER(link_header, kind),
                                                    MEMBER(link_header, sequence)};
LAYOUT(link_header, NULL, "payload", NULL);

static const struct {
    uint8_t type;
    const struct layout *body;
} packets[] = {
    {WIRE_PACKET_BEACON, &beacon},         {WIRE_PACKET_QUERY_INSTALL, &query_install},
    {WIRE_PACKET_QUERY_STOP, &query_stop}, {WIRE_PACKET_QUERY_REQUEST, &query_request},
    {WIRE_PACKET_COMMAND, &command},       {WIRE_PACKET_BUNDLE, &bundle},
    {WIRE_PACKET_RESULT, &result},         {WIRE_PACKET_PARTIAL, &partial},
    {WIRE_PACKET_STATUS, &status},         {WIRE_PACKET_COMMAND_ACK, &command_ack},
    {WIRE_PACKET_LOG, &log_line},          {WIRE_PACKET_REFUSAL, &refusal},
    {WIRE_PACKET_EVENT, &event},           {WIRE_PACKET_HELLO, &hello},
    {WIRE_PACKET_TIME, &time_stamp},       {WIRE_PACKET_JOIN, &join},
    {WIRE_PACKET_SESSION, &session},       {WIRE_PACKET_NAMESAKE, &namesake},
    {WIRE_PACKET_SERIES, &series},         {WIRE_PACKET_WAY_OPEN, &way_open},
    {WIRE_PACKET_WAY_STATE, &way_state},   {WIRE_PACKET_TRAIL, &trail},
    {WIRE_PACKET_CARRIED, &carried},       {WIRE_PACKET_POSITION, &position},
    {WIRE_PACKET_ARRIVAL, &arrival},       {WIRE_PACKET_JOINED, &joined},
    {WIRE_PACKET_FLASH, &flash},           {WIRE_PACKET_STORED, &stored},
    {WIRE_PACKET_CONTENT, &content},       {WIRE_PACKET_SEARCH, &search},
    {WIRE_PACKET_FOUND, &found},           {WIRE_PACKET_PASSED, &passed},
    {WIRE_PACKET_STATES, &states},
};

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "golden: %s '%s'\n", what, which);
    exit(1);
}

static uint8_t from_hex(const char *text, uint8_t *bytes)
{
    unsigned length = 0, value;
    while (isxdigit((unsigned char)*text) && sscanf(text, "%2x", &value) == 1) {
        if (length == BYTES_MAXIMUM - 1)
            fail("more bytes than any packet has", text);
        bytes[length++] = (uint8_t)value;
        text += 2;
    }
    return (uint8_t)length;
}

static void print_hex(const uint8_t *bytes, unsigned length)
{
    for (unsigned i = 0; i < length; i++)
        printf("%02x", bytes[i]);
}

static const struct layout *layout_named(const char *name)
{
    static const struct layout *const others[] = {&mac_header, &query_program, &settings,
                                                  &link_header};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i]->name, name) == 0)
            return others[i];
    fail("unknown kind", name);
    return NULL;
}

static const struct layout *body_of(unsigned type)
{
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++)
        if (packets[i].type == type)
            return packets[i].body;
    fail("unknown packet type", "");
    return NULL;
}

static int64_t member_value(const struct member *member, const uint8_t *bytes)
{
    /* Through the types of wire.h: the bytes are the struct. */
    uint32_t value = 0;
    memcpy(&value, bytes + member->offset, member->size);
    if (!member->is_signed)
        return (int64_t)value;
    return member->size == sizeof(int16_t) ? (int64_t)(int16_t)value : (int64_t)(int32_t)value;
}

/* Prints a struct's fields, each name after `prefix`; bytes it takes. */
static unsigned print_fields(const struct layout *layout, const char *prefix, const uint8_t *bytes,
                             unsigned length)
{
    if (length < layout->size)
        fail("cut off", layout->name);
    for (uint8_t i = 0; i < layout->count; i++)
        printf("%s%s=%lld ", prefix, layout->members[i].name,
               (long long)member_value(&layout->members[i], bytes));
    unsigned at = layout->size;
    if (layout->counted) {
        uint8_t count = bytes[at - 1];
        if (count > length - at)
            fail("cut off", layout->counted);
        printf("%s%s=", prefix, layout->counted);
        print_hex(bytes + at, count);
        printf(" ");
        at += count;
    }
    if (layout->rest && !layout->elements) {
        printf("%s%s=", prefix, layout->rest);
        print_hex(bytes + at, length - at);
        printf(" ");
        at = length;
    }
    for (unsigned index = 0; layout->elements && at < length; index++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s.%u.", prefix, layout->rest, index);
        at += print_fields(layout->elements, name, bytes + at, length - at);
    }
    return at;
}

/* The text after `name=` in the line, or NULL. */
static const char *find(const char *line, const char *prefix, const char *name)
{
    char wanted[96];
    snprintf(wanted, sizeof wanted, " %s%s=", prefix, name);
    const char *at = strstr(line, wanted);
    return at ? at + strlen(wanted) : NULL;
}

static const char *require(const char *line, const char *prefix, const char *name)
{
    const char *text = find(line, prefix, name);
    if (!text)
        fail("missing field", name);
    return text;
}

/* Builds a struct from the line's fields; bytes it takes. */
static unsigned build(const struct layout *layout, const char *prefix, const char *line,
                      uint8_t *bytes)
{
    for (uint8_t i = 0; i < layout->count; i++) {
        long long value = strtoll(require(line, prefix, layout->members[i].name), NULL, 10);
        memcpy(bytes + layout->members[i].offset, &value, layout->members[i].size);
    }
    unsigned at = layout->size;
    if (layout->counted) {
        uint8_t count = from_hex(require(line, prefix, layout->counted), bytes + at);
        bytes[at - 1] = count;
        at += count;
    }
    if (layout->rest && !layout->elements)
        at += from_hex(require(line, prefix, layout->rest), bytes + at);
    for (unsigned index = 0; layout->elements; index++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s.%u.", prefix, layout->rest, index);
        if (!find(line, name, layout->elements->members[0].name))
            break;
        at += build(layout->elements, name, line, bytes + at);
    }
    return at;
}

static uint16_t checksum(const uint8_t *bytes, unsigned length)
{
    uint16_t crc = 0;
    for (unsigned i = 0; i < length; i++)
        crc = crc_xmodem(crc, bytes[i]);
    return crc;
}

static void decode(const char *kind, const char *text)
{
    uint8_t bytes[BYTES_MAXIMUM];
    unsigned at = 0, length = from_hex(text, bytes);
    const struct layout *layout;
    if (strcmp(kind, "packet") == 0) {
        const struct wire_header *header = (const struct wire_header *)bytes;
        printf("version=%u type=%u ", header->version, header->type);
        layout = body_of(header->type);
        at = sizeof *header;
    } else if (strcmp(kind, "line") == 0) {
        length = cobs_decode(bytes, (uint8_t)(length - 1)); /* without the closing zero */
        if (length < 4 || checksum(bytes, length) != 0)
            fail("bad checksum", text);
        length -= 2;
        layout = &link_header;
    } else {
        layout = layout_named(kind);
    }
    if (print_fields(layout, "", bytes + at, length - at) != length - at)
        fail("bytes left over", kind);
}

static void encode(const char *kind, const char *line)
{
    uint8_t bytes[2 * BYTES_MAXIMUM], stuffed[2 * BYTES_MAXIMUM];
    unsigned length;
    if (strcmp(kind, "packet") == 0) {
        struct wire_header *header = (struct wire_header *)bytes;
        header->version = (uint8_t)strtoul(require(line, "", "version"), NULL, 10);
        header->type = (uint8_t)strtoul(require(line, "", "type"), NULL, 10);
        length = (unsigned)sizeof *header +
                 build(body_of(header->type), "", line, bytes + sizeof *header);
    } else if (strcmp(kind, "line") == 0) {
        length = build(&link_header, "", line, bytes);
        uint16_t crc = checksum(bytes, length);
        bytes[length++] = (uint8_t)(crc >> 8);
        bytes[length++] = (uint8_t)crc;
        length = cobs_encode(bytes, (uint8_t)length, stuffed);
        memcpy(bytes, stuffed, length);
    } else {
        length = build(layout_named(kind), "", line, bytes);
    }
    print_hex(bytes, length);
}

int main(void)
{
    static char line[LINE_MAXIMUM];
    while (fgets(line, sizeof line, stdin)) {
        char verb[8], kind[32];
        int used = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%7s %31s%n", verb, kind, &used) != 2)
            fail("cannot read", line);
        if (strcmp(verb, "decode") == 0)
            decode(kind, line + used + 1);
        else if (strcmp(verb, "encode") == 0)
            encode(kind, line + used);
        else
            fail("unknown verb", verb);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
