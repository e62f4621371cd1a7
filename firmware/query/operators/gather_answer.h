/* Who stores what a question among motes asks for looks through it, and sends what it finds to the
 * mote that gathers. Boards without BOARD_TUPLES store none, and have no part in it. */
#ifndef SKERRY_QUERY_OPERATORS_GATHER_ANSWER_H
#define SKERRY_QUERY_OPERATORS_GATHER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "query/program/query_table.h"

#ifdef BOARD_TUPLES

/* Looks for what the entry's query asks, where this mote may store it, and tells of it by that
 * name. What it has not told by now it leaves out. */
void gather_answer(const struct query_entry *entry, uint32_t name);
/* What it has not told by now is not asked for any more. */
void gather_answer_leave(const struct query_entry *entry);
/* Whether it is looking for what any query asks. */
bool gather_answers(void);

#else

static inline void gather_answer(const struct query_entry *entry, uint32_t name)
{
    (void)entry, (void)name;
}
static inline void gather_answer_leave(const struct query_entry *entry) { (void)entry; }

#endif
#endif
