/* What a query's PAIRS says of pairs of motes, what of that is this mote's, and where its rows lie.
 * For meet.c and meet_ways.c. */
#ifndef SKERRY_QUERY_OPERATORS_MEET_PAIRS_H
#define SKERRY_QUERY_OPERATORS_MEET_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "join/mote_set.h"
#include "join/pairs.h"
#include "query/expressions/vm.h"
#include "query/program/query_table.h"
#include "wire.h"

/* Bytes of a row's values at most, without the first: two rows travel in one record. */
#define MEET_WIDTH_MAXIMUM 24

/* The clause's state; behind it rows that wait for ways, the places of rows that are joined here,
 * and for each of these a struct values. */
struct meet_state {
    struct pairs_at at; /* the first, so that a reader finds the rest */
    bool matched;       /* two rows have, of what is being joined */
    uint16_t quiet;     /* rounds until its ways are to be kept open */
    uint8_t next;       /* numbers of this mote's next row */
    /* Epochs that are counted, and of these the ones whose rows have passed as s, and as t. */
    uint8_t epochs, passed[2];
} __attribute__((packed));

/* A row that waits for ways to its hosts, as it goes to them. */
struct sending {
    uint16_t gone;   /* bit n: to the program's host n it has, or need not go */
    uint8_t carries; /* 0: there is none */
    struct wire_result row;
    /* behind it values[]: all columns */
} __attribute__((packed));

struct values {
    uint16_t nulls;
    uint8_t bytes[]; /* of all columns but the first */
} __attribute__((packed));

/* What a program says of its pairs, and what of that is this mote's. It lies in the memory of
 * queries, which moves when a query comes or goes. */
struct meet {
    struct query_entry *entry;
    const struct wire_pairs *clause;
    struct program_code condition;
    struct mote_set motes; /* whose numbers hosts and pairs are told by */
    uint8_t own;           /* this mote's; MEET_NO_NUMBER: it has none */
    uint8_t delay, width;  /* bytes of a row's values without the first */
    uint8_t way;           /* enum wire_pairs_way */
    const uint8_t *hosts;  /* all; … */
    const uint8_t *above;  /* those whose mote is farther up than this one, where rows climb; … */
    const uint8_t *end;    /* … up to here */
    uint8_t *waiting;      /* struct sending, of sending_count() places */
    struct pairs pairs;
    uint8_t *values;
};

#define MEET_NO_NUMBER 0xFF

/* What a query's pairs are; false: it has none. Rows have no places yet. */
bool meet_look(struct query_entry *entry, struct meet *meet);
/* Finds where the rows are; NULL: this mote has no part in it. */
struct meet_state *meet_open(struct meet *meet);
/* The host behind the one that begins at `host`. */
const uint8_t *meet_behind(const uint8_t *host);
/* The program's number for a mote; MEET_NO_NUMBER: hosts and their pairs are others. */
uint8_t meet_number(const struct meet *meet, uint16_t node);
/* The other way round, of a number that the program has. */
uint16_t meet_mote(const struct meet *meet, uint8_t number);
/* As what the gateway joins rows of a mote, of PAIRS_ROLES. */
uint8_t meet_base(const struct meet *meet, uint16_t node);
/* Whether it has all rows, as no mote is said to be in a pair. */
bool meet_all_come(const struct meet *meet);
/* Whether this mote needs rows of a mote that have passed as `roles`, for its own pairs. */
bool meet_needs(const struct meet *meet, uint8_t mote, uint8_t roles);
/* Whether a host from `at` on, but for this mote, does. */
bool meet_needed(const struct meet *meet, const uint8_t *at, uint8_t mote, uint8_t roles);
/* How many hosts before this one in the program, and so farther down, do. */
uint8_t meet_needed_below(const struct meet *meet, uint8_t mote, uint8_t roles);
/* Hosts to which rows go by ways, of a mote that have passed as `roles`: bit n is the program's
 * host n. `own`: they begin here, else they are passed on. */
uint16_t meet_sent_to(const struct meet *meet, uint8_t mote, uint8_t roles, bool own);
/* The same of all rows, this mote's and others'. */
uint16_t meet_sent_at_all(const struct meet *meet);
/* Rows for which there is room until they go by ways from here, and bytes of each. */
uint8_t meet_sending_count(const struct meet *meet);
uint8_t meet_sending_size(const struct meet *meet);
struct values *meet_values(const struct meet *meet, uint8_t place);
/* Takes a row for the pairs of this mote; false: it is for none of them, or too late, or there is
 * no room. */
bool meet_take(struct meet *meet, const struct wire_result *row, uint8_t mote);

/* ---- implemented by meet_ways.c ---- */
/* A row that is to go by ways from here; false: it goes on up the tree. */
bool meet_sends(const struct meet *meet, struct meet_state *state, const struct wire_result *row,
                uint8_t mote, bool own);

#endif
