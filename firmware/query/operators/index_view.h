/* An index as a mote sees it that has tuples of it: which are its own, and whose the others are. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_VIEW_H
#define SKERRY_QUERY_OPERATORS_INDEX_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "index/zone.h"
#include "query/operators/index_program.h"

struct index_view {
    const struct query_entry *entry; /* the newest program's */
    struct indexed index;
    struct indexed_part part; /* the one that this mote stores, or has stored */
    struct zone_owned owned;  /* where it `stores` */
    bool stores;
};

/* False: the index is not known, this mote has no tuples of it, or they may be of several parts. */
bool index_view_find(uint16_t index, struct index_view *view);
/* Who else stores a tuple; NULL: this mote, or it is too old for anybody to. */
const struct wire_index_owner *index_view_owner(const struct index_view *view,
                                                const struct tuple *tuple);

#endif
