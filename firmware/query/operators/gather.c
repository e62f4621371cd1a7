#include "query/operators/gather.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "net/app.h"
#include "query/expressions/vm.h"
#include "query/operators/index_zone.h"
#include "query/operators/indexed.h"
#include "query/program/clauses.h"

bool gathers(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_GATHER) != NULL;
}

/* Its columns and conditions read what is gathered as the rows of a storage point. */
static bool gather_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_gather *gather = (const struct wire_gather *)field->code.bytes;
    facts->keeps |= PROGRAM_KEEPS_JOIN;
    return ++facts->sources == 1 && field->code.length >= sizeof *gather &&
           gather->aggregates > 0 && gather->aggregates <= WIRE_GATHERED_MAXIMUM &&
           !(facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) &&
           facts->program->period >= WIRE_PERIOD_MINIMUM_MS;
}

#ifdef BOARD_TUPLES

#include "drivers/settings.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/wide.h"
#include "net/mac/time.h"
#include "net/routing/positions.h"
#include "net/transport/carried.h"
#include "net/transport/transport_conf.h"
#include "query/expressions/attribute.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* Of COUNT(*). */
#define ALL UINT8_MAX

struct cell {
    int64_t value; /* a sum, or the least or the greatest */
    uint32_t count;
};

/* The clause's state, of the mote that gathers. */
struct gathered {
    uint32_t epoch;
    uint32_t heard; /* bit i: the part's owner i has answered */
    bool open;      /* its row has not been made yet */
    struct cell cells[WIRE_GATHERED_MAXIMUM];
} __attribute__((packed));

/* The question as the query's program says it. */
struct question {
    const struct wire_gather *gather;
    const struct wire_gathered_kind *kinds;
    struct program_code where; /* length 0: all tuples in the box */
    const struct query_entry *of;
    struct indexed index;
    struct indexed_part part;
    struct index_box box;
};

static void step(void);
static void conclude_whole(void);

static struct {
    struct timer timer;
    struct event whole; /* all zones have answered a question */
    struct looking {
        uint8_t query; /* 0: none */
        bool looks;    /* else what was found waits for a way */
        uint32_t epoch;
        struct tuples_scan scan;
        struct cell cells[WIRE_GATHERED_MAXIMUM];
    } looking[GATHERINGS];
    /* what conditions and columns read at this moment */
    const struct question *question;
    const struct tuple *tuple;
    const struct cell *cells;
} gathering = {.whole = {.handler = conclude_whole}};

/* False: it asks of no index that is known, or is malformed. */
static bool read_question(const struct query_entry *entry, struct question *question)
{
    struct program_field field;
    if (!entry_clause(entry, WIRE_AGGREGATE_GATHER, 0, &field))
        return false;
    const struct wire_gather *gather = (const struct wire_gather *)field.code.bytes;
    uint8_t part = (uint8_t)(gather->index >> INDEXED_PART_SHIFT);
    question->gather = gather;
    question->kinds = (const struct wire_gathered_kind *)gather->more;
    question->of = indexed_find(INDEXED_NUMBER(gather->index), &question->index);
    if (question->of == NULL || part >= question->index.index->parts)
        return false;
    indexed_part(question->of, &question->index, part, &question->part);
    const uint8_t *bounds = (const uint8_t *)&question->kinds[gather->aggregates];
    size_t before =
        (size_t)(bounds - field.code.bytes) + (size_t)question->part.columns * INDEX_BOUNDS_BYTES;
    if (field.code.length < before)
        return false;
    index_read_bounds(bounds, question->part.columns, &question->box);
    question->where.bytes = field.code.bytes + before;
    question->where.length = (uint8_t)(field.code.length - before);
    uint32_t reads = 0;
    return question->where.length == 0 ||
           vm_check(question->where.bytes, question->where.length, &reads);
}

static struct gathered *state_of(const struct query_entry *entry)
{
    return (struct gathered *)clauses_state(entry, WIRE_AGGREGATE_GATHER);
}

/* ---- who stores ---- */

/* A tuple's attribute; false: NULL, or it is not in the part. */
static bool read_tuple(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    const struct question *question = gathering.question;
    const struct tuple *tuple = gathering.tuple;
    struct row_column column;
    uint8_t i = 0;
    (void)context;
    if (attribute == WIRE_ATTRIBUTE_NODEID || attribute == WIRE_ATTRIBUTE_EPOCH) {
        *value = attribute == WIRE_ATTRIBUTE_NODEID ? tuple->name.mote
                                                    : (int32_t)(tuple->name.sequence & INT32_MAX);
        return true;
    }
    for (row_start(&column, question->of); row_next_column(&column);) {
        if (!(question->part.mask & column.bit))
            continue;
        const struct program_code *code = &column.field.code;
        if (code->length == 2 && code->bytes[0] == WIRE_OP_ATTR && code->bytes[1] == attribute) {
            *value = tuple->values[i];
            return !(tuple->nulls >> i & 1);
        }
        i++;
    }
    return false;
}

static const IN_FLASH struct vm_readers tuple_readers = {.attribute = read_tuple};

/* Adds one value, or what has been found elsewhere. */
static void add(struct cell *cell, uint8_t aggregate, int64_t value, uint32_t count)
{
    bool extreme = aggregate == WIRE_AGGREGATE_MIN || aggregate == WIRE_AGGREGATE_MAX;
    if (count == 0)
        return;
    if (!extreme)
        cell->value = (int64_t)((uint64_t)cell->value + (uint64_t)value);
    else if (cell->count == 0 ||
             (aggregate == WIRE_AGGREGATE_MIN ? value < cell->value : value > cell->value))
        cell->value = value;
    cell->count += count;
}

static void take_tuple(const struct question *question, struct looking *one,
                       const struct tuple *tuple)
{
    struct eval_context context = {&tuple_readers, NULL, tuple->name.sequence, NULL};
    int32_t value;
    gathering.question = question;
    gathering.tuple = tuple;
    if (!index_in_box(&question->index, &question->part, tuple, &question->box) ||
        (question->where.length > 0 &&
         (!program_compute(&question->where, &context, &value) || value == 0)))
        return;
    for (uint8_t i = 0; i < question->gather->aggregates; i++) {
        const struct wire_gathered_kind *kind = &question->kinds[i];
        if (kind->attribute == ALL)
            add(&one->cells[i], kind->aggregate, 0, 1);
        else if (read_tuple(kind->attribute, &value, &context))
            add(&one->cells[i], kind->aggregate, value, 1);
    }
}

/* Looks on; false: not now any more. */
static bool look(const struct question *question, struct looking *one)
{
    struct tuple tuple;
    switch (tuples_scan_next(&one->scan, &tuple)) {
    case TUPLES_MET: take_tuple(question, one, &tuple); return true;
    case TUPLES_END: one->looks = false; return false;
    default: return false;
    }
}

static bool deliver(const struct query_entry *entry, const struct question *question,
                    const struct looking *one)
{
    struct {
        struct wire_gathered record;
        struct wire_gathered_state states[WIRE_GATHERED_MAXIMUM];
    } __attribute__((packed)) told = {.record = {.carries = WIRE_CARRIES_GATHERED,
                                                 .query = entry->query,
                                                 .node = settings()->nodeid,
                                                 .epoch = one->epoch}};
    uint8_t count = question->gather->aggregates;
    uint8_t length = (uint8_t)(sizeof told.record + count * sizeof(struct wire_gathered_state));
    for (uint8_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)one->cells[i].value;
        told.states[i] = (struct wire_gathered_state){
            .low = (uint32_t)value, .high = (uint32_t)(value >> 32), .count = one->cells[i].count};
    }
    if (question->gather->mote == settings()->nodeid)
        return app_gathered((const uint8_t *)&told, length);
    struct place at = {question->gather->x, question->gather->y};
    struct way_route route = {.place = &at};
    return carried_send(question->gather->mote, &route, &told, length, INDEX_GIVEN_UP,
                        WAY_EVERY_LEAST) == CARRIED_WAITS;
}

_Static_assert(sizeof(struct wire_gathered) +
                       WIRE_GATHERED_MAXIMUM * sizeof(struct wire_gathered_state) <=
                   WIRE_CARRIED_MAXIMUM,
               "a record");

static void step(void)
{
    struct question question;
    uint16_t pause = 0;
    for (struct looking *one = gathering.looking; one < gathering.looking + GATHERINGS; one++) {
        const struct query_entry *entry = one->query != 0 ? entry_of(one->query) : NULL;
        if (entry == NULL || !read_question(entry, &question)) {
            one->query = 0;
            continue;
        }
        while (one->looks && look(&question, one)) {}
        if (!one->looks && deliver(entry, &question, one)) {
            one->query = 0;
            continue;
        }
        if (pause == 0 || one->looks)
            pause = one->looks ? CLOCK_MS(INDEX_PAUSE_MS) : CLOCK_MS(GATHER_RETRY_MS);
    }
    if (pause > 0)
        timer_after(&gathering.timer, pause, step);
}

static void begin(const struct query_entry *entry, const struct question *question)
{
    const struct tuples_box all = {
        .attributes = question->part.columns,
        .nulls = UINT8_MAX,
        .low = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN},
        .high = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    struct looking *free = NULL;
    for (uint8_t i = GATHERINGS; i-- > 0;) {
        struct looking *one = &gathering.looking[i];
        /* What has not gone by now is not waited for any more. */
        if (one->query == entry->query)
            one->query = 0;
        if (one->query == 0)
            free = one;
    }
    if (free == NULL)
        return;
    *free = (struct looking){.query = entry->query, .looks = true, .epoch = entry->epoch};
    tuples_scan_begin(&free->scan, INDEXED_NUMBER(question->gather->index), &all);
    timer_after(&gathering.timer, CLOCK_MS(INDEX_PAUSE_MS), step);
}

/* ---- who gathers ---- */

/* A value of an aggregate, or the number of the row, which is the only one. */
static bool read_gathered(uint8_t operand, int32_t *value, const struct eval_context *context)
{
    uint8_t field = operand & 15;
    (void)context;
    if (field == WIRE_STORED_NUMBER) {
        *value = 0;
        return true;
    }
    if (operand >> 4 != 0 || field >= gathering.question->gather->aggregates)
        return false;
    const struct cell *cell = &gathering.cells[field];
    switch (gathering.question->kinds[field].aggregate) {
    case WIRE_AGGREGATE_COUNT: *value = (int32_t)(cell->count & INT32_MAX); return true;
    case WIRE_AGGREGATE_AVG: return wide_quotient(cell->value, 0, cell->count, value);
    default: return cell->count > 0 && wide_quotient(cell->value, 0, 1, value);
    }
}

static const IN_FLASH struct vm_readers gathered_readers = {attribute_read, row_changes,
                                                            read_gathered};

/* The row of what has come, where the conditions let it pass. */
static void conclude(struct query_entry *entry, const struct question *question)
{
    struct gathered *state = state_of(entry);
    struct cell cells[WIRE_GATHERED_MAXIMUM];
    struct eval_context context = row_context(entry);
    if (!state->open)
        return;
    state->open = false;
    memcpy(cells, state->cells, sizeof cells);
    gathering.question = question;
    gathering.cells = cells;
    context.readers = &gathered_readers;
    context.epoch = state->epoch;
    bool passes = program_passes(entry_program(entry), &context);
    if (passes)
        output_joined(&context);
    else
        output_end(entry, false);
}

/* A mote's place among a part's owners; owner_count: it is none. */
static uint8_t owner_place(const struct indexed_part *part, uint16_t node)
{
    uint8_t place = 0;
    while (place < part->owner_count && part->owners[place].node != node)
        place++;
    return place;
}

static bool is_whole(const struct gathered *state, const struct question *question)
{
    uint8_t zones = 0;
    for (uint32_t heard = state->heard; heard != 0; heard &= heard - 1)
        zones++;
    return zones >= question->gather->zones;
}

/* What a row starts goes deep, and so does what brings the last answer: not both at once. */
static void conclude_whole(void)
{
    struct question question;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        if (!gathers(entry) || !read_question(entry, &question) ||
            question.gather->mote != settings()->nodeid)
            continue;
        const struct gathered *state = state_of(entry);
        if (state->open && is_whole(state, &question))
            conclude(entry, &question);
    }
}

bool app_gathered(const uint8_t *bytes, uint8_t length)
{
    const struct wire_gathered *record = (const struct wire_gathered *)bytes;
    const struct query_entry *entry = length > sizeof *record ? entry_of(record->query) : NULL;
    struct question question;
    if (entry == NULL || !read_question(entry, &question) ||
        question.gather->mote != settings()->nodeid)
        return false;
    uint8_t count = question.gather->aggregates;
    uint8_t place = owner_place(&question.part, record->node);
    if (length != sizeof *record + count * sizeof(struct wire_gathered_state) ||
        place == question.part.owner_count)
        return false;
    struct gathered *state = state_of(entry);
    if (!state->open || record->epoch != state->epoch || state->heard >> place & 1)
        return true; /* it comes late, or again */
    state->heard |= (uint32_t)1 << place;
    const struct wire_gathered_state *states = (const struct wire_gathered_state *)record->states;
    for (uint8_t i = 0; i < count; i++) {
        struct cell cell = {state->cells[i].value, state->cells[i].count};
        add(&cell, question.kinds[i].aggregate,
            (int64_t)((uint64_t)states[i].high << 32 | states[i].low), states[i].count);
        state->cells[i] = cell;
    }
    if (is_whole(state, &question))
        event_post(&gathering.whole);
    return true;
}

void gather_start(struct query_entry *entry)
{
    struct question question;
    entry->progress = EPOCH_DONE;
    if (!read_question(entry, &question))
        return;
    if (question.gather->mote == settings()->nodeid) {
        conclude(entry, &question);
        *state_of(entry) = (struct gathered){.epoch = entry->epoch, .open = true};
    }
    if (index_may_store(&question.part, &question.box))
        begin(entry, &question);
}

static uint16_t gather_size(const struct query_entry *entry, const struct program_field *field)
{
    const struct wire_gather *gather = (const struct wire_gather *)field->code.bytes;
    (void)entry;
    return gather->mote == settings()->nodeid ? sizeof(struct gathered) : 0;
}

/* Only the mote that gathers senses something for it. */
static void gather_open(struct query_entry *entry, const struct program_field *field)
{
    const struct wire_gather *gather = (const struct wire_gather *)field->code.bytes;
    if (gather->mote != settings()->nodeid)
        entry->attributes = 0;
}

const IN_FLASH struct clause clause_gather = {WIRE_AGGREGATE_GATHER, gather_check, NULL,
                                              gather_size,           gather_open,  NULL};

#else

/* It passes the query on to those that store, and their answers by ways. */
void gather_start(struct query_entry *entry) { entry->progress = EPOCH_DONE; }

static void gather_open(struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    entry->attributes = 0;
}

const IN_FLASH struct clause clause_gather = {WIRE_AGGREGATE_GATHER, gather_check, NULL, NULL,
                                              gather_open,           NULL};

#endif
