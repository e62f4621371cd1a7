/* Fuzzes what reaches query/ from the radio: expression code, QUERY_INSTALL bodies, partial state
 * records.
 *
 * fuzz INPUTS SEED; built with AddressSanitizer and UndefinedBehaviorSanitizer, which end it at the
 * first fault. Bodies lie at the end of a heap block of their exact size, so that one byte too far
 * is seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "environment.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/routing/neighbours.h"
#include "query/expressions/vm.h"
#include "query/routes/srt.h"
#include "tests/fuzz.h"
#include "wire.h"

#define CODE_MAXIMUM 40

static const uint8_t opcodes[] = {
    WIRE_OP_CONST8,  WIRE_OP_CONST16, WIRE_OP_CONST32,   WIRE_OP_NULL, WIRE_OP_ATTR, WIRE_OP_ADD,
    WIRE_OP_SUB,     WIRE_OP_MUL,     WIRE_OP_DIV,       WIRE_OP_MOD,  WIRE_OP_ABS,  WIRE_OP_HASH,
    WIRE_OP_NEG,     WIRE_OP_UPSCALE, WIRE_OP_DOWNSCALE, WIRE_OP_EQ,   WIRE_OP_NE,   WIRE_OP_LT,
    WIRE_OP_LE,      WIRE_OP_GT,      WIRE_OP_GE,        WIRE_OP_AND,  WIRE_OP_OR,   WIRE_OP_NOT,
    WIRE_OP_IS_NULL, WIRE_OP_CHANGES,
};

/* Storage points that the program being made joins. */
static uint8_t points;

/* Code that a compiler could have written, mostly; returns its length. */
static uint8_t make_code(uint8_t *code)
{
    uint8_t length = 0, depth = 0;
    uint8_t wanted = (uint8_t)(1 + below(11));
    while (length < CODE_MAXIMUM - 5 && (wanted > 0 || depth > 1)) {
        bool push = depth == 0 || (wanted > 0 && depth < WIRE_STACK_DEPTH && below(2));
        uint8_t op = push ? opcodes[below(5)]
                          : opcodes[depth > 1 ? 5 + below(sizeof opcodes - 5) : 10 + below(3)];
        code[length++] = op;
        if (push) {
            uint8_t size = op == WIRE_OP_NULL      ? 0
                           : op == WIRE_OP_CONST16 ? 2
                           : op == WIRE_OP_CONST32 ? 4
                                                   : 1;
            if (op == WIRE_OP_ATTR && points > 0 && below(2)) {
                code[length - 1] = WIRE_OP_STORED;
                code[length++] = (uint8_t)(below(points) << 4 | below(16));
                size = 0;
            }
            for (uint8_t i = 0; i < size; i++)
                code[length++] = op == WIRE_OP_ATTR ? (uint8_t)below(32) : (uint8_t)random_number();
            depth++;
        } else {
            bool two = !(op == WIRE_OP_NEG || op == WIRE_OP_ABS || op == WIRE_OP_HASH ||
                         op == WIRE_OP_UPSCALE || op == WIRE_OP_DOWNSCALE || op == WIRE_OP_NOT ||
                         op == WIRE_OP_IS_NULL || op == WIRE_OP_CHANGES);
            if (op == WIRE_OP_MUL || op == WIRE_OP_DIV || op == WIRE_OP_UPSCALE ||
                op == WIRE_OP_DOWNSCALE)
                code[length++] = (uint8_t)below(WIRE_MAXIMUM_POWER + 1);
            if (op == WIRE_OP_CHANGES)
                code[length++] = (uint8_t)below(below(4) ? 4 : WIRE_FIELDS_MAXIMUM);
            depth = (uint8_t)(depth - (two ? 1 : 0));
        }
        if (wanted > 0)
            wanted--;
    }
    return length;
}

static void mutate(uint8_t *bytes, uint8_t length)
{
    for (uint32_t n = below(4); n > 0 && length > 0; n--)
        bytes[below(length)] = (uint8_t)random_number();
}

static bool read_anything(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    (void)context;
    *value = below(4) ? (int32_t)random_number() : below(2) ? INT32_MIN : INT32_MAX;
    return attribute % 5 != 0;
}

static const struct vm_readers anything = {read_anything, read_anything, read_anything};

/* True: the code was accepted and ran. */
static bool fuzz_code(void)
{
    uint8_t code[256];
    uint8_t length;
    if (below(4)) {
        length = make_code(code);
        if (below(2))
            mutate(code, length);
    } else {
        length = (uint8_t)random_number();
        for (uint16_t i = 0; i < length; i++)
            code[i] = below(2) ? opcodes[below(sizeof opcodes)] : (uint8_t)below(40);
    }
    uint8_t *exact = malloc(length);
    memcpy(exact, code, length);
    uint32_t attributes = 0;
    int32_t value;
    bool accepted = vm_check(exact, length, &attributes);
    if (accepted)
        vm_run(exact, length, &(struct eval_context){.readers = &anything}, &value);
    free(exact);
    return accepted;
}

/* Appends a field of a kind and its code, of which `length` bytes are given. */
static uint8_t put_field(uint8_t *bytes, uint8_t at, uint8_t format, uint8_t kind, const void *code,
                         uint8_t length)
{
    struct wire_program_field *field = (struct wire_program_field *)&bytes[at];
    *field =
        (struct wire_program_field){.format = format, .aggregate = kind, .code_length = length};
    memcpy(&bytes[at + sizeof *field], code, length);
    return (uint8_t)(at + sizeof *field + length);
}

/* Few numbers of points and events, so that they meet. */
static uint16_t few(void) { return (uint16_t)(1 + below(4)); }

/* What a query waits for and does. */
static uint8_t put_clause(uint8_t *bytes, uint8_t at, uint8_t kind)
{
    uint8_t code[CODE_MAXIMUM + 2];
    uint16_t number = few();
    uint8_t length;
    switch (kind) {
    case WIRE_AGGREGATE_BUDGET: {
        struct wire_budget budget = {1 + below(1000000),
                                     below(5000),
                                     1 + below(30000),
                                     (uint16_t)(2500 + below(600)),
                                     (uint16_t)(2000 + below(500)),
                                     (uint8_t)(1 + below(255))};
        return put_field(bytes, at, 0, kind, &budget, sizeof budget);
    }
    case WIRE_AGGREGATE_ON_EVENT: {
        uint8_t clause[sizeof(struct wire_on_event) + CODE_MAXIMUM];
        struct wire_on_event on = {below(16) ? number : WIRE_EVENT_BOOT, 1 + below(50),
                                   (uint8_t)below(64), (uint8_t)below(4), 1 + below(20)};
        memcpy(clause, &on, sizeof on);
        length = sizeof on;
        if (!below(4) && at < WIRE_PROGRAM_MAXIMUM - CODE_MAXIMUM - 20)
            length = (uint8_t)(length + make_code(clause + sizeof on));
        return put_field(bytes, at, 0, kind, clause, length);
    }
    case WIRE_AGGREGATE_STORE: {
        struct wire_store store = {number,
                                   (uint16_t)(1 + below(below(4) ? 20 : WIRE_STORE_ROWS_MAXIMUM)),
                                   below(3) ? 0 : below(100),
                                   (uint8_t)below(4),
                                   (uint8_t)below(40),
                                   (uint8_t)(2 + below(20))};
        return put_field(bytes, at, 0, kind, &store, sizeof store);
    }
    case WIRE_AGGREGATE_FROM: {
        struct wire_from from = {number, (uint8_t)below(3)};
        memcpy(code, &from, sizeof from);
        length = (uint8_t)(sizeof from + below(5));
        for (uint8_t i = sizeof from; i < length; i++)
            code[i] = (uint8_t)below(6);
        return put_field(bytes, at, 0, kind, code, length);
    }
    case WIRE_AGGREGATE_ACTION:
        length = make_code(code);
        return put_field(bytes, at, (uint8_t)below(8), kind, code, length);
    case WIRE_AGGREGATE_SRT: {
        struct wire_srt srt = {(uint8_t)number, (uint8_t)below(5)};
        length = (uint8_t)(sizeof srt + (1 + below(2)) * sizeof(struct wire_srt_axis));
        memcpy(code, &srt, sizeof srt);
        for (uint8_t i = 0; i < 2; i++) {
            struct wire_srt_axis axis = {(uint8_t)(below(8) ? below(14) : 32 + below(4)),
                                         (int32_t)below(2000) - 1000, 1 + below(100)};
            memcpy(&code[sizeof srt + i * sizeof axis], &axis, sizeof axis);
        }
        return put_field(bytes, at, 0, kind, code, length);
    }
    case WIRE_AGGREGATE_ROUTE: {
        struct wire_route route = {(uint8_t)number, (uint8_t)below(256), (uint8_t)below(256),
                                   (uint8_t)below(256), (uint8_t)below(256)};
        return put_field(bytes, at, 0, kind, &route, sizeof route);
    }
    case WIRE_AGGREGATE_PAIRS: {
        /* Motes 5 to 9, of which 7 is this one. */
        const uint8_t later[] = {WIRE_OP_STORED, 0x01, WIRE_OP_STORED, 0x11, WIRE_OP_GT},
                      sets[] = {0x60, 0x07, (uint8_t)below(128), 0x81, (uint8_t)below(128)};
        struct wire_pairs pairs = {(uint8_t)below(4),
                                   (uint16_t)below(5),
                                   (uint8_t)(1 + below(3)),
                                   (uint8_t)below(9),
                                   sizeof later,
                                   (uint8_t)below(4),
                                   2,
                                   1,
                                   2};
        memcpy(code, &pairs, sizeof pairs);
        length = sizeof pairs;
        memcpy(&code[length], later, sizeof later);
        length = (uint8_t)(length + sizeof later);
        memcpy(&code[length], sets, sizeof sets);
        length = (uint8_t)(length + sizeof sets);
        for (uint8_t hosts = (uint8_t)below(3); hosts > 0 && length < CODE_MAXIMUM - 7; hosts--) {
            struct wire_pairs_host host = {below(2) ? 2 : 4, (uint8_t)below(24),
                                           (uint8_t)(1 + below(4))};
            memcpy(&code[length], &host, sizeof host);
            length = (uint8_t)(length + sizeof host);
            bool relayed = !below(3);
            for (uint8_t i = 0; i < host.groups; i++)
                code[length++] =
                    (uint8_t)(below(below(16) ? 5 : 64) |
                              (relayed && i < 2 ? 0 : 1 + below(3)) * WIRE_PAIRS_MOTES);
        }
        return put_field(bytes, at, 0, kind, code, length);
    }
    default: /* a number; of STOP_ON with a condition behind it */
        memcpy(code, &number, sizeof number);
        length = kind == WIRE_AGGREGATE_STOP_ON && below(2) ? make_code(code + sizeof number) : 0;
        return put_field(bytes, at, 0, kind, code, (uint8_t)(sizeof number + length));
    }
}

/* Rows go to who stores them: each column in a part of its own, but for the last part. */
static uint8_t put_index(uint8_t *bytes, uint8_t at, uint8_t columns)
{
    uint8_t code[128], parts = (uint8_t)(1 + below(columns)), length = sizeof(struct wire_index);
    struct wire_index index = {few(), (uint8_t)below(4), parts, below(2) ? 60 : 86400};
    uint8_t owners = 0;
    memcpy(code, &index, sizeof index);
    for (uint8_t i = 0; i < parts; i++) {
        struct wire_index_part part = {(uint8_t)(1U << i), (uint8_t)below(3), (uint8_t)below(2),
                                       (uint8_t)below(2)};
        part.settled = (uint8_t)(part.settled + (part.settled + part.away == 0));
        owners = (uint8_t)(owners + part.settled + part.away + part.added);
        if (i + 1 == parts)
            part.columns = (uint8_t)(((1U << columns) - 1U) & ~((1U << i) - 1U));
        memcpy(&code[length], &part, sizeof part);
        length = (uint8_t)(length + sizeof part);
    }
    for (uint8_t i = 0; i < columns; i++) {
        struct wire_index_range range = {(int32_t)below(2000) - 1000,
                                         below(16) ? 1000 + (int32_t)below(2000) : 0};
        memcpy(&code[length], &range, sizeof range);
        length = (uint8_t)(length + sizeof range);
    }
    for (uint8_t i = 0; i < owners && length + sizeof(struct wire_index_owner) <= sizeof code;
         i++) {
        struct wire_index_owner owner = {(uint16_t)(5 + below(4)), (int16_t)below(500),
                                         (int16_t)below(500)};
        memcpy(&code[length], &owner, sizeof owner);
        length = (uint8_t)(length + sizeof owner);
    }
    return at + sizeof(struct wire_program_field) + length <= WIRE_PROGRAM_MAXIMUM
               ? put_field(bytes, at, 0, WIRE_AGGREGATE_INDEX, code, length)
               : at;
}

/* A mote, mostly this one, gathers what it and others store. */
static uint8_t put_gather(uint8_t *bytes, uint8_t at)
{
    uint8_t code[sizeof(struct wire_gather) + 40 + CODE_MAXIMUM], length;
    struct wire_gather *gather = (struct wire_gather *)code;
    *gather = (struct wire_gather){.index = (uint16_t)(few() | below(3) << 13),
                                   .mote = (uint16_t)(5 + below(3)),
                                   .zones = (uint8_t)below(4),
                                   .aggregates = (uint8_t)below(5)};
    length = sizeof *gather;
    for (uint8_t i = 0; i < gather->aggregates; i++) {
        code[length++] = (uint8_t)below(7);
        code[length++] = below(2) ? UINT8_MAX : (uint8_t)below(WIRE_ATTRIBUTE_MAXIMUM + 1);
    }
    for (uint32_t bounds = 3 * below(5); bounds > 0; bounds--)
        code[length++] = below(2) ? UINT8_MAX : (uint8_t)below(16);
    uint8_t read = points;
    points = 0;
    if (below(2))
        length = (uint8_t)(length + make_code(code + length));
    points = read;
    return at + sizeof(struct wire_program_field) + length <= WIRE_PROGRAM_MAXIMUM
               ? put_field(bytes, at, 0, WIRE_AGGREGATE_GATHER, code, length)
               : at;
}

static uint8_t put_temporal(uint8_t *bytes, uint8_t at)
{
    uint8_t code[CODE_MAXIMUM + sizeof(struct wire_temporal)];
    struct wire_temporal temporal = {(uint8_t)(1 + below(20)), (uint8_t)(1 + below(30)),
                                     (uint8_t)(below(4) | (below(2) ? WIRE_TEMPORAL_EPOCHS : 0))};
    memcpy(code, &temporal, sizeof temporal);
    uint8_t length = make_code(code + sizeof temporal);
    return put_field(bytes, at, (uint8_t)(1 + below(5)),
                     (uint8_t)(WIRE_AGGREGATE_WINAVG + below(10)), code,
                     (uint8_t)(sizeof temporal + length));
}

/* A program that is valid, mostly, with fields of all kinds. */
static uint8_t make_program(uint8_t *bytes)
{
    struct wire_query_program *program = (struct wire_query_program *)bytes;
    bool aggregating = below(2);
    bool storing = !aggregating && !below(3);
    points = storing || below(3) ? 0 : (uint8_t)(1 + below(2));
    program->flags =
        (uint8_t)((aggregating ? WIRE_QUERY_AGGREGATE : 0) | (below(8) ? 0 : WIRE_QUERY_ONCE));
    program->period = below(8) ? 1000 + below(9000) : WIRE_PERIOD_MAXIMUM_MS - below(3);
    program->start = below(200000);
    program->end = below(2) ? WIRE_FOREVER : program->start + below(100);
    program->where_length = below(2) ? make_code(program->fields) : 0;
    uint8_t at = (uint8_t)(sizeof *program + program->where_length), columns = 0;
    for (uint32_t fields = 1 + below(5); fields > 0 && at < WIRE_PROGRAM_MAXIMUM - CODE_MAXIMUM - 3;
         fields--, columns++) {
        if (!aggregating && points == 0 && !below(4)) {
            at = put_temporal(bytes, at);
            continue;
        }
        struct wire_program_field *field = (struct wire_program_field *)&bytes[at];
        field->format = (uint8_t)(1 + below(5));
        field->aggregate = (uint8_t)(aggregating ? 1 + below(WIRE_AGGREGATE_DISTINCT) : 0);
        field->code_length = make_code(&bytes[at + sizeof *field]);
        at = (uint8_t)(at + sizeof *field + field->code_length);
    }
    for (uint8_t i = 0; i < points && at < WIRE_PROGRAM_MAXIMUM - 12; i++)
        at = points == 1 && below(2) ? put_gather(bytes, at)
                                     : put_clause(bytes, at, WIRE_AGGREGATE_FROM);
    if (storing && at < WIRE_PROGRAM_MAXIMUM - 20)
        at = put_clause(bytes, at, below(3) ? WIRE_AGGREGATE_STORE : WIRE_AGGREGATE_INTO);
    bool pairs = !aggregating && !storing && points == 0 && !below(3);
    if (pairs && at < WIRE_PROGRAM_MAXIMUM - CODE_MAXIMUM - 5)
        at = put_clause(bytes, at, WIRE_AGGREGATE_PAIRS);
    if (!pairs && !aggregating && !storing && points == 0 && below(2))
        at = put_index(bytes, at, columns);
    while (!below(3) && at < WIRE_PROGRAM_MAXIMUM - CODE_MAXIMUM - 5)
        at = put_clause(bytes, at, (uint8_t)(WIRE_AGGREGATE_BUDGET + below(5)));
    if (!below(3) && at < WIRE_PROGRAM_MAXIMUM - 30)
        at = put_clause(bytes, at, below(4) ? WIRE_AGGREGATE_ROUTE : WIRE_AGGREGATE_SRT);
    points = 0;
    return at;
}

static enum app_outcome install(const uint8_t *program, uint8_t total, uint8_t query,
                                uint16_t version)
{
    enum app_outcome outcome = APP_REFUSED;
    for (uint16_t offset = 0; offset < total; offset += WIRE_FRAGMENT_MAXIMUM) {
        uint16_t left = (uint16_t)(total - offset);
        uint8_t size = (uint8_t)(left < WIRE_FRAGMENT_MAXIMUM ? left : WIRE_FRAGMENT_MAXIMUM);
        uint8_t length = (uint8_t)(sizeof(struct wire_query_install) + size);
        struct wire_query_install *body = malloc(length);
        *body = (struct wire_query_install){version, query, total, (uint8_t)offset};
        memcpy(body->data, &program[offset], size);
        if (!below(8))
            mutate((uint8_t *)body, length);
        if (!below(16))
            length = (uint8_t)below(length + 1U); /* cut off */
        outcome = app_install(body, length);
        free(body);
    }
    return outcome;
}

/* What neighbours tell of trees, and of queries that have a route. */
static void fuzz_trees(void)
{
    uint8_t entries[3 * sizeof(struct wire_srt_entry)],
        told[WIRE_QUERIES_MAXIMUM * sizeof(struct wire_srt_entry)];
    uint8_t routes[APP_ROUTES_MAXIMUM], neighbour = (uint8_t)below(NEIGHBOURS),
                                        length = (uint8_t)below(sizeof entries + 1);
    for (uint8_t i = 0; i < length; i++)
        entries[i] = (uint8_t)(i % sizeof(struct wire_srt_entry) == 0 ? below(5) : below(256));
    neighbour_child((uint16_t)below(30), 1, (uint8_t)below(256));
    (void)app_srt_heard(neighbour, entries, length, below(2));
    (void)app_srt_refresh(below(2));
    if (app_srt_write(told) > BOARD_SRTS * sizeof(struct wire_srt_entry))
        abort();
    (void)app_srt_distance(neighbour, below(2));
    struct wire_routed_query entry = {(uint8_t)below(10),  (uint8_t)below(5),
                                      (uint8_t)below(256), (uint8_t)below(256),
                                      (uint8_t)below(256), (uint8_t)below(256)};
    app_learn((uint16_t)below(9), &entry);
    (void)app_concerns((uint8_t)below(10), (uint16_t)below(30));
    (void)app_spreads((uint8_t)below(10));
    if (app_routes(routes) > sizeof routes)
        abort();
    (void)app_wants();
    app_window();
    neighbours_age();
}

static bool fuzz_install(void)
{
    fuzz_trees();
    uint8_t program[256];
    uint8_t total = (uint8_t)(below(4) ? make_program(program) : below(256));
    if (!below(3))
        mutate(program, total);
    if (!below(8))
        app_stop((uint8_t)(below(64) ? 1 + below(9) : 0));
    enum app_outcome outcome = install(program, total, (uint8_t)below(10), (uint16_t)below(50));
    if (!below(16)) {
        environment_forget_records();
        environment_run(below(400000));
    }
    if (!below(256))
        environment_synchronise(below(200000), (uint16_t)below(32768), (int32_t)below(200) - 100);
    if (!below(32))
        app_event(&(struct wire_event){few(), (uint16_t)below(10), (int32_t)random_number(),
                                       (int32_t)random_number(), below(200000),
                                       (int32_t)random_number()});
    app_epoch_in(random_number());
    return outcome == APP_COMPLETE || outcome == APP_KNOWN;
}

static bool fuzz_merge(void)
{
    uint8_t length =
        (uint8_t)(sizeof(struct wire_partial) + below(6) * sizeof(struct wire_aggregate_state));
    if (!below(4))
        length = (uint8_t)below(112);
    uint8_t query = (uint8_t)below(10), size = below(4) ? app_state_size(query) : length;
    uint8_t *into = malloc(size), *from = malloc(length);
    for (uint8_t i = 0; i < size; i++)
        into[i] = (uint8_t)random_number();
    for (uint8_t i = 0; i < length; i++)
        from[i] = (uint8_t)(i < size ? into[i] : random_number());
    if (size > 0)
        into[0] = query;
    if (length > 0)
        from[0] = query;
    if (length > sizeof(struct wire_partial))
        mutate(&from[sizeof(struct wire_partial)], (uint8_t)(length - sizeof(struct wire_partial)));
    bool merged =
        length >= sizeof(struct wire_partial) && size >= sizeof(struct wire_partial) &&
        app_merge((struct wire_partial *)into, size, (const struct wire_partial *)from, length);
    free(into);
    free(from);
    return merged;
}

/* Rows of motes below, of a few epochs of one query. */
static bool fuzz_row(void)
{
    uint8_t query = (uint8_t)below(10);
    uint32_t epoch = below(4) ? time_at(environment_local()).seconds / (1 + below(9)) : 0;
    bool passes = true;
    for (uint8_t rows = (uint8_t)below(32); rows > 0; rows--) {
        uint8_t length = (uint8_t)below(below(4) ? 24 : 112);
        uint8_t *row = malloc(length);
        for (uint8_t i = 0; i < length; i++)
            row[i] = (uint8_t)random_number();
        if (length >= sizeof(struct wire_result)) {
            ((struct wire_result *)row)->query = query;
            ((struct wire_result *)row)->node = (uint16_t)(5 + below(5));
            ((struct wire_result *)row)->epoch = epoch + below(8);
        }
        passes &= app_child_row((const struct wire_result *)row, length);
        /* The same comes, or comes back, by a way. */
        uint8_t *record = malloc((size_t)length + 1);
        record[0] = WIRE_CARRIES_ROW;
        memcpy(record + 1, row, length);
        (void)app_row(record, (uint8_t)(length + 1));
        app_row_lost(record, (uint8_t)(length + 1));
        free(record);
        free(row);
    }
    environment_ways((uint8_t)below(4));
    app_rows_due(below(2));
    return passes;
}

/* Tuples that come, or come back, and what is asked of them; true: some have gone on. */
static bool fuzz_tuples(void)
{
    for (uint8_t records = (uint8_t)below(16); records > 0; records--) {
        uint8_t length = (uint8_t)below(WIRE_CARRIED_MAXIMUM + 1U);
        uint8_t *record = malloc(length);
        for (uint8_t i = 0; i < length; i++)
            record[i] = (uint8_t)random_number();
        if (length >= sizeof(struct wire_index_tuples)) {
            struct wire_index_tuples *tuples = (struct wire_index_tuples *)record;
            tuples->index = (uint16_t)(few() | below(3) << 13);
            tuples->node = (uint16_t)(5 + below(5));
            tuples->session = (uint16_t)(1 + (below(8) == 0));
            tuples->epoch = below(4) ? time_at(environment_local()).seconds / (1 + below(9)) : 0;
        }
        if (below(2))
            (void)app_tuple(record, length);
        else
            app_tuple_lost(record, length);
        free(record);
    }
    uint8_t arguments = (uint8_t)below(21);
    struct wire_command *command = malloc(sizeof *command + arguments);
    command->op = below(4) ? WIRE_COMMAND_INDEX_ASK : WIRE_COMMAND_INDEX_DROP;
    command->token = (uint16_t)random_number();
    for (uint8_t i = 0; i < arguments; i++)
        command->arguments[i] = (uint8_t)random_number();
    if (arguments >= sizeof(uint16_t)) {
        uint16_t index = (uint16_t)(few() | below(3) << 13);
        memcpy(command->arguments, &index, sizeof index);
    }
    app_index_command(command, arguments);
    free(command);
    environment_ways((uint8_t)below(4));
    app_tuples_due();
    uint8_t gone[WIRE_CARRIED_MAXIMUM];
    uint16_t destination;
    return environment_carried(&destination, gone) > 0 && gone[0] == WIRE_CARRIES_TUPLE;
}

static bool fuzz_fragment(void)
{
    uint8_t *body = malloc(WIRE_PACKET_MAXIMUM - sizeof(struct wire_header));
    uint8_t ids[WIRE_QUERIES_MAXIMUM];
    app_held(ids);
    bool given = app_fragment((uint8_t)below(10),
                              (uint8_t)(below(4) ? below(3) * WIRE_FRAGMENT_MAXIMUM : below(256)),
                              (struct wire_query_install *)body);
    free(body);
    return given;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: fuzz INPUTS SEED\n");
        return 2;
    }
    unsigned long inputs = strtoul(arguments[1], NULL, 10);
    fuzz_seed(strtoull(arguments[2], NULL, 10));
    static bool (*const targets[])(void) = {fuzz_code,     fuzz_install, fuzz_merge,
                                            fuzz_fragment, fuzz_row,     fuzz_tuples};
    unsigned long accepted[6] = {0}, tried[6] = {0};
    environment_reset(0);
    for (uint8_t attribute = WIRE_ATTRIBUTE_LIGHT; attribute <= WIRE_ATTRIBUTE_ACCEL_Y; attribute++)
        environment_sensor(attribute, (int32_t)random_number(),
                           attribute == WIRE_ATTRIBUTE_ACCEL_Y);
    environment_synchronise(100000, 0, 0);
    for (unsigned long i = 0; i < inputs; i++) {
        uint32_t target = below(10) < 5 ? 0 : 1 + below(5);
        tried[target]++;
        accepted[target] += targets[target]();
    }
    printf("inputs %lu code %lu/%lu install %lu/%lu merge %lu/%lu fragment %lu/%lu row %lu/%lu "
           "tuples %lu/%lu rows %lu "
           "refused %u\n",
           inputs, accepted[0], tried[0], accepted[1], tried[1], accepted[2], tried[2], accepted[3],
           tried[3], accepted[4], tried[4], accepted[5], tried[5], (unsigned long)app_rows(),
           app_refused());
    return 0;
}
