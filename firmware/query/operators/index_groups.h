/* States of aggregates by group, of the tuples that a question to an index asks for: as many groups
 * as there is room for. Where there is none for one more these are sent, and all begin anew: who
 * asks puts together what comes of one group. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_GROUPS_H
#define SKERRY_QUERY_OPERATORS_INDEX_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

/* The group of NULL. */
#define INDEX_GROUPS_NULL INT32_MIN

/* What of a tuple is aggregated. */
struct index_grouped {
    uint8_t aggregate; /* enum wire_aggregate */
    bool known;        /* not NULL */
    int32_t value;
};

/* Groups are of one question at a time, whose states are so many; false: another one has them. */
bool index_groups_take(const void *question, uint8_t states);
/* Another one may. */
void index_groups_free(const void *question);
/* Adds a tuple to its group; false: some have to be sent first. */
bool index_groups_add(int32_t key, const struct index_grouped *tuple);
/* Moves groups to a record, as many as there is room for; their bytes. */
uint8_t index_groups_move(uint8_t *record, uint8_t room);
bool index_groups_left(void);

#endif
