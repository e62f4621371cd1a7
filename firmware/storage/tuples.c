#include "storage/tuples.h"

#include <stddef.h>

#include "drivers/pages.h"
#include "storage/filter.h"
#include "storage/tuples_log.h"

/* Records that one call of tuples_scan_next looks at. */
#define LOOKED_AT 100
/* Words of a tuple before its values: index, batch and which values are NULL; mote and session;
 * sequence number; and one that stays erased until another mote has the tuple. */
enum { INDEX, MOTE, SEQUENCE, GIVEN, VALUES };
#define HIGH 16
#define NULLS_SHIFT (HIGH + 10)

/* Indexes of which there are tuples. */
static struct live {
    struct log_place from; /* its tuples of before are dropped */
    uint32_t tuples;       /* 0: no index */
    uint16_t index;
} lives[TUPLES_INDEXES];

static struct live *live_of(uint16_t index)
{
    for (uint8_t i = 0; i < TUPLES_INDEXES; i++)
        if (lives[i].tuples > 0 && lives[i].index == index)
            return &lives[i];
    return NULL;
}

/* Room for an index without tuples. */
static struct live *free_one(void)
{
    for (uint8_t i = 0; i < TUPLES_INDEXES; i++)
        if (lives[i].tuples == 0)
            return &lives[i];
    return NULL;
}

bool tuples_is(const struct log_record *record)
{
    return record->kind >= LOG_TUPLE_SHORT_EVEN && record->kind <= LOG_TUPLE_WIDE &&
           record->count > VALUES;
}

/* Power that went while the word was written has left some of it: it has been given all the same.
 */
static bool is_given(const struct log_record *record)
{
    return record->words[GIVEN] != PAGES_ERASED;
}

static uint16_t index_of(const struct log_record *record) { return (uint16_t)record->words[INDEX]; }

uint32_t tuples_hash(const struct log_record *record)
{
    return filter_hash(index_of(record), record->words[MOTE], record->words[SEQUENCE]);
}

static bool before(const struct log_place *a, const struct log_place *b)
{
    return a->page < b->page || (a->page == b->page && a->word < b->word);
}

/* Counts a tuple of the index: the first of it, or one more. */
static void count(struct live *live, uint16_t index, const struct log_place *place)
{
    if (live->tuples++ > 0)
        return;
    live->index = index;
    live->from = *place;
}

void tuples_forget(void)
{
    for (uint8_t i = 0; i < TUPLES_INDEXES; i++)
        lives[i].tuples = 0;
}

void tuples_found(const struct log_record *record)
{
    struct live *live = live_of(index_of(record));
    if (record->kind == LOG_DROP && live != NULL)
        live->tuples = 0;
    if (tuples_is(record) && !is_given(record) && (live != NULL || (live = free_one()) != NULL))
        count(live, index_of(record), &record->place);
}

bool tuples_evict(const struct log_record *record)
{
    struct live *live = tuples_is(record) && !is_given(record) ? live_of(index_of(record)) : NULL;
    if (live == NULL || before(&record->place, &live->from))
        return false;
    live->tuples--;
    return true;
}

static uint8_t attributes_of(const struct log_record *record)
{
    uint8_t words = (uint8_t)(record->count - VALUES);
    return record->kind == LOG_TUPLE_WIDE
               ? words
               : (uint8_t)(2 * words - (record->kind == LOG_TUPLE_SHORT_ODD));
}

static int32_t value_of(const struct log_record *record, uint8_t attribute)
{
    if (record->kind == LOG_TUPLE_WIDE)
        return (int32_t)record->words[VALUES + attribute];
    return (int16_t)(record->words[VALUES + attribute / 2] >> attribute % 2 * HIGH);
}

static uint8_t nulls_of(const struct log_record *record)
{
    return (uint8_t)(record->words[INDEX] >> NULLS_SHIFT);
}

static void unpack(const struct log_record *record, struct tuple *tuple)
{
    *tuple = (struct tuple){
        .name = {(uint16_t)record->words[MOTE], (uint16_t)(record->words[MOTE] >> HIGH),
                 record->words[SEQUENCE]},
        .batch = (uint16_t)(record->words[INDEX] >> HIGH & TUPLES_BATCHES),
        .attributes = attributes_of(record),
        .nulls = nulls_of(record),
    };
    for (uint8_t i = 0; i < tuple->attributes; i++)
        tuple->values[i] = tuple->nulls >> i & 1 ? 0 : value_of(record, i);
}

static bool is_short(const struct tuple *tuple)
{
    for (uint8_t i = 0; i < tuple->attributes; i++)
        if (!(tuple->nulls >> i & 1) && tuple->values[i] != (int16_t)tuple->values[i])
            return false;
    return true;
}

/* The words of a tuple. */
static enum log_kind pack(uint16_t index, const struct tuple *tuple, uint32_t *words,
                          uint8_t *count)
{
    words[INDEX] = (uint32_t)tuple->nulls << NULLS_SHIFT |
                   (uint32_t)(tuple->batch & TUPLES_BATCHES) << HIGH | index;
    words[MOTE] = (uint32_t)tuple->name.session << HIGH | tuple->name.mote;
    words[SEQUENCE] = tuple->name.sequence;
    words[GIVEN] = PAGES_ERASED;
    bool wide = !is_short(tuple);
    *count = VALUES;
    for (uint8_t i = 0; i < tuple->attributes; i++) {
        uint32_t value = tuple->nulls >> i & 1 ? 0 : (uint32_t)tuple->values[i];
        if (wide)
            words[(*count)++] = value;
        else if (i % 2 == 0)
            words[(*count)++] = value & UINT16_MAX;
        else
            words[*count - 1] |= value << HIGH;
    }
    if (wide)
        return LOG_TUPLE_WIDE;
    return tuple->attributes % 2 == 0 ? LOG_TUPLE_SHORT_EVEN : LOG_TUPLE_SHORT_ODD;
}

_Static_assert(1 + VALUES + INDEX_ATTRIBUTES <= LOG_WORDS_MAXIMUM, "a tuple is a record");
_Static_assert(NULLS_SHIFT + INDEX_ATTRIBUTES <= 32, "a bit for each attribute");

enum tuples_put tuples_append(uint16_t index, const struct tuple *tuple)
{
    uint32_t words[LOG_WORDS_MAXIMUM];
    uint8_t length;
    struct log_place place;
    struct tuple known;
    struct live *live = live_of(index);
    if (tuple->attributes == 0 || tuple->attributes > INDEX_ATTRIBUTES ||
        tuple->nulls >> tuple->attributes != 0 || (live == NULL && free_one() == NULL))
        return TUPLES_NEVER;
    if (tuples_find(index, &tuple->name, &known))
        return TUPLES_KNOWN;
    enum log_kind kind = pack(index, tuple, words, &length);
    if (!log_append(kind, words, length, &place))
        return TUPLES_LATER;
    count(live != NULL ? live : free_one(), index, &place);
    return TUPLES_STORED;
}

void tuples_scan_begin(struct tuples_scan *scan, uint16_t index, const struct tuples_box *box)
{
    const struct live *live = live_of(index);
    *scan = (struct tuples_scan){.box = *box, .index = index};
    if (live != NULL) {
        scan->page = live->from.page;
        scan->word = live->from.word;
    }
}

static bool in_box(const struct log_record *record, const struct tuples_box *box)
{
    uint8_t nulls = nulls_of(record);
    if (attributes_of(record) != box->attributes)
        return false;
    for (uint8_t i = 0; i < box->attributes; i++) {
        if (nulls >> i & 1) {
            if (!(box->nulls >> i & 1))
                return false;
            continue;
        }
        int32_t value = value_of(record, i);
        if (value < box->low[i] || value > box->high[i])
            return false;
    }
    return true;
}

enum tuples_met tuples_scan_next(struct tuples_scan *scan, struct tuple *tuple)
{
    const struct live *live = live_of(scan->index);
    struct log_place at = {scan->page, scan->word};
    struct log_record record;
    if (live == NULL)
        return TUPLES_END;
    if (before(&at, &live->from))
        at = live->from;
    for (uint8_t looked = 0; looked < LOOKED_AT; looked++) {
        bool there = log_next(&at, &record);
        scan->page = at.page;
        scan->word = at.word;
        if (!there)
            return TUPLES_END;
        if (tuples_is(&record) && index_of(&record) == scan->index && !is_given(&record) &&
            in_box(&record, &scan->box) && log_sound(&record)) {
            unpack(&record, tuple);
            return TUPLES_MET;
        }
    }
    return TUPLES_MORE;
}

/* The record of a name; false: there is none. */
static bool find(uint16_t index, const struct tuple_name *name, struct log_record *record)
{
    const struct live *live = live_of(index);
    uint32_t mote = (uint32_t)name->session << HIGH | name->mote;
    if (live == NULL)
        return false;
    uint32_t hash = filter_hash(index, mote, name->sequence);
    for (struct log_place at = live->from; log_next_named(&at, hash, record);)
        if (record->words[SEQUENCE] == name->sequence && record->words[MOTE] == mote &&
            index_of(record) == index && !is_given(record) && log_sound(record))
            return true;
    return false;
}

bool tuples_find(uint16_t index, const struct tuple_name *name, struct tuple *tuple)
{
    struct log_record record;
    if (!find(index, name, &record))
        return false;
    unpack(&record, tuple);
    return true;
}

void tuples_give(uint16_t index, const struct tuple_name *name)
{
    struct log_record record;
    if (!find(index, name, &record))
        return;
    pages_write(log_page(&record.place), (uint16_t)(record.place.word + 1 + GIVEN), 0);
    live_of(index)->tuples--;
}

bool tuples_first(uint16_t index, struct tuple *tuple)
{
    struct live *live = live_of(index);
    struct log_record record;
    if (live == NULL)
        return false;
    struct log_place at = live->from;
    for (uint8_t looked = 0; looked < LOOKED_AT && log_next(&at, &record); looked++) {
        bool is_one = tuples_is(&record) && index_of(&record) == index && !is_given(&record);
        if (is_one && log_sound(&record)) {
            live->from = record.place;
            unpack(&record, tuple);
            return true;
        }
        live->from = at;
        if (is_one && --live->tuples == 0)
            return false;
    }
    return false;
}

void tuples_forget_first(uint16_t index)
{
    struct live *live = live_of(index);
    struct log_record record;
    if (live == NULL)
        return;
    struct log_place at = live->from;
    if (!log_next(&at, &record) || !tuples_is(&record) || index_of(&record) != index ||
        is_given(&record))
        return;
    live->from = at;
    live->tuples--;
}

uint32_t tuples_count(uint16_t index)
{
    const struct live *live = live_of(index);
    return live == NULL ? 0 : live->tuples;
}

uint32_t tuples_of(uint8_t place, uint16_t *index)
{
    *index = lives[place].index;
    return lives[place].tuples;
}

bool tuples_drop(uint16_t index)
{
    struct live *live = live_of(index);
    struct log_place place;
    const uint32_t word = index;
    if (live == NULL)
        return true;
    if (!log_append(LOG_DROP, &word, 1, &place))
        return false;
    live->tuples = 0;
    return true;
}

void tuples_statistics(struct tuples_statistics *statistics)
{
    struct log_statistics log;
    log_statistics(&log);
    *statistics = (struct tuples_statistics){.capacity = log.capacity,
                                             .used = log.used,
                                             .evicted = log.evicted,
                                             .erased_most = log.erased_most,
                                             .erased_sum = log.erased_sum,
                                             .pages = log.pages};
    for (uint8_t i = 0; i < TUPLES_INDEXES; i++)
        statistics->tuples += lives[i].tuples;
}
