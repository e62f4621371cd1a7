/* What is asked of an index: motes that store its tuples look through what they have and send what
 * may match up the tree, a record at a time, while the queue has room. */
#include "board.h"
#include "net/app.h"

#ifdef BOARD_TUPLES

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "index/box.h"
#include "kernel/timer.h"
#include "net/transport/queue.h"
#include "query/operators/indexed.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"
#include "storage/tuples.h"

/* Behind a packet's header, a bundle's flags, and a record's type and length. */
#define BODY (WIRE_PACKET_MAXIMUM - sizeof(struct wire_header) - 3U)
#define RECORD_OVERHEAD 4U
/* Points are asked for by their highest 12 bits, so much of three bytes. */
#define POINT_BYTES 3U
#define POINT_SHIFT 4

static struct {
    struct timer timer;
    struct question {
        bool asked;
        uint16_t index;
        struct index_box box;
        struct tuples_scan scan;
        uint8_t used; /* bytes of the record that is being filled */
        union {
            struct wire_stored record;
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

static bool asks(const struct question *question, const struct indexed *index,
                 const struct tuple *tuple)
{
    for (uint8_t i = 0; i < index->columns; i++) {
        uint16_t point = indexed_point(index, i, tuple->values[i], tuple->nulls >> i & 1);
        if (point < question->box.low[i] || point > question->box.high[i])
            return false;
    }
    return true;
}

/* As in a wire_index_tuple, from its node on. */
static void add(struct question *question, const struct query_entry *entry,
                const struct tuple *tuple)
{
    struct row_column column;
    uint8_t i = 0;
    fill(question, &tuple->name.mote, sizeof tuple->name.mote);
    fill(question, &tuple->name.session, sizeof tuple->name.session);
    fill(question, &tuple->name.sequence, sizeof tuple->name.sequence);
    fill(question, &tuple->nulls, sizeof tuple->nulls);
    for (row_start(&column, entry); row_next_column(&column);)
        fill(question, &tuple->values[i++], column.size);
}

static void send(struct question *question)
{
    queue_push(WIRE_PACKET_STORED, question->bytes, question->used);
    question->record.part++;
    question->used = sizeof question->record;
}

/* Looks on, and sends a record at most; false: not now any more. */
static bool look(struct question *question)
{
    struct indexed index;
    struct tuple tuple;
    const struct query_entry *entry = indexed_find(question->index, &index);
    if (entry == NULL) {
        question->asked = false;
        return false;
    }
    uint8_t one = (uint8_t)(sizeof(struct wire_index_tuple) -
                            offsetof(struct wire_index_tuple, node) + index.width);
    for (;;)
        switch (tuples_scan_next(&question->scan, &tuple)) {
        case TUPLES_MORE: return false;
        case TUPLES_END:
            question->record.last = 1;
            question->asked = false;
            send(question);
            return false;
        case TUPLES_MET:
            if (!asks(question, &index, &tuple))
                break;
            add(question, entry, &tuple);
            if (question->used + one <= BODY)
                break;
            send(question);
            return true;
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

/* Points from the highest bits of the least and the greatest. */
static bool read_box(const uint8_t *bounds, uint8_t length, uint8_t columns, struct index_box *box)
{
    if (length != columns * POINT_BYTES)
        return false;
    box->attributes = columns;
    for (uint8_t i = 0; i < columns; i++, bounds += POINT_BYTES) {
        uint16_t low = (uint16_t)(bounds[0] | (bounds[1] & 0x0FU) << 8);
        uint16_t high = (uint16_t)(bounds[1] >> 4 | bounds[2] << 4);
        box->low[i] = (uint16_t)(low << POINT_SHIFT);
        box->high[i] = (uint16_t)((unsigned)high << POINT_SHIFT | ((1U << POINT_SHIFT) - 1U));
    }
    return true;
}

/* What this mote owns; false: it does not store. */
static bool owns(const struct indexed *index, struct zone_owned *owned)
{
    bool stores = false;
    for (uint8_t i = 0; i < index->owner_count; i++)
        if (index->owners[i].node == settings()->nodeid) {
            zone_own_all(owned, index->owners[i].code);
            stores = true;
        }
    for (uint8_t i = 0; stores && i < index->owner_count; i++)
        (void)zone_leave(owned, index->owners[i].code);
    return stores;
}

static void ask(uint16_t token, uint16_t number, const uint8_t *bounds, uint8_t length)
{
    struct indexed index;
    struct zone_owned owned;
    struct index_box box;
    struct question *question = answering.questions;
    if (indexed_find(number, &index) == NULL || !owns(&index, &owned) ||
        !read_box(bounds, length, index.columns, &box) || !index_asks_owner(&box, &owned))
        return;
    while (question->asked)
        if (++question == answering.questions + INDEX_QUESTIONS)
            return; /* Who asks will ask again. */
    const struct tuples_box all = {
        .attributes = index.columns,
        .nulls = UINT8_MAX,
        .low = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN},
        .high = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    *question = (struct question){.asked = true, .index = number, .box = box};
    question->record =
        (struct wire_stored){.node = settings()->nodeid, .token = token, .part = 0, .last = 0};
    question->used = sizeof question->record;
    tuples_scan_begin(&question->scan, number, &all);
    later();
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
