/* The table of the queries that this mote knows, and what their running needs. */
#ifndef SKERRY_QUERY_PROGRAM_QUERY_TABLE_H
#define SKERRY_QUERY_PROGRAM_QUERY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/clock.h"
#include "kernel/event.h"
#include "query/expressions/attribute.h"
#include "query/program/memory.h"
#include "query/program/program.h"
#include "wire.h"

enum entry_state {
    ENTRY_WHOLE = 1 << 0,    /* all fragments are here and the program was accepted */
    ENTRY_PLANNED = 1 << 1,  /* `next` is set */
    ENTRY_FINISHED = 1 << 2, /* its last epoch is over: kept until `expires` for merging */
    ENTRY_RAISED = 1 << 3,   /* the last row passed: its event is raised */
    ENTRY_HELD = 1 << 4,     /* its rows wait for the next epoch in which one may go */
    ENTRY_FAST = 1 << 5,     /* its period is below a second, and its rows leave the mote */
    ENTRY_CHOSEN = 1 << 6,   /* fast: all its epochs of this second pass */
    ENTRY_EACH = 1 << 7,     /* events of several motes run it side by side */
};

/* How far its epoch `epoch` is. */
enum epoch_progress {
    EPOCH_DONE,     /* or there was none */
    EPOCH_WAITING,  /* it is due, and waits for its acquisition */
    EPOCH_SAMPLING, /* the acquisition under way is (also) for it */
    EPOCH_JOINING,  /* its tuple meets the rows of storage points */
};

struct query_entry {
    uint8_t query;       /* 0: free */
    uint8_t state;       /* of enum entry_state */
    uint8_t progress;    /* enum epoch_progress */
    uint8_t length;      /* bytes of the whole program */
    uint8_t received;    /* bit n: fragment n is here */
    uint16_t version;    /* newest query_version that brought it */
    uint32_t attributes; /* that columns and conditions read */
    union {
        uint8_t divisor; /* takes part in epochs that this divides; 0: not reckoned yet */
        uint8_t part;    /* fast: by so many parts of a tick `due` is early */
    };
    union {
        uint8_t stage; /* while EPOCH_SAMPLING: conditions of `epoch` that were true */
        uint8_t left;  /* fast: epochs that are planned */
    };
    uint16_t left_out; /* rows since the last that says so */
    /* between epochs whose rows may go; 0: it is no whole number of seconds */
    uint32_t period_seconds;
    uint32_t next;  /* epoch planned */
    uint32_t epoch; /* epoch waiting or sampled */
    union {
        uint32_t expires; /* network second from which a finished query is dropped */
        ticks_t due;      /* fast, not finished: when `next` starts */
    };
    /* network seconds from which an event let it run, and from which one ended it; 0: none did */
    uint32_t begun, stopped;
    /* events that have come since it last started: bit n for the n-th ON_EVENT */
    uint8_t come;
    uint16_t windows_size; /* bytes of the state of its windows */
    /* its program, the state of its windows, and that of its clauses */
    struct memory_block block;
    /* control windows since it last applied here; ENTRY_PASSED: its route leads past this mote */
    uint8_t idle;
    /* while it is passed over: until all fragments are here again, nothing else is kept */
    struct wire_route route;
};

#define ENTRY_PASSED UINT8_MAX
bool entry_passed(const struct query_entry *entry);

static inline const struct wire_query_program *entry_program(const struct query_entry *entry)
{
    return (const struct wire_query_program *)entry->block.bytes;
}
static inline bool entry_fast(const struct query_entry *entry) { return entry->state & ENTRY_FAST; }
/* The state of a whole program's windows, windows_size bytes. */
static inline uint8_t *entry_windows(const struct query_entry *entry)
{
    return entry->block.bytes + entry->length;
}

/* The column behind *field (program_start); false past the last. */
bool entry_next_column(const struct query_entry *entry, struct program_field *field);
/* As program_clause. */
bool entry_clause(const struct query_entry *entry, uint8_t kind, uint8_t n,
                  struct program_field *field);
/* The code of the first clause of a kind; NULL: there is none. */
const void *entry_first_clause(const struct query_entry *entry, uint8_t kind);
/* Where its program goes; NULL: everywhere. */
const struct wire_route *entry_route(const struct query_entry *entry);
/* To evaluate code that reads attributes alone, whatever event lets the query run. */
struct eval_context entry_context(struct query_entry *entry);
/* Network time at which an epoch of the entry's query starts; false: beyond its 32 bits. */
bool entry_epoch_start(const struct query_entry *entry, uint32_t epoch, uint32_t *seconds,
                       uint32_t *milliseconds);
/* Rows of the entry's query may go each so many ms. */
void entry_rows_each(struct query_entry *entry, uint32_t milliseconds);

/* To be posted where queries have come or gone, or may run at other times than was known. Owned by
 * sampling/epochs, which plans them. */
extern struct event queries_changed;

/* Forgets all queries. */
void query_table_init(void);
/* Entry `index` below WIRE_QUERIES_MAXIMUM where it holds a whole program, else NULL. */
struct query_entry *entry_at(uint8_t index);
/* The first entry behind `entry` that holds a whole program, behind none where that is NULL; NULL
 * past the last. */
struct query_entry *entry_next(const struct query_entry *entry);
/* A bit for each entry. */
uint8_t entry_bit(const struct query_entry *entry);
/* The entry that holds a query whole, or NULL. */
struct query_entry *entry_of(uint8_t query);
/* The entry of a query, in whatever state, or NULL. */
struct query_entry *entry_find(uint8_t query);
/* An entry in whatever state, by index; free where its query is 0. */
struct query_entry *entry_any(uint8_t index);

#endif
