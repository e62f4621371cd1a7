#include "query/operators/index_taking.h"

#ifdef BOARD_TUPLES

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/transport/carried.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/operators/index_zone.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"

/* Of HandedTuples: the record that says that a batch is over, and what the last of a run has. */
#define OVER 8U
#define LAST 0x80U

/* Batches that come, one of each giver and index. */
static struct giver {
    bool used, owes, last; /* `owes` it what has come; its run's last record has */
    bool over;             /* it has told when this mote counts the batch */
    uint8_t run;
    uint16_t index; /* with the part */
    uint16_t node, batch;
    uint16_t records; /* as a Kept has them */
    uint16_t number;  /* of the batch here */
    uint32_t heard;   /* network second of the last record, … */
    uint32_t owed;    /* … of the first that is not acknowledged, … */
    uint32_t from;    /* … and from which this mote counts the batch */
} givers[TAKING_GIVERS];

static uint16_t last_number;

static uint32_t now(void) { return time_at(clock_now()).seconds; }

/* Whether this mote counts the batch in what is asked in that second. A giver that was lost says
 * nothing more; where the network's time has begun anew all is long ago. */
static bool counts(const struct giver *giver, uint32_t asked)
{
    int32_t ago = (int32_t)(asked - (giver->over ? giver->from : giver->heard + TAKING_SILENT));
    return ago >= 0 || ago < -(int32_t)(2 * TAKING_SILENT);
}

static struct giver *giver_of(uint16_t node, uint16_t index)
{
    struct giver *free = NULL;
    for (struct giver *giver = givers; giver < givers + TAKING_GIVERS; giver++) {
        if (giver->used && giver->node == node && giver->index == index)
            return giver;
        if (!giver->used || (!giver->owes && counts(giver, now())))
            free = giver;
    }
    if (free != NULL)
        *free =
            (struct giver){.used = true, .node = node, .index = index, .from = now(), .over = true};
    return free;
}

/* Another batch of the giver's. One that is not counted here yet is given anew, as its giver has
 * started again: all of it is counted from the same second on. */
static void begin(struct giver *giver, const struct wire_handed_tuples *head)
{
    if (giver->number == 0 || counts(giver, now())) {
        last_number = (uint16_t)((last_number ? last_number : random_bits()) % TUPLES_BATCHES + 1);
        giver->number = last_number;
    }
    giver->batch = head->batch;
    giver->run = head->run;
    giver->records = 0;
    giver->over = false;
}

/* ---- records ---- */

/* Stores the tuples of a record; false: not all of them. */
static bool store(const struct query_entry *entry, const struct indexed_part *part,
                  const struct indexed *index, const struct zone_owned *owned,
                  const struct wire_handed_tuples *head, uint8_t length, uint16_t number)
{
    uint8_t one = (uint8_t)(sizeof(struct wire_handed_tuple) + part->width);
    bool all = true;
    for (const uint8_t *at = head->tuples; at < (const uint8_t *)head + length; at += one) {
        const struct wire_handed_tuple *given = (const struct wire_handed_tuple *)at;
        uint32_t epoch = head->epoch + given->epochs - (given->epochs > INT8_MAX ? 256U : 0U);
        struct tuple tuple = {.name = {given->node, head->session, epoch},
                              .batch = number,
                              .attributes = part->columns,
                              .nulls = given->nulls & (uint8_t)((1U << part->columns) - 1U)};
        const uint8_t *value = given->values;
        struct row_column column;
        uint8_t i = 0;
        for (row_start(&column, entry); row_next_column(&column);)
            if (part->mask & column.bit) {
                tuple.values[i++] = row_unpack(value, column.field.format);
                value += column.size;
            }
        /* Its giver may know owners that this mote does not know yet, or does not any more. */
        if (!zone_owns(owned, index_tuple_code(index, part, &tuple)))
            all = false;
        else {
            enum tuples_put put = tuples_append(index->index->index, &tuple);
            all = all && (put == TUPLES_STORED || put == TUPLES_KNOWN);
        }
    }
    return all;
}

bool app_handed(uint16_t origin, const uint8_t *record, uint8_t length)
{
    const struct wire_handed_tuples *head = (const struct wire_handed_tuples *)record;
    struct indexed index;
    struct indexed_part part;
    struct zone_owned owned;
    if (length < sizeof *head)
        return false;
    const struct query_entry *entry = indexed_find(INDEXED_NUMBER(head->index), &index);
    uint8_t number = (uint8_t)(head->index >> INDEXED_PART_SHIFT);
    uint8_t place = head->record & (uint8_t)~LAST;
    if (entry == NULL || number >= index.index->parts || place > OVER ||
        (place == OVER) != (length == sizeof *head))
        return false;
    indexed_part(entry, &index, number, &part);
    if ((length - sizeof *head) % (sizeof(struct wire_handed_tuple) + part.width) != 0)
        return false;
    /* What is not stored is not acknowledged: it comes again. */
    struct giver *giver = index_owned(&part, &owned) ? giver_of(origin, head->index) : NULL;
    if (giver == NULL)
        return true;
    if (giver->batch != head->batch || giver->number == 0)
        begin(giver, head);
    if ((int8_t)(head->run - giver->run) < 0)
        return true;
    if (giver->run != head->run) {
        giver->run = head->run;
        giver->records = 0;
    }
    giver->heard = now();
    if (place == OVER) {
        giver->from = head->epoch;
        giver->over = true;
    } else if (!store(entry, &part, &index, &owned, head, length, giver->number))
        return true;
    giver->records |= (uint16_t)(1U << place);
    if (!giver->owes)
        giver->owed = giver->heard;
    giver->owes = true;
    giver->last = giver->last || head->record & LAST;
    return true;
}

/* ---- acknowledgements ---- */

/* Where a mote stands that gives; false: nobody says so. */
static bool find_place(uint16_t node, uint16_t number, struct place *place)
{
    struct indexed index;
    struct indexed_part part;
    const struct query_entry *entry = indexed_find(INDEXED_NUMBER(number), &index);
    if (entry == NULL || number >> INDEXED_PART_SHIFT >= index.index->parts)
        return false;
    indexed_part(entry, &index, (uint8_t)(number >> INDEXED_PART_SHIFT), &part);
    /* Where it was added last is where it stands. */
    bool found = false;
    for (uint8_t i = 0; i < part.owner_count; i++)
        if (part.owners[i].node == node) {
            *place = (struct place){part.owners[i].x, part.owners[i].y};
            found = true;
        }
    return found;
}

static void answer(struct giver *giver)
{
    struct place at;
    struct way_route route = {.place = &at};
    const struct way_route *by = find_place(giver->node, giver->index, &at) ? &route : NULL;
    const struct wire_kept kept = {.carries = WIRE_CARRIES_KEPT,
                                   .index = giver->index,
                                   .batch = giver->batch,
                                   .run = giver->run,
                                   .records = giver->records};
    struct way *way = way_to(giver->node, by, WAY_EVERY_LEAST);
    if (way == NULL || (by != NULL && !way->ready) || way_has_records(way))
        return;
    if (carried_send(giver->node, by, &kept, sizeof kept, INDEX_SECONDS, WAY_EVERY_LEAST) ==
        CARRIED_WAITS)
        giver->owes = giver->last = false;
}

void index_taking_due(void)
{
    if (!time_known())
        return;
    for (struct giver *giver = givers; giver < givers + TAKING_GIVERS; giver++) {
        uint32_t waited = now() - giver->owed;
        if (!giver->used || !giver->owes)
            continue;
        if (waited > TAKING_UNHEARD)
            giver->owes = giver->last = false; /* It comes again. */
        else if (giver->last || waited >= TAKING_ANSWERED)
            answer(giver);
    }
}

bool index_taking_counts(uint16_t index, const struct tuple *tuple, uint32_t asked)
{
    for (const struct giver *giver = givers; giver < givers + TAKING_GIVERS; giver++)
        if (giver->used && giver->number == tuple->batch && tuple->batch != 0 &&
            INDEXED_NUMBER(giver->index) == index && !counts(giver, asked))
            return false;
    return true;
}

#endif
