#include "query/operators/index_view.h"

#ifdef BOARD_TUPLES

#include <stddef.h>

#include "drivers/settings.h"
#include "query/operators/index_zone.h"
#include "storage/tuples.h"

/* The part that this mote stores, or has stored: tuples do not say of which they are. */
static bool find_part(struct index_view *view)
{
    uint8_t parts = view->index.index->parts;
    for (uint8_t number = 0; number < parts; number++) {
        indexed_part(view->entry, &view->index, number, &view->part);
        for (uint8_t i = 0; i < view->part.owner_count; i++)
            if (view->part.owners[i].node == settings()->nodeid)
                return true;
    }
    return parts == 1;
}

bool index_view_find(uint16_t index, struct index_view *view)
{
    view->entry = indexed_find(index, &view->index);
    if (view->entry == NULL || tuples_count(index) == 0 || !find_part(view))
        return false;
    view->stores = index_owned(&view->part, &view->owned);
    return true;
}

const struct wire_index_owner *index_view_owner(const struct index_view *view,
                                                const struct tuple *tuple)
{
    if (tuple->attributes != view->part.columns || !indexed_kept(view->entry, &view->index, tuple))
        return NULL;
    uint32_t code = index_tuple_code(&view->index, &view->part, tuple);
    if (view->stores && zone_owns(&view->owned, code))
        return NULL;
    const struct wire_index_owner *owner = index_owner(&view->part, code);
    return owner->node == settings()->nodeid ? NULL : owner;
}

#endif
