/* Records in flash, one behind the other, in pages that are written in turn, so that all wear
 * alike.
 *
 * Where there is no more room, the page with the oldest records is evicted. Power may go at any
 * moment: a record is there whole, or not at all, and what was there before it stays.
 *
 * Boards without BOARD_TUPLES have none, and link nothing of this folder. */
#ifndef SKERRY_STORAGE_LOG_H
#define SKERRY_STORAGE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"

/* Words of the largest record, with the one that begins it. */
#define LOG_WORDS_MAXIMUM 18U

enum log_kind {
    LOG_SKIP, /* what a loss of power has left */
    LOG_TUPLE_SHORT_EVEN,
    LOG_TUPLE_SHORT_ODD,
    LOG_TUPLE_WIDE,
    LOG_DROP,
    LOG_ROW
};

/* Where a record begins: a page's number in the order of writing, and a word of it. */
struct log_place {
    uint32_t page;
    uint16_t word;
};

struct log_record {
    struct log_place place;
    const volatile uint32_t *words; /* behind the one that begins it */
    uint8_t count;                  /* of them */
    uint8_t kind;                   /* an enum log_kind */
};

struct log_statistics {
    uint32_t capacity, used; /* bytes */
    uint32_t evicted;        /* what log_evicted has counted */
    uint32_t erased_most, erased_sum;
    uint8_t pages;
};

/* What the records' owners make of one whose page is evicted. */
enum log_fate {
    LOG_GONE,    /* nobody wants it */
    LOG_EVICTED, /* it is lost, and counted */
    LOG_KEPT     /* it is copied */
};
/* Implemented by kinds.c: a restart begins, and finds each record, the oldest first; what becomes
 * of one; its copy, or that there was no room for one. */
void log_restarted(void);
void log_found(const struct log_record *record);
enum log_fate log_fate_of(const struct log_record *record);
void log_copied(const struct log_record *record);
void log_lost(const struct log_record *record);
/* Likewise: whether a record is found by a name, and the name's hash. */
bool log_has_name(const struct log_record *record);
uint32_t log_name_of(const struct log_record *record);
/* Likewise: there is something to do. */
void log_grew_untidy(void);

#ifdef BOARD_TUPLES

/* Finds what was kept over a restart. Before the radio is on, as it erases up to four pages. */
void log_open(void);
/* Appends a record, of 0 to LOG_WORDS_MAXIMUM - 1 words; false: a page has to be erased first. */
bool log_append(enum log_kind kind, const uint32_t *words, uint8_t count, struct log_place *place);
/* Whether log_tidy has something to do. */
bool log_untidy(void);
/* Whether nothing more may be appended until it has. */
bool log_is_full(void);
/* Erases a page, which stalls the mote for 20 ms, and for up to 10 ms more where records have to be
 * copied from it first: for when no slot and no window is near. */
void log_tidy(void);

/* Before the first record. */
void log_first(struct log_place *place);
/* The record at a place, or the first behind it, and the place behind that one; false: there is
 * none. A place whose page was evicted is the first. */
bool log_next(struct log_place *place, struct log_record *record);
/* Likewise, of those with a name of this hash; pages that have none are passed over. */
bool log_next_named(struct log_place *place, uint32_t name, struct log_record *record);
/* Which page of the board a place is in, and the record that is there; false: there is none. */
uint8_t log_page(const struct log_place *place);
bool log_at(uint8_t page, uint16_t word, struct log_record *record);
/* Whether a record is as it was written. */
bool log_sound(const struct log_record *record);
void log_statistics(struct log_statistics *statistics);

#else

static inline void log_open(void) {}
static inline bool log_untidy(void) { return false; }
static inline void log_tidy(void) {}

#endif
#endif
