/* One batch at a time: runs of records, each acknowledged as a whole, then the second from which
 * states count its tuples over there, then a while in which a question finds them here and there,
 * as not all motes hear of it at once, and then they are forgotten. A batch is what a stretch of
 * the log has of one owner's: nothing else need be known of it, and where the mote starts again it
 * begins anew, with what has not been forgotten. */
#include "query/operators/index_giving.h"

#ifdef BOARD_TUPLES

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/routing/tree.h"
#include "net/transport/carried.h"
#include "net/transport/transport_conf.h"
#include "net/transport/way_table.h"
#include "query/operators/index_view.h"
#include "query/operators/index_zone.h"
#include "query/operators/indexed.h"
#include "query/program/row_layout.h"
#include "query/query_conf.h"

/* Records of a run, and the one that says that the batch is over. */
#define RECORDS 8U
#define OVER RECORDS
#define LAST 0x80U
/* Runs of a batch at most: where the mote starts again it gives so many anew. */
#define RUNS 8U

/* A place of the log. */
struct mark {
    uint32_t page;
    uint16_t word;
};

static struct {
    struct timer timer;
    enum phase {
        RESTING,  /* nothing is to be given */
        LOOKING,  /* for a tuple of another's */
        FILLING,  /* a record */
        SENDING,  /* it, once its way leads there */
        AWAITING, /* what its receiver says */
        HOLDING,  /* what has been given */
        FORGETTING
    } phase;
    uint8_t place; /* of the index in `followed` */
    struct tuples_scan scan;
    uint32_t silent; /* bit i: the program's owner i has not answered of late */
    /* the batch */
    uint16_t owner; /* its place among the owners of the part */
    uint16_t to, batch;
    struct mark begins;
    uint32_t until; /* network second in which the phase is over, or states count it over there */
    /* the run */
    uint8_t run, count; /* of its records, as far as they are known */
    bool ends;          /* there is nothing behind them */
    uint8_t tries, postponed;
    uint16_t kept; /* bit i: record i is stored over there */
    struct mark marks[RECORDS + 1];
    /* the record */
    uint8_t record, length;
    union {
        struct wire_handed_tuples head;
        uint8_t bytes[WIRE_CARRIED_MAXIMUM];
    };
    /* Of each index that this mote has tuples of: as it was looked through last. */
    struct {
        uint16_t index;
        uint8_t revision;
        bool known, done, own; /* `own`: all that it has are this mote's */
        uint32_t from;         /* network second from which it is looked through */
    } followed[TUPLES_INDEXES];
} giving;

static uint32_t now(void) { return time_at(clock_now()).seconds; }
static bool reached(uint32_t second) { return (int32_t)(now() - second) >= 0; }

static struct mark here(void) { return (struct mark){giving.scan.page, giving.scan.word}; }

static bool before(const struct mark *a, const struct mark *b)
{
    return a->page < b->page || (a->page == b->page && a->word < b->word);
}

/* False: it is not known any more, or its owners have changed since. */
static bool find_view(struct index_view *view)
{
    return index_view_find(giving.followed[giving.place].index, view) &&
           view->index.index->revision == giving.followed[giving.place].revision;
}

/* ---- scanning ---- */

static void scan_from(const struct index_view *view, const struct mark *mark)
{
    const struct tuples_box all = {
        .attributes = view->part.columns,
        .nulls = UINT8_MAX,
        .low = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN},
        .high = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
    tuples_scan_begin(&giving.scan, giving.followed[giving.place].index, &all);
    if (mark != NULL) {
        giving.scan.page = mark->page;
        giving.scan.word = mark->word;
    }
}

/* From the first tuple on. */
static void look_again(const struct index_view *view)
{
    giving.phase = LOOKING;
    scan_from(view, NULL);
}

static void fill_from(const struct index_view *view, uint8_t record)
{
    giving.phase = FILLING;
    giving.record = record;
    giving.length = sizeof giving.head;
    scan_from(view, &giving.marks[record]);
}

static void begin_run(const struct index_view *view, struct mark from)
{
    giving.marks[0] = from;
    giving.count = giving.tries = giving.postponed = 0;
    giving.ends = false;
    giving.kept = 0;
    fill_from(view, 0);
}

static void rest(bool done, bool own)
{
    giving.phase = RESTING;
    giving.followed[giving.place].done = done;
    giving.followed[giving.place].own = own;
    giving.followed[giving.place].from = now() + GIVING_AGAIN;
}

/* What a batch needs of a tuple that it begins with. */
static void begin_batch(const struct index_view *view, const struct wire_index_owner *owner,
                        struct mark from)
{
    giving.owner = (uint16_t)(owner - view->part.owners);
    giving.to = owner->node;
    giving.batch = random_bits();
    giving.begins = from;
    giving.run = 0;
    begin_run(view, from);
}

/* False: nothing more is to be done at once. */
static bool look(const struct index_view *view)
{
    struct tuple tuple;
    struct mark from = here();
    switch (tuples_scan_next(&giving.scan, &tuple)) {
    case TUPLES_MET: {
        const struct wire_index_owner *owner = index_view_owner(view, &tuple);
        if (owner != NULL && !(giving.silent >> (owner - view->part.owners) & 1))
            begin_batch(view, owner, from);
        return true;
    }
    case TUPLES_MORE: return true;
    default: rest(giving.silent == 0, giving.silent == 0); return false;
    }
}

/* ---- records ---- */

/* Adds a tuple; false: there is no room, or it does not fit to the others. */
static bool add(const struct index_view *view, const struct tuple *tuple)
{
    struct wire_handed_tuples *head = &giving.head;
    struct row_column column;
    uint8_t i = 0;
    if (giving.length == sizeof *head)
        *head = (struct wire_handed_tuples){
            .carries = WIRE_CARRIES_HANDED,
            .index = (uint16_t)(view->index.index->index | (uint16_t)view->part.number
                                                               << INDEXED_PART_SHIFT),
            .batch = giving.batch,
            .run = giving.run,
            .record = giving.record,
            .session = tuple->name.session,
            .epoch = tuple->name.sequence};
    uint32_t epochs = tuple->name.sequence - head->epoch;
    if (giving.length + sizeof(struct wire_handed_tuple) + view->part.width > sizeof giving.bytes ||
        tuple->name.session != head->session || epochs != (uint32_t)(int32_t)(int8_t)epochs)
        return false;
    struct wire_handed_tuple *one = (struct wire_handed_tuple *)(giving.bytes + giving.length);
    uint8_t *at = one->values;
    one->node = tuple->name.mote;
    one->epochs = (uint8_t)epochs;
    one->nulls = tuple->nulls;
    for (row_start(&column, view->entry); row_next_column(&column);)
        if (view->part.mask & column.bit) {
            memcpy(at, &tuple->values[i++], column.size);
            at += column.size;
        }
    giving.length = (uint8_t)(at - giving.bytes);
    return true;
}

/* The record is filled up to here. */
static void filled(bool ends)
{
    if (giving.record == giving.count) {
        giving.ends = ends;
        if (giving.length > sizeof giving.head)
            giving.marks[++giving.count] = here();
    }
    giving.phase = SENDING;
}

static bool fill(const struct index_view *view)
{
    struct tuple tuple;
    struct mark from = here();
    if (giving.record < giving.count && !before(&from, &giving.marks[giving.record + 1])) {
        filled(false);
        return true;
    }
    switch (tuples_scan_next(&giving.scan, &tuple)) {
    case TUPLES_MET: {
        const struct wire_index_owner *owner = index_view_owner(view, &tuple);
        if (owner == NULL || owner->node != giving.to || add(view, &tuple))
            return true;
        /* It is the next record's first. */
        giving.scan.page = from.page;
        giving.scan.word = from.word;
        filled(false);
        return true;
    }
    case TUPLES_MORE: return true;
    default: filled(true); return true;
    }
}

static bool run_is_filled(void) { return giving.ends || giving.count == RECORDS; }
static uint16_t all_of_run(void)
{
    return (uint16_t)(giving.record == OVER ? 1U << OVER : (1U << giving.count) - 1U);
}

/* The next record of the run that is not stored over there; when all have gone, it is waited for
 * what their receiver says. */
static void next_record(const struct index_view *view)
{
    uint8_t next = giving.record;
    do
        next++;
    while (next < giving.count && giving.kept >> next & 1);
    if (giving.record != OVER && (next < giving.count || !run_is_filled())) {
        fill_from(view, next);
        return;
    }
    giving.phase = AWAITING;
    giving.until = now() + GIVING_AWAITED;
}

/* The batch is over: from a second on that is told its receiver counts its tuples. */
static void tell_over(const struct index_view *view)
{
    giving.until = now() + GIVING_HELD;
    giving.head = (struct wire_handed_tuples){
        .carries = WIRE_CARRIES_HANDED,
        .index = (uint16_t)(view->index.index->index | (uint16_t)view->part.number
                                                           << INDEXED_PART_SHIFT),
        .batch = giving.batch,
        .run = giving.run,
        .record = OVER,
        .session = tree_session(),
        .epoch = giving.until};
    giving.record = OVER;
    giving.length = sizeof giving.head;
    giving.phase = SENDING;
}

static void send(const struct index_view *view)
{
    const struct wire_index_owner *owner = &view->part.owners[giving.owner];
    struct place at = {owner->x, owner->y};
    struct way_route route = {.place = &at};
    bool is_empty = giving.record != OVER && giving.length == sizeof giving.head;
    if (is_empty) {
        giving.kept |= (uint16_t)(1U << giving.record);
        next_record(view);
        return;
    }
    /* What is inserted goes first. */
    if (indexed_waits() && ++giving.postponed < GIVING_POSTPONED)
        return;
    struct way *way = way_to(owner->node, &route, WAY_EVERY_LEAST);
    if (way == NULL || !way->ready || way_has_records(way))
        return;
    if (giving.record == OVER || (run_is_filled() && giving.record + 1 == giving.count))
        giving.head.record |= LAST;
    if (carried_send(owner->node, &route, giving.bytes, giving.length, INDEX_SECONDS,
                     WAY_EVERY_LEAST) != CARRIED_WAITS)
        return;
    giving.postponed = 0;
    next_record(view);
}

/* ---- what is said of them ---- */

static void await(const struct index_view *view)
{
    if ((giving.kept & all_of_run()) == all_of_run()) {
        if (giving.record == OVER) {
            giving.phase = HOLDING;
            giving.until = giving.head.epoch;
        } else if (giving.ends || giving.run + 1U == RUNS) {
            giving.tries = 0;
            tell_over(view);
        } else {
            giving.run++;
            begin_run(view, giving.marks[giving.count]);
        }
        return;
    }
    if (!reached(giving.until))
        return;
    if (++giving.tries == GIVING_TRIES) {
        giving.silent |= (uint32_t)1 << giving.owner;
        look_again(view);
    } else if (giving.record == OVER)
        tell_over(view);
    else {
        uint8_t first = 0;
        while (giving.kept >> first & 1)
            first++;
        fill_from(view, first);
    }
}

static struct mark batch_end(void) { return giving.marks[giving.count]; }

bool app_kept(uint16_t origin, const uint8_t *record, uint8_t length)
{
    const struct wire_kept *kept = (const struct wire_kept *)record;
    if (length != sizeof *kept)
        return false;
    bool sends = giving.phase == FILLING || giving.phase == SENDING || giving.phase == AWAITING;
    if (!sends || origin != giving.to || kept->batch != giving.batch || kept->run != giving.run ||
        INDEXED_NUMBER(kept->index) != giving.followed[giving.place].index)
        return true; /* It comes late. */
    giving.kept |= kept->records & all_of_run();
    return true;
}

/* What is asked has been asked everywhere by now. */
static void hold(const struct index_view *view)
{
    if (!reached(giving.until + GIVING_HEARD))
        return;
    giving.phase = FORGETTING;
    scan_from(view, &giving.begins);
}

static void forget(const struct index_view *view)
{
    struct tuple tuple;
    struct mark end = batch_end();
    enum tuples_met met = tuples_scan_next(&giving.scan, &tuple);
    struct mark at = here();
    if (met == TUPLES_END || before(&end, &at)) {
        look_again(view);
        return;
    }
    if (met == TUPLES_MET) {
        const struct wire_index_owner *owner = index_view_owner(view, &tuple);
        if (owner != NULL && owner->node == giving.to)
            tuples_give(view->index.index->index, &tuple.name);
    }
}

bool index_giving_counts(const struct indexed *index, const struct indexed_part *part,
                         const struct tuple *tuple, const struct tuples_scan *scan, uint32_t asked)
{
    struct mark end = batch_end(), at = {scan->page, scan->word};
    if ((giving.phase != HOLDING && giving.phase != FORGETTING) ||
        giving.followed[giving.place].index != index->index->index || before(&end, &at) ||
        before(&at, &giving.begins) || (int32_t)(asked - giving.until) < 0)
        return true;
    return index_owner(part, index_tuple_code(index, part, tuple))->node != giving.to;
}

/* ---- turns ---- */

/* False: nothing more in this turn. */
static bool go_on(const struct index_view *view)
{
    switch (giving.phase) {
    case LOOKING: return look(view);
    case FILLING: return fill(view);
    case SENDING: send(view); return giving.phase == FILLING;
    case AWAITING: await(view); return giving.phase == FILLING || giving.phase == LOOKING;
    case HOLDING: hold(view); return false;
    default: return false;
    }
}

static void step(void)
{
    struct index_view view;
    if (giving.phase == RESTING || giving.phase == FORGETTING)
        return;
    if (!time_known() || !find_view(&view)) {
        giving.phase = RESTING;
        return;
    }
    for (uint8_t i = 0; i < GIVING_AT_ONCE; i++)
        if (!go_on(&view))
            return;
    timer_after(&giving.timer, CLOCK_MS(GIVING_PAUSE_MS), step);
}

/* Indexes that this mote has tuples of are looked through when their owners have changed, and once
 * after it has started. */
static void follow(void)
{
    for (uint8_t place = 0; place < TUPLES_INDEXES; place++) {
        uint16_t number;
        struct indexed index;
        if (tuples_of(place, &number) == 0 || indexed_find(number, &index) == NULL)
            continue;
        uint8_t revision = index.index->revision;
        if (!giving.followed[place].known || giving.followed[place].index != number ||
            giving.followed[place].revision != revision) {
            giving.followed[place].index = number;
            giving.followed[place].revision = revision;
            giving.followed[place].known = true;
            giving.followed[place].done = giving.followed[place].own = false;
            giving.followed[place].from = now() + GIVING_AFTER;
            if (giving.place == place)
                giving.phase = RESTING;
        }
        if (giving.phase != RESTING || giving.followed[place].done ||
            !reached(giving.followed[place].from))
            continue;
        struct index_view view;
        giving.place = place;
        giving.silent = 0;
        if (find_view(&view))
            look_again(&view);
        else
            rest(true, false); /* It is not known whose they are. */
    }
}

bool app_tuples_own(uint16_t index, uint8_t *revision)
{
    for (uint8_t place = 0; place < TUPLES_INDEXES; place++)
        if (giving.followed[place].known && giving.followed[place].index == index) {
            *revision = giving.followed[place].revision;
            return giving.followed[place].own;
        }
    return false;
}

/* Some of what has been given, where nobody looks for it. */
static void forget_some(void)
{
    struct index_view view;
    if (!find_view(&view)) {
        giving.phase = RESTING;
        return;
    }
    for (uint8_t i = 0; i < GIVING_FORGOTTEN && giving.phase == FORGETTING; i++)
        forget(&view);
}

void index_giving_due(bool looked_for)
{
    if (!time_known())
        return;
    follow();
    if (giving.phase == FORGETTING && !looked_for)
        forget_some();
    else if (giving.phase != RESTING && !giving.timer.running)
        step();
}

#endif
