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

enum slot_state {
    SLOT_WHOLE = 1 << 0,    /* all fragments are here and the program was accepted */
    SLOT_PLANNED = 1 << 1,  /* `next` is set */
    SLOT_FINISHED = 1 << 2, /* its last epoch is over: kept until `expires` for merging */
    SLOT_WAITING = 1 << 3,  /* epoch `epoch` is due and waits for its acquisition */
    SLOT_SAMPLING = 1 << 4, /* the acquisition under way is (also) for `epoch` */
    SLOT_RAISED = 1 << 5,   /* the last row passed: its event is raised */
    SLOT_SCANNING = 1 << 6, /* the tuple of `epoch` meets the rows of storage points */
    SLOT_HELD = 1 << 7,     /* its rows wait for the next epoch in which one may go */
};

/* Its period is below a second, and its rows leave the mote: query/fast samples it. */
#define SLOT_FAST 0x80
/* All its epochs of this second pass. */
#define SLOT_CHOSEN 0x40
/* Events of several motes run it side by side (query/events). */
#define SLOT_EACH 0x20

struct slot {
    uint8_t query; /* 0: free */
    uint8_t state;
    uint8_t length; /* bytes of the whole program */
    /* bit n: fragment n is here; of a whole program, SLOT_FAST, SLOT_CHOSEN and SLOT_EACH */
    uint8_t received;
    uint16_t version;    /* newest query_version that brought it */
    uint32_t attributes; /* that columns and conditions read */
    union {
        uint8_t divisor; /* takes part in epochs that this divides; 0: not reckoned yet */
        uint8_t part;    /* fast: by so many parts of a tick `due` is early */
    };
    union {
        uint8_t stage; /* while SLOT_SAMPLING: conditions of `epoch` that were true */
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
    uint16_t windows; /* bytes of its windows' state */
    /* its program, the state of its windows, and that of its clauses */
    struct memory_block block;
    /* control windows since it last applied here; SLOT_PASSED: its route leads past this mote */
    uint8_t idle;
    /* while it is passed over: until all fragments are here again, nothing else is kept */
    struct wire_route route;
};

#define SLOT_PASSED UINT8_MAX
bool slot_passed(const struct slot *slot);

static inline const struct wire_query_program *slot_program(const struct slot *slot)
{
    return (const struct wire_query_program *)slot->block.bytes;
}
static inline bool slot_fast(const struct slot *slot) { return slot->received & SLOT_FAST; }
/* State of the windows of a whole program: windows_size bytes. */
static inline uint8_t *slot_windows(const struct slot *slot)
{
    return slot->block.bytes + slot->length;
}

/* The column behind *field (program_start); false past the last. */
bool slot_next_column(const struct slot *slot, struct program_field *field);
/* As program_clause. */
bool slot_clause(const struct slot *slot, uint8_t kind, uint8_t n, struct program_field *field);
/* The code of the first clause of a kind; NULL: there is none. */
const void *slot_first_clause(const struct slot *slot, uint8_t kind);
/* Where its program goes; NULL: everywhere. */
const struct wire_route *slot_route(const struct slot *slot);
/* To evaluate code that reads attributes alone, whatever event lets the query run. */
struct eval_context slot_context(struct slot *slot);
/* Network time at which an epoch of the slot's query starts; false: beyond its 32 bits. */
bool slot_epoch_start(const struct slot *slot, uint32_t epoch, uint32_t *seconds,
                      uint32_t *milliseconds);
/* Rows of the slot's query may go each so many ms. */
void slot_rows_each(struct slot *slot, uint32_t milliseconds);

/* To be posted where queries have come or gone, or may run at other times than was known. Owned by
 * sampling/epochs, which plans them. */
extern struct event queries_changed;

/* Frees all slots. */
void slots_init(void);
/* Slot `index` below WIRE_QUERIES_MAXIMUM where it holds a whole program, else NULL. */
struct slot *slot_at(uint8_t index);
/* The first slot behind `slot` that holds a whole program, behind none where that is NULL; NULL
 * past the last. */
struct slot *slot_next(const struct slot *slot);
/* A bit for each slot. */
uint8_t slot_bit(const struct slot *slot);
/* The slot that holds a query whole, or NULL. */
struct slot *slot_of(uint8_t query);
/* The slot of a query, in whatever state, or NULL. */
struct slot *slot_find(uint8_t query);
/* A slot in whatever state, by index; free where its query is 0. */
struct slot *slot_any(uint8_t index);

#endif
