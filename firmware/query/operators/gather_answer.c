#include "query/operators/gather_answer.h"

#ifdef BOARD_TUPLES

#include <stddef.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "net/app.h"
#include "net/transport/carried.h"
#include "net/transport/transport_conf.h"
#include "query/events/events.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/operators/gathered.h"
#include "query/operators/index_giving.h"
#include "query/operators/index_taking.h"
#include "query/operators/index_zone.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* Of COUNT(*). */
#define ALL UINT8_MAX

/* A question, and which tuples it is about. */
struct asked {
    struct gather_question question;
    struct index_box box;
};

static struct {
    struct timer timer;
    struct looking {
        uint8_t query; /* 0: none */
        bool looks;    /* else what was found waits for a way */
        bool of_event; /* an event asks it */
        struct wire_event event;
        ticks_t told_from; /* before that nothing is told */
        uint32_t name;
        uint32_t asked; /* network second, the same on all motes */
        struct tuples_scan scan;
        struct gather_cell cells[WIRE_GATHERED_MAXIMUM];
    } looking[GATHERINGS];
    /* what conditions read at this moment */
    const struct gather_question *question;
    const struct tuple *tuple;
} answering;

/* Its condition is sound as well. */
static bool read_asked(const struct query_entry *entry, struct asked *asked)
{
    struct gather_question *question = &asked->question;
    uint32_t reads = 0;
    if (!gather_read(entry, question))
        return false;
    index_read_bounds(question->bounds, question->part.columns, &asked->box);
    return question->where.length == 0 ||
           vm_check(question->where.bytes, question->where.length, &reads);
}

/* A tuple's attribute; false: NULL, or it is not in the part. What no column has is what an event
 * has said of its mote: an index of events has one column of that at most. */
static bool read_tuple(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    const struct gather_question *question = answering.question;
    const struct tuple *tuple = answering.tuple;
    struct row_column column;
    uint8_t i = 0;
    bool said = false;
    if (attribute >= WIRE_ATTRIBUTE_EVENT_NODEID)
        return attribute_read(attribute, value, context);
    if (attribute == WIRE_ATTRIBUTE_NODEID || attribute == WIRE_ATTRIBUTE_EPOCH) {
        *value = attribute == WIRE_ATTRIBUTE_NODEID ? tuple->name.mote
                                                    : (int32_t)(tuple->name.sequence & INT32_MAX);
        return true;
    }
    for (row_start(&column, question->of); row_next_column(&column);) {
        if (!(question->part.mask & column.bit))
            continue;
        const struct program_code *code = &column.field.code;
        bool reads = code->length == 2 && code->bytes[0] == WIRE_OP_ATTR;
        bool known = !(tuple->nulls >> i & 1);
        if (reads && code->bytes[1] == attribute) {
            *value = tuple->values[i];
            return known;
        }
        if (reads && code->bytes[1] == WIRE_ATTRIBUTE_EVENT_VALUE && known) {
            *value = tuple->values[i];
            said = true;
        }
        i++;
    }
    return said;
}

static const IN_FLASH struct vm_readers tuple_readers = {.attribute = read_tuple};

static void take_tuple(const struct asked *asked, struct looking *one, const struct tuple *tuple)
{
    const struct gather_question *question = &asked->question;
    struct eval_context context = {&tuple_readers, NULL, tuple->name.sequence,
                                   one->of_event ? &one->event : NULL};
    int32_t value;
    answering.question = question;
    answering.tuple = tuple;
    if (!indexed_kept(question->of, &question->index, tuple) ||
        !index_in_box(&question->index, &question->part, tuple, &asked->box) ||
        !index_taking_counts(question->index.index->index, tuple, one->asked) ||
        !index_giving_counts(&question->index, &question->part, tuple, &one->scan, one->asked) ||
        (question->where.length > 0 &&
         (!program_compute(&question->where, &context, &value) || value == 0)))
        return;
    for (uint8_t i = 0; i < question->gather->aggregates; i++) {
        const struct wire_gathered_kind *kind = &question->kinds[i];
        if (kind->attribute == ALL)
            gather_add(&one->cells[i], kind->aggregate, 0, 1);
        else if (read_tuple(kind->attribute, &value, &context))
            gather_add(&one->cells[i], kind->aggregate, value, 1);
    }
}

/* Looks on; false: not now any more. */
static bool look(const struct asked *asked, struct looking *one)
{
    struct tuple tuple;
    switch (tuples_scan_next(&one->scan, &tuple)) {
    case TUPLES_MET: take_tuple(asked, one, &tuple); return true;
    case TUPLES_END: one->looks = false; return false;
    default: return false;
    }
}

_Static_assert(sizeof(struct wire_gathered) +
                       WIRE_GATHERED_MAXIMUM * sizeof(struct wire_gathered_state) <=
                   WIRE_CARRIED_MAXIMUM,
               "a record");

static bool deliver(const struct query_entry *entry, const struct wire_gather *gather,
                    const struct looking *one)
{
    struct {
        struct wire_gathered record;
        struct wire_gathered_state states[WIRE_GATHERED_MAXIMUM];
    } __attribute__((packed)) told = {.record = {.carries = WIRE_CARRIES_GATHERED,
                                                 .query = entry->query,
                                                 .node = settings()->nodeid,
                                                 .epoch = one->name}};
    uint8_t count = gather->aggregates;
    uint8_t length = (uint8_t)(sizeof told.record + count * sizeof(struct wire_gathered_state));
    if (!clock_reached(clock_now(), one->told_from))
        return false;
    for (uint8_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)one->cells[i].value;
        told.states[i] = (struct wire_gathered_state){
            .low = (uint32_t)value, .high = (uint32_t)(value >> 32), .count = one->cells[i].count};
    }
    if (gather->mote == settings()->nodeid)
        return app_gathered((const uint8_t *)&told, length);
    struct place at = {gather->x, gather->y};
    struct way_route route = {.place = &at};
    return carried_send(gather->mote, &route, &told, length, INDEX_GIVEN_UP, WAY_EVERY_LEAST) ==
           CARRIED_WAITS;
}

static void step(void)
{
    struct asked asked;
    uint16_t pause = 0;
    for (struct looking *one = answering.looking; one < answering.looking + GATHERINGS; one++) {
        const struct query_entry *entry = one->query != 0 ? entry_of(one->query) : NULL;
        if (entry == NULL || !read_asked(entry, &asked)) {
            one->query = 0;
            continue;
        }
        while (one->looks && look(&asked, one)) {}
        if (!one->looks && deliver(entry, asked.question.gather, one)) {
            one->query = 0;
            continue;
        }
        if (pause == 0 || one->looks)
            pause = one->looks ? CLOCK_MS(INDEX_PAUSE_MS) : CLOCK_MS(GATHER_RETRY_MS);
    }
    if (pause > 0)
        timer_after(&answering.timer, pause, step);
}

void gather_answer_leave(const struct query_entry *entry)
{
    for (struct looking *one = answering.looking; one < answering.looking + GATHERINGS; one++)
        if (one->query == entry->query)
            one->query = 0;
}

bool gather_answers(void)
{
    for (const struct looking *one = answering.looking; one < answering.looking + GATHERINGS; one++)
        if (one->query != 0 && one->looks)
            return true;
    return false;
}

static void begin(const struct query_entry *entry, const struct gather_question *question,
                  uint32_t name)
{
    const struct tuples_box all = {
        .attributes = question->part.columns,
        .nulls = UINT8_MAX,
        .low = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN},
        .high = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    const struct wire_event *event = events_event(entry);
    struct looking *free = answering.looking;
    /* There is one for each query that a mote holds, and this one's has been left. */
    while (free->query != 0)
        if (++free == answering.looking + GATHERINGS)
            return;
    *free = (struct looking){
        .query = entry->query, .looks = true, .told_from = clock_now(), .name = name};
    uint32_t milliseconds;
    if (event != NULL || !entry_epoch_start(entry, entry->epoch, &free->asked, &milliseconds))
        free->asked = name;
    if (event != NULL) {
        free->of_event = true;
        free->event = *event;
        if (event->node != question->gather->mote)
            free->told_from += CLOCK_MS(GATHER_HEARD_MS);
    }
    tuples_scan_begin(&free->scan, INDEXED_NUMBER(question->gather->index), &all);
    timer_after(&answering.timer, CLOCK_MS(INDEX_PAUSE_MS), step);
}

void gather_answer(const struct query_entry *entry, uint32_t name)
{
    struct asked asked;
    gather_answer_leave(entry);
    if (read_asked(entry, &asked) && index_may_store(&asked.question.part, &asked.box))
        begin(entry, &asked.question, name);
}

#endif
