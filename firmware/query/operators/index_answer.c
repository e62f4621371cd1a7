/* What is asked of an index: motes that store its tuples look through what they have and send what
 * may match up the tree, a record at a time, while the queue has room; or states of aggregates over
 * it, one record in all, which may be put together with others' on the way, or as many as its
 * groups take. */
#include "query/operators/index_answer.h"

#include "board.h"
#include "net/app.h"
#include "net/mac/time.h"

#ifdef BOARD_TUPLES

#include <string.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "net/transport/queue.h"
#include "query/operators/index_groups.h"
#include "query/operators/index_program.h"
#include "query/operators/index_states.h"
#include "query/operators/index_taking.h"
#include "query/operators/index_zone.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* Behind a packet's header, a bundle's flags, and a record's type and length. */
#define BODY (WIRE_PACKET_MAXIMUM - sizeof(struct wire_header) - 3U)
#define RECORD_OVERHEAD 4U
/* Bytes behind them: of epochs, and those that name motes at most. */
#define EPOCH_BYTES 6U
#define MOTES_MAXIMUM 16U
/* In place of a part: states are asked for. A byte says of which part, by group or not, and of how
 * many aggregates. Of these a byte each: the aggregate, and the place of its attribute among those
 * of the part, or that it is COUNT(*). */
#define STATES 7U
#define STATES_PART 0x07U
#define STATES_GROUPED 0x08U
#define KIND_SHIFT 4
#define KIND_ALL 0x0FU
/* Groups are of such an attribute, or of what a tuple's name says. */
#define GROUP_MOTE 14U
#define GROUP_EPOCH 13U

static struct {
    struct timer timer;
    struct question {
        bool asked;
        uint16_t index;
        uint8_t part;
        struct index_box box;
        struct {
            uint32_t first; /* epochs from this one on, … */
            uint16_t more;  /* … so many behind it; UINT16_MAX: all */
            uint8_t bits;   /* of motes, by their number modulo this; 0: all */
            uint8_t motes[MOTES_MAXIMUM];
        } names;
        bool grouped;
        uint8_t group;                        /* … by this */
        bool sends, ended;                    /* … and groups are sent; all tuples are in them */
        uint8_t aggregates;                   /* whose states are asked for; 0: tuples are */
        uint8_t kinds[WIRE_GATHERED_MAXIMUM]; /* as an INDEX_ASK has them */
        struct tuples_scan scan;
        uint8_t used; /* bytes of the record that is being filled */
        union {
            struct wire_stored record; /* of tuples, or of groups; else … */
            struct wire_states states;
            uint8_t bytes[BODY];
        };
    } questions[INDEX_QUESTIONS];
    struct {
        bool waits;
        uint16_t index;
    } drop; /* that flash was too busy for */
} answering;

static void step(void);

static void later(void) { timer_after(&answering.timer, CLOCK_MS(INDEX_PAUSE_MS), step); }

static void fill(struct question *question, const void *bytes, uint8_t length)
{
    memcpy(question->bytes + question->used, bytes, length);
    question->used = (uint8_t)(question->used + length);
}

static bool asks_name(const struct question *question, const struct tuple_name *name)
{
    uint8_t bits = question->names.bits;
    uint8_t mote = 0;
    if (bits)
        mote = (uint8_t)(name->mote % bits);
    return name->sequence >= question->names.first &&
           (question->names.more == UINT16_MAX ||
            name->sequence - question->names.first <= question->names.more) &&
           (!bits || question->names.motes[mote / 8] >> mote % 8 & 1);
}

static void add(struct question *question, const struct query_entry *entry,
                const struct indexed_part *part, const struct tuple *tuple)
{
    struct row_column column;
    uint8_t i = 0;
    fill(question, &tuple->name.mote, sizeof tuple->name.mote);
    fill(question, &tuple->name.session, sizeof tuple->name.session);
    fill(question, &tuple->name.sequence, sizeof tuple->name.sequence);
    fill(question, &tuple->nulls, sizeof tuple->nulls);
    for (row_start(&column, entry); row_next_column(&column);)
        if (part->mask & column.bit)
            fill(question, &tuple->values[i++], column.size);
}

static void send(struct question *question)
{
    queue_push(WIRE_PACKET_STORED, question->bytes, question->used);
    question->record.part++;
    question->used = sizeof question->record;
}

/* A tuple's attribute by its place in the part; false: NULL, or there is no such. */
static bool attribute_of(const struct tuple *tuple, uint8_t place, int32_t *value)
{
    if (place >= tuple->attributes || tuple->nulls >> place & 1)
        return false;
    *value = tuple->values[place];
    return true;
}

static int32_t key_of(const struct question *question, const struct tuple *tuple)
{
    int32_t key;
    switch (question->group) {
    case GROUP_MOTE: return tuple->name.mote;
    case GROUP_EPOCH: return (int32_t)tuple->name.sequence;
    default: return attribute_of(tuple, question->group, &key) ? key : INDEX_GROUPS_NULL;
    }
}

/* Adds a tuple to the states, which the record has, or to those of its group: not where another
 * mote still counts it. False: some groups have to be sent first. */
static bool count(struct question *question, const struct tuple *tuple)
{
    if (!index_taking_counts(question->index, tuple, time_at(clock_now()).seconds))
        return true;
    struct index_grouped found[WIRE_GATHERED_MAXIMUM];
    for (uint8_t i = 0; i < question->aggregates; i++) {
        uint8_t place = question->kinds[i] & KIND_ALL;
        found[i] = (struct index_grouped){.aggregate = question->kinds[i] >> KIND_SHIFT,
                                          .known = place == KIND_ALL};
        if (!found[i].known)
            found[i].known = attribute_of(tuple, place, &found[i].value);
        if (found[i].aggregate == WIRE_AGGREGATE_COUNT)
            found[i].value = 0; /* what it is of is not added up */
    }
    if (question->grouped)
        return index_groups_add(key_of(question, tuple), found);
    struct gather_cell *cells = index_states_cells(&question->states);
    for (uint8_t i = 0; i < question->aggregates; i++)
        if (found[i].known)
            gather_add(&cells[i], found[i].aggregate, found[i].value, 1);
    return true;
}

/* Sends a record of groups; false: it was the last one. */
static bool send_groups(struct question *question)
{
    question->used =
        (uint8_t)(question->used + index_groups_move(question->bytes + question->used,
                                                     (uint8_t)(BODY - question->used)));
    question->sends = index_groups_left();
    if (question->ended && !question->sends) {
        question->record.last = 1;
        question->asked = false;
        index_groups_free(question);
    }
    send(question);
    return question->asked;
}

/* Looks on, and sends a record at most; false: not now any more. */
static bool look(struct question *question)
{
    struct indexed index;
    struct indexed_part part;
    struct tuple tuple;
    const struct query_entry *entry = indexed_find(question->index, &index);
    if (entry == NULL || question->part >= index.index->parts) {
        question->asked = false;
        index_groups_free(question);
        return false;
    }
    if (question->grouped && !index_groups_take(question, question->aggregates))
        return false;
    if (question->sends)
        return send_groups(question);
    indexed_part(entry, &index, question->part, &part);
    uint8_t one = (uint8_t)(sizeof tuple.name + sizeof tuple.nulls + part.width);
    for (;;) {
        uint32_t page = question->scan.page;
        uint16_t word = question->scan.word;
        switch (tuples_scan_next(&question->scan, &tuple)) {
        case TUPLES_MORE: return false;
        case TUPLES_END:
            if (question->grouped) {
                question->ended = question->sends = true;
                return true;
            }
            question->asked = false;
            if (question->aggregates > 0) {
                queue_push(WIRE_PACKET_STATES, question->bytes, question->used);
                return false;
            }
            question->record.last = 1;
            send(question);
            return false;
        case TUPLES_MET:
            if (!asks_name(question, &tuple.name) || !indexed_kept(entry, &index, &tuple) ||
                !index_in_box(&index, &part, &tuple, &question->box))
                break;
            if (question->aggregates > 0) {
                if (count(question, &tuple))
                    break;
                question->scan.page = page;
                question->scan.word = word;
                question->sends = true;
                return true;
            }
            add(question, entry, &part, &tuple);
            if (question->used + one <= BODY)
                break;
            send(question);
            return true;
        }
    }
}

static void step(void)
{
    bool more = false;
    if (answering.drop.waits) {
        answering.drop.waits = !tuples_drop(answering.drop.index);
        more = answering.drop.waits;
    }
    for (struct question *question = answering.questions;
         question < answering.questions + INDEX_QUESTIONS; question++) {
        while (question->asked && queue_room() >= INDEX_QUEUE_RESERVE + RECORD_OVERHEAD + BODY &&
               look(question)) {}
        more = more || question->asked;
    }
    if (more)
        later();
}

/* Which tuples, by their names, as far as that is said. */
static bool read_names(const uint8_t *bytes, uint8_t length, struct question *question)
{
    question->names.more = UINT16_MAX;
    if (length == 0)
        return true;
    if (length < EPOCH_BYTES || length > EPOCH_BYTES + MOTES_MAXIMUM)
        return false;
    memcpy(&question->names.first, bytes, sizeof question->names.first);
    memcpy(&question->names.more, bytes + sizeof question->names.first,
           sizeof question->names.more);
    question->names.bits = (uint8_t)(8 * (length - EPOCH_BYTES));
    memcpy(question->names.motes, bytes + EPOCH_BYTES, (size_t)(length - EPOCH_BYTES));
    return true;
}

/* What the box and the names are of a question for tuples; false: malformed. */
static bool read_tuples(const uint8_t *bytes, uint8_t length, const struct indexed_part *part,
                        struct question *asked)
{
    uint8_t bounds = (uint8_t)(part->columns * INDEX_BOUNDS_BYTES);
    if (length < bounds || !read_names(bytes + bounds, (uint8_t)(length - bounds), asked))
        return false;
    index_read_bounds(bytes, part->columns, &asked->box);
    return true;
}

/* Likewise of one for states, behind the byte that says which part and how many. */
static bool read_states(const uint8_t *bytes, uint8_t length, const struct indexed_part *part,
                        struct question *asked)
{
    if (length < 1U + asked->grouped)
        return false;
    uint8_t limited = *bytes++;
    length--;
    if (asked->grouped) {
        asked->group = *bytes++;
        length--;
    }
    if (length < asked->aggregates)
        return false;
    memcpy(asked->kinds, bytes, asked->aggregates);
    bytes += asked->aggregates;
    length = (uint8_t)(length - asked->aggregates);
    index_box_all(&asked->box, part->columns);
    for (uint8_t i = 0; i < part->columns; i++) {
        if (!(limited >> i & 1))
            continue;
        if (length < 2 * sizeof(uint16_t))
            return false;
        memcpy(&asked->box.low[i], bytes, sizeof(uint16_t));
        memcpy(&asked->box.high[i], bytes + sizeof(uint16_t), sizeof(uint16_t));
        bytes += 2 * sizeof(uint16_t);
        length = (uint8_t)(length - 2 * sizeof(uint16_t));
    }
    return read_names(bytes, length, asked);
}

static void begin(const struct question *asked, uint16_t token, const struct indexed_part *part)
{
    struct question *question = answering.questions;
    while (question->asked)
        if (++question == answering.questions + INDEX_QUESTIONS)
            return; /* Who asks will ask again. */
    const struct tuples_box all = {
        .attributes = part->columns,
        .nulls = UINT8_MAX,
        .low = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN},
        .high = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    *question = *asked;
    if (asked->aggregates > 0 && !asked->grouped) {
        uint8_t kinds[WIRE_GATHERED_MAXIMUM];
        for (uint8_t i = 0; i < asked->aggregates; i++)
            kinds[i] = asked->kinds[i] >> KIND_SHIFT;
        question->used = index_states_begin(&question->states, token, settings()->nodeid,
                                            asked->aggregates, kinds);
    } else {
        question->record =
            (struct wire_stored){.node = settings()->nodeid, .token = token, .part = 0, .last = 0};
        question->used = sizeof question->record;
    }
    tuples_scan_begin(&question->scan, asked->index, &all);
    later();
}

static void ask(uint16_t token, uint16_t which, const uint8_t *bytes, uint8_t length)
{
    struct indexed index;
    struct indexed_part part;
    struct question asked = {.asked = true,
                             .index = INDEXED_NUMBER(which),
                             .part = (uint8_t)(which >> INDEXED_PART_SHIFT)};
    const struct query_entry *entry = indexed_find(asked.index, &index);
    bool states = asked.part == STATES;
    if (states) {
        if (length == 0)
            return;
        asked.part = *bytes & STATES_PART;
        asked.grouped = (*bytes & STATES_GROUPED) != 0;
        asked.aggregates = *bytes >> 4;
        if (asked.aggregates == 0 || asked.aggregates > WIRE_GATHERED_MAXIMUM)
            return;
        bytes++;
        length--;
    }
    if (entry == NULL || asked.part >= index.index->parts)
        return;
    indexed_part(entry, &index, asked.part, &part);
    bool sound = states ? read_states(bytes, length, &part, &asked)
                        : read_tuples(bytes, length, &part, &asked);
    if (sound && index_may_store(&part, &asked.box))
        begin(&asked, token, &part);
}

bool index_answers(void)
{
    for (uint8_t i = 0; i < INDEX_QUESTIONS; i++)
        if (answering.questions[i].asked)
            return true;
    return false;
}

void app_index_command(const struct wire_command *command, uint8_t arguments)
{
    uint16_t index;
    if (arguments < sizeof index)
        return;
    memcpy(&index, command->arguments, sizeof index);
    if (command->op == WIRE_COMMAND_INDEX_ASK) {
        if (command->target == WIRE_BROADCAST || command->target == settings()->nodeid)
            ask(command->token, index, command->arguments + sizeof index,
                (uint8_t)(arguments - sizeof index));
        return;
    }
    answering.drop.index = index;
    answering.drop.waits = true;
    later();
}

#else

void app_index_command(const struct wire_command *command, uint8_t arguments)
{
    (void)command, (void)arguments;
}

#endif
