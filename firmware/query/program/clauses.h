/* The clauses of a query program: what belongs to a whole query, and not to a column of its rows.
 *
 * A clause is a `struct clause` in the file that does its work, and a line in CLAUSES. Whoever puts
 * a program together or checks one knows clauses by this table alone. */
#ifndef SKERRY_QUERY_PROGRAM_CLAUSES_H
#define SKERRY_QUERY_PROGRAM_CLAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "query/program/program.h"

/* What lies in the same memory of a query's state: a program has one of them at most. */
enum program_keeps {
    PROGRAM_KEEPS_ROWS = 1 << 0,  /* its rows stay on the mote */
    PROGRAM_KEEPS_JOIN = 1 << 1,  /* it joins rows of storage points */
    PROGRAM_KEEPS_TREE = 1 << 2,  /* it is a semantic routing tree */
    PROGRAM_KEEPS_PAIRS = 1 << 3, /* it joins motes' rows with each other */
};

/* What the checks of a program's parts find out together. */
struct program_facts {
    const struct wire_query_program *program;
    uint32_t attributes;   /* that it reads: bit n for attribute n, and VM_POINT */
    uint16_t windows_size; /* bytes of the state of its windows */
    uint8_t columns;       /* of a row, or cells of a partial state record */
    uint8_t sources;       /* storage points that it joins */
    uint8_t keeps;         /* of enum program_keeps */
};

struct query_entry;

/* All of them, in the order in which their state lies behind the windows' in a query's block. */
#define CLAUSES(CLAUSE)                                                                            \
    CLAUSE(store)                                                                                  \
    CLAUSE(from)                                                                                   \
    CLAUSE(pairs)                                                                                  \
    CLAUSE(into)                                                                                   \
    CLAUSE(gather)                                                                                 \
    CLAUSE(index)                                                                                  \
    CLAUSE(srt)                                                                                    \
    CLAUSE(route)                                                                                  \
    CLAUSE(on_event)                                                                               \
    CLAUSE(stop_on)                                                                                \
    CLAUSE(signal)                                                                                 \
    CLAUSE(action)                                                                                 \
    CLAUSE(queue)                                                                                  \
    CLAUSE(budget)                                                                                 \
    CLAUSE(representative)

/* A function that is NULL has nothing to say. All but `check` are called once for a program, with
 * the first field of the kind. */
struct clause {
    /* Of enum wire_aggregate: WIRE_AGGREGATE_BUDGET or above, or a column that needs more than its
     * cells. */
    uint8_t kind;
    /* Whether one of its fields makes sense in the program; what it reads and keeps is added to the
     * facts. Of a column it is not called. */
    bool (*check)(const struct program_field *field, struct program_facts *facts);
    /* Why this mote cannot run a query with it now, an enum wire_refusal_reason, and the bytes that
     * are short; 0: it can. */
    uint8_t (*refusal)(const struct query_entry *entry, const struct program_field *field,
                       uint16_t *missing);
    /* Bytes of its state, which are zero when the query begins. */
    uint16_t (*state_size)(const struct query_entry *entry, const struct program_field *field);
    /* The program is whole and has its memory. */
    void (*open)(struct query_entry *entry, const struct program_field *field);
    /* The query ends; its program and state are still there. */
    void (*close)(const struct query_entry *entry);
};

#define CLAUSE_DECLARED(name) extern const IN_FLASH struct clause clause_##name;
CLAUSES(CLAUSE_DECLARED)

/* Whether a field that is a column makes sense; adds to the facts. Implemented by
 * operators/column. */
bool column_check(const struct program_field *field, struct program_facts *facts);
/* Whether a field that is none makes sense; false too of an unknown kind. */
bool clauses_check(const struct program_field *field, struct program_facts *facts);
/* As the members of struct clause, of all that the entry's whole program has. */
uint8_t clauses_refusal(const struct query_entry *entry, uint16_t *missing);
void clauses_open(struct query_entry *entry);
void clauses_close(const struct query_entry *entry);
/* Bytes of the state of the clauses before `kind` in the table; of all where it is none. */
#define CLAUSES_ALL WIRE_AGGREGATE_NONE
uint16_t clauses_size(const struct query_entry *entry, uint8_t kind);
/* The state of a clause of a whole program. */
uint8_t *clauses_state(const struct query_entry *entry, uint8_t kind);

#endif
