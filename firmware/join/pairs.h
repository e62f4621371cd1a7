/* Rows of motes that meet at one mote, which joins those of them that are pairs.
 *
 * A row passes as s, as t or as both. Of a pair of motes each s row meets each t row of which the
 * earlier one is among the last rows of its mote that passed in its role, up to the later one: so
 * many of them, or those of so many epochs. Equal epochs are included, and a mote may be a pair
 * with itself. What is in a window is there once, whatever the number of pairs.
 *
 * A mote numbers its rows in each role, so that whoever joins them sees that one is missing: it is
 * in the window all the same, and those before it are not. Where it was of an epoch up to which a
 * window reaches or of a later one, and cannot come any more, it counts as one in the window.
 *
 * Rows may come in any order, and twice. They are joined once their epoch is over: when no row from
 * before can come any more, step by step: it takes a small CPU a while, and whoever is told of
 * those that meet may have no room for more. */
#ifndef SKERRY_JOIN_PAIRS_H
#define SKERRY_JOIN_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_S 1
#define PAIRS_T 2
#define PAIRS_ROLES (PAIRS_S | PAIRS_T)

struct pairs_row {
    uint32_t epoch; /* which its mote has no other row of */
    uint8_t mote;   /* the caller's number for it */
    uint8_t passed; /* whose conditions, of PAIRS_ROLES, and its number in each; 0: no row */
} __attribute__((packed));

/* Pairs as programs carry them, in groups: a byte for each mote of a group says what it is there,
 * and, in its low bits, which mote. Each s is a pair with each t behind it. A group begins with
 * its motes that are s alone, so that one of these behind others begins the next. A byte of no role
 * is of no group. */
#define PAIRS_MOTES 64
static inline uint8_t pairs_role(uint8_t byte) { return byte / PAIRS_MOTES; }
static inline uint8_t pairs_mote(uint8_t byte) { return byte % PAIRS_MOTES; }

struct pairs_window {
    uint16_t length; /* epochs; used where rows is 0 */
    uint8_t rows;    /* the newest so many; 0: those of the last `length` epochs */
};

/* How far joining has come; all 0: nothing was. */
struct pairs_at {
    uint32_t joined;   /* rows of epochs before that are; rows from before the first are nobody's */
    uint8_t under_way; /* … or, of so many epochs right before it, are yet to be, … */
    uint8_t s, t;      /* … from these places on; all s have been: the place that is tidied next */
} __attribute__((packed));

/* Memory is the caller's; a place of passed 0 is free. */
struct pairs {
    struct pairs_row *rows;
    const uint8_t *groups;
    struct pairs_window window;
    struct pairs_at *at;
    uint8_t rows_room, groups_length;
};

enum pairs_put {
    PAIRS_PUT,     /* it waits to be joined */
    PAIRS_DOUBLED, /* it is there already */
    PAIRS_LATE,    /* rows of its epoch are joined, it among them or not */
    PAIRS_STRANGE, /* it is of no pair, or passed as nothing */
    PAIRS_FULL     /* no room */
};

/* A row of s and one of t that meet: their places. False: there is no room for what comes of it;
 * they meet again when joining goes on. */
typedef bool pairs_met(uint8_t s, uint8_t t, void *context);

/* Roles that a mote has in any of these groups. */
uint8_t pairs_roles(const uint8_t *groups, uint8_t length, uint8_t mote);
/* Numbers the next row of a mote, that has passed as `roles`: its `passed`. *next: the mote's, 0
 * when it starts. */
uint8_t pairs_count(uint8_t *next, uint8_t roles);
/* A row's number in a role; 0: the first since its mote has started, else 1 to 7 in turn. */
uint8_t pairs_number(uint8_t passed, uint8_t role);
/* PAIRS_PUT: *place is where it is. */
enum pairs_put pairs_put(struct pairs *pairs, const struct pairs_row *row, uint8_t *place);
enum pairs_step {
    PAIRS_OVER,   /* all before `until` are joined */
    PAIRS_MORE,   /* there may be more to be done */
    PAIRS_NO_ROOM /* for what comes of two that meet */
};

/* No row of an epoch before `until` can come any more: joins those that wait, and drops what is in
 * no window any longer, of one place in each call. What was begun is gone on with, whatever
 * `until`. */
enum pairs_step pairs_join(struct pairs *pairs, uint32_t until, pairs_met *met, void *context);

#endif
