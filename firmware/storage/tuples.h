/* The tuples of indexes that this mote stores for others: in flash, the oldest evicted by page
 * where there is no more room, and kept over a restart. What it gives to another mote it forgets.
 *
 * Boards without BOARD_TUPLES store none: there nothing is ever stored or found. */
#ifndef SKERRY_STORAGE_TUPLES_H
#define SKERRY_STORAGE_TUPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "index/box.h"

/* Indexes of which a mote stores tuples at once. */
#define TUPLES_INDEXES 8
/* The greatest number of a batch of tuples that another mote has given to this one. */
#define TUPLES_BATCHES 1023U

/* Which tuple of an index it is: it has no other one of that name. */
struct tuple_name {
    uint16_t mote, session;
    uint32_t sequence;
};

struct tuple {
    struct tuple_name name;
    uint16_t batch;     /* with which another mote has given it, up to TUPLES_BATCHES; 0: none */
    uint8_t attributes; /* 1..INDEX_ATTRIBUTES */
    uint8_t nulls;      /* bit i: attribute i is NULL, whatever its value is */
    int32_t values[INDEX_ATTRIBUTES];
};

enum tuples_put {
    TUPLES_STORED,
    TUPLES_KNOWN, /* this one is there already, as it came first */
    TUPLES_LATER, /* a page has to be erased first: again after log_tidy */
    TUPLES_NEVER  /* this board stores none, or not of one more index, or it is no tuple */
};

/* What is asked of an index: of each attribute the values from low to high, both included, and NULL
 * where its bit is set. */
struct tuples_box {
    uint8_t attributes, nulls;
    int32_t low[INDEX_ATTRIBUTES], high[INDEX_ATTRIBUTES];
};

/* A scan that goes on: it lives as long as its owner likes, and nothing has to be closed. What is
 * stored before it ends is met, what is evicted before it is met is not. */
struct tuples_scan {
    struct tuples_box box;
    uint32_t page; /* where it is: a page's number in the order of writing, and a word of it */
    uint16_t word;
    uint16_t index;
};

enum tuples_met {
    TUPLES_MET,  /* one more tuple */
    TUPLES_MORE, /* it has looked for some 2 ms, and met none: ask again, when nothing waits */
    TUPLES_END
};

struct tuples_statistics {
    uint32_t capacity;                /* bytes of tuples and rows that fit */
    uint32_t used;                    /* of these, those that are taken */
    uint32_t tuples;                  /* of all indexes */
    uint32_t evicted;                 /* tuples, since the mote was first flashed */
    uint32_t erased_most, erased_sum; /* erasures: of the page that was most often, of all pages */
    uint8_t pages;
};

#ifdef BOARD_TUPLES

/* Stores a tuple of the index of this number. */
enum tuples_put tuples_append(uint16_t index, const struct tuple *tuple);
/* All tuples of an index in the order in which they were stored. */
void tuples_scan_begin(struct tuples_scan *scan, uint16_t index, const struct tuples_box *box);
/* The next one in the box. */
enum tuples_met tuples_scan_next(struct tuples_scan *scan, struct tuple *tuple);
/* The tuple of a name; false: it is not here (any more). */
bool tuples_find(uint16_t index, const struct tuple_name *name, struct tuple *tuple);
/* That of an index which was stored first of those that are left; false: there is none, or it takes
 * longer to find: ask again with the next one. */
bool tuples_first(uint16_t index, struct tuple *tuple);
/* Forgets the one that tuples_first has just found, until the mote starts again. */
void tuples_forget_first(uint16_t index);
/* Another mote stores the tuple of this name now: it is not here any more, for good. */
void tuples_give(uint16_t index, const struct tuple_name *name);
/* Tuples of an index. */
uint32_t tuples_count(uint16_t index);
/* Of the TUPLES_INDEXES places, which index one has, and how many tuples of it there are; 0: none.
 */
uint32_t tuples_of(uint8_t place, uint16_t *index);
/* Forgets all tuples of an index, for good; false: again after log_tidy. */
bool tuples_drop(uint16_t index);
void tuples_statistics(struct tuples_statistics *statistics);

#else

static inline enum tuples_put tuples_append(uint16_t index, const struct tuple *tuple)
{
    (void)index, (void)tuple;
    return TUPLES_NEVER;
}
static inline void tuples_scan_begin(struct tuples_scan *scan, uint16_t index,
                                     const struct tuples_box *box)
{
    (void)scan, (void)index, (void)box;
}
static inline enum tuples_met tuples_scan_next(struct tuples_scan *scan, struct tuple *tuple)
{
    (void)scan, (void)tuple;
    return TUPLES_END;
}
static inline bool tuples_find(uint16_t index, const struct tuple_name *name, struct tuple *tuple)
{
    (void)index, (void)name, (void)tuple;
    return false;
}
static inline void tuples_give(uint16_t index, const struct tuple_name *name)
{
    (void)index, (void)name;
}
static inline uint32_t tuples_count(uint16_t index)
{
    (void)index;
    return 0;
}
static inline bool tuples_first(uint16_t index, struct tuple *tuple)
{
    (void)index, (void)tuple;
    return false;
}
static inline void tuples_forget_first(uint16_t index) { (void)index; }
static inline uint32_t tuples_of(uint8_t place, uint16_t *index)
{
    (void)place, (void)index;
    return 0;
}
static inline bool tuples_drop(uint16_t index)
{
    (void)index;
    return true;
}
static inline void tuples_statistics(struct tuples_statistics *statistics)
{
    *statistics = (struct tuples_statistics){0};
}

#endif
#endif
