/* What fuzz_frames draws of indexes: programs, and records among motes. The mote stores some
 * indexes, and gathers what is asked of them. */
#ifndef SKERRY_TESTS_NET_FUZZ_INDEXES_H
#define SKERRY_TESTS_NET_FUZZ_INDEXES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/clock.h"
#include "tests/fuzz.h"
#include "wire.h"

static inline int16_t coordinate(void)
{
    return (int16_t)(below(16) ? (int)below(4000) - 2000 : (int)below(65536) - 32768);
}

static inline uint16_t an_index(void)
{
    return (uint16_t)(1 + below(3) + (below(8) ? 0 : below(8) << 13));
}

/* An index's program, or that of a question to one; its bytes. */
static inline uint8_t put_indexed(uint8_t *at, struct wire_query_program *program, uint16_t me)
{
    bool gather = below(3) == 0;
    uint8_t code[2] = {gather ? WIRE_OP_STORED : WIRE_OP_ATTR, gather ? 0 : WIRE_ATTRIBUTE_TEMP};
    struct wire_program_field field = {.format = WIRE_FORMAT_I16, .code_length = sizeof code};
    struct wire_program_field clause = {.aggregate =
                                            gather ? WIRE_AGGREGATE_GATHER : WIRE_AGGREGATE_INDEX};
    uint8_t *from = at, bytes[80], length;
    program->flags = 0;
    if (gather) {
        struct wire_gather asked = {.index = an_index(),
                                    .mote = below(4) ? me : (uint16_t)below(20),
                                    .x = coordinate(),
                                    .y = coordinate(),
                                    .zones = (uint8_t)(1 + below(3)),
                                    .aggregates = (uint8_t)(below(8) ? 1 : below(5))};
        const uint8_t more[] = {(uint8_t)(1 + below(5)), below(2) ? UINT8_MAX : WIRE_ATTRIBUTE_TEMP,
                                0, 0xF0, UINT8_MAX};
        memcpy(bytes, &asked, sizeof asked);
        memcpy(bytes + sizeof asked, more, sizeof more);
        length = sizeof asked + sizeof more;
    } else {
        struct wire_index index = {.index = (uint16_t)(1 + below(3)),
                                   .revision = (uint8_t)below(4),
                                   .parts = 1,
                                   .keep = below(2) ? 60 : 86400};
        struct wire_index_part part = {.columns = 1,
                                       .settled = (uint8_t)(1 + below(3)),
                                       .away = (uint8_t)below(2),
                                       .added = (uint8_t)below(2)};
        struct wire_index_range range = {.low = -500, .high = 4000};
        memcpy(bytes, &index, sizeof index);
        memcpy(bytes + sizeof index, &part, sizeof part);
        memcpy(bytes + sizeof index + sizeof part, &range, sizeof range);
        length = sizeof index + sizeof part + sizeof range;
        for (uint8_t i = 0; i < part.settled + part.away + part.added; i++) {
            struct wire_index_owner owner = {below(2) ? me : (uint16_t)below(20), coordinate(),
                                             coordinate()};
            memcpy(bytes + length, &owner, sizeof owner);
            length = (uint8_t)(length + sizeof owner);
        }
    }
    clause.code_length = (uint8_t)(below(16) ? length : below(length));
    bool by_event = below(gather ? 2 : 4) == 0;
    if (by_event)
        program->period = WIRE_PERIOD_MINIMUM_MS;
    memcpy(at, program, sizeof *program);
    at += sizeof *program;
    memcpy(at, &field, sizeof field);
    memcpy(at + sizeof field, code, sizeof code);
    at += sizeof field + sizeof code;
    if (by_event) {
        struct wire_program_field asks = {.aggregate = WIRE_AGGREGATE_ON_EVENT,
                                          .code_length = sizeof(struct wire_on_event)};
        struct wire_on_event on = {
            .event = (uint16_t)(1 + below(3)),
            .lasts = 1 + below(50),
            .flags =
                (uint8_t)(WIRE_EVENT_FLAG_ALIGNED | WIRE_EVENT_FLAG_HEARD |
                          (gather ? below(2)
                                  : WIRE_EVENT_FLAG_OWN | (below(4) ? WIRE_EVENT_FLAG_EACH : 0U))),
            .step = 1 + below(20)};
        memcpy(at, &asks, sizeof asks);
        memcpy(at + sizeof asks, &on, sizeof on);
        at += sizeof asks + sizeof on;
    }
    memcpy(at, &clause, sizeof clause);
    memcpy(at + sizeof clause, bytes, clause.code_length);
    return (uint8_t)((size_t)(at - from) + sizeof clause + clause.code_length);
}

static inline uint8_t put_tuples(uint8_t *record)
{
    struct wire_index_tuples *tuples = (struct wire_index_tuples *)record;
    *tuples = (struct wire_index_tuples){.carries = WIRE_CARRIES_TUPLE,
                                         .index = an_index(),
                                         .node = (uint16_t)below(20),
                                         .session = (uint16_t)(1 + below(2)),
                                         .epoch = below(100)};
    for (uint8_t i = sizeof *tuples; i < WIRE_CARRIED_MAXIMUM; i++)
        record[i] = (uint8_t)below(below(2) ? 2 : 256);
    return below(8) ? (uint8_t)(sizeof *tuples + (1 + below(9)) * 4)
                    : (uint8_t)(1 + below(WIRE_CARRIED_MAXIMUM));
}

static inline uint8_t put_gathered(uint8_t *record, uint16_t me)
{
    struct wire_gathered *told = (struct wire_gathered *)record;
    *told = (struct wire_gathered){.carries = WIRE_CARRIES_GATHERED,
                                   .query = (uint8_t)(1 + below(9)),
                                   .node = below(2) ? me : (uint16_t)below(20),
                                   .epoch = clock_uptime() / (1 + below(9))};
    return below(8) ? (uint8_t)(sizeof *told + sizeof(struct wire_gathered_state))
                    : (uint8_t)(1 + below(WIRE_CARRIED_MAXIMUM));
}

/* States of a question, such as are put together. */
static inline uint8_t put_states(uint8_t *record)
{
    struct wire_states *states = (struct wire_states *)record;
    *states = (struct wire_states){.token = (uint16_t)below(2),
                                   .aggregates = (uint8_t)(below(8) ? 1 : below(5)),
                                   .motes = (uint8_t)(below(8) ? below(4) : below(256))};
    states->more[0] = (uint8_t)(1 + below(2));
    return (uint8_t)(below(8) ? sizeof *states + 1U + sizeof(struct wire_gathered_state) +
                                    states->motes % 4U * sizeof(uint16_t)
                              : below(30));
}

/* Tuples whose zone has changed hands, or what is said of some. */
static inline uint8_t put_handed(uint8_t *record)
{
    struct wire_handed_tuples *tuples = (struct wire_handed_tuples *)record;
    *tuples = (struct wire_handed_tuples){.carries = WIRE_CARRIES_HANDED,
                                          .index = an_index(),
                                          .batch = (uint16_t)below(3),
                                          .run = (uint8_t)below(3),
                                          .record = (uint8_t)(below(9) | (below(3) ? 0 : 0x80)),
                                          .session = (uint16_t)(1 + below(2)),
                                          .epoch = below(2) ? below(100) : clock_uptime()};
    for (uint8_t i = sizeof *tuples; i < WIRE_CARRIED_MAXIMUM; i++)
        record[i] = (uint8_t)below(below(2) ? 2 : 256);
    return below(8) ? (uint8_t)(sizeof *tuples + below(6) * 6)
                    : (uint8_t)(1 + below(WIRE_CARRIED_MAXIMUM));
}

static inline uint8_t put_kept(uint8_t *record)
{
    struct wire_kept *kept = (struct wire_kept *)record;
    *kept = (struct wire_kept){.carries = WIRE_CARRIES_KEPT,
                               .index = an_index(),
                               .batch = (uint16_t)below(65536),
                               .run = (uint8_t)below(3),
                               .records = (uint16_t)below(512)};
    return below(8) ? sizeof *kept : (uint8_t)(1 + below(WIRE_CARRIED_MAXIMUM));
}

#endif
