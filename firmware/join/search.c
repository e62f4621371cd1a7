#include "join/search.h"

void search_tell(const struct search_mote *mote, uint8_t tree, struct summary *summary)
{
    summary_clear(&mote->shape, summary);
    if (mote->has)
        summary_add(&mote->shape, summary, &mote->value);
    bool all = !(mote->more >> tree & 1);
    for (uint8_t i = 0; i < mote->children_count; i++) {
        if (mote->children[i].tree != tree)
            continue;
        all = all && mote->children[i].known;
        summary_merge(&mote->shape, summary, &mote->children[i].summary);
    }
    if (!all)
        summary_fill(&mote->shape, summary);
}

/* To the children that may lead to what is asked for, and up unless it came down. */
static void pass(const struct search_mote *mote, uint16_t from, const struct search *search,
                 search_next *next, void *context)
{
    const struct far_place *place = &mote->in_trees[search->tree];
    struct search down = *search;
    down.down = true;
    if (mote->more >> search->tree & 1) {
        down.except = from;
        next(SEARCH_ALL_CHILDREN, &down, context);
    } else {
        for (uint8_t i = 0; i < mote->children_count; i++) {
            const struct search_child *child = &mote->children[i];
            if (child->tree == search->tree && child->mote != from &&
                (!child->known || summary_may(&mote->shape, &child->summary, &search->ask)))
                next(child->mote, &down, context);
        }
    }
    if (!search->down && place->parent != FAR_NOBODY)
        next(place->parent, search, context);
}

void search_start(const struct search_mote *mote, const struct summary_ask *ask, search_next *next,
                  void *context)
{
    struct search search = {.ask = *ask, .path = {mote->mote}, .except = FAR_NOBODY, .length = 1};
    for (search.tree = 0; search.tree < mote->trees; search.tree++)
        pass(mote, mote->mote, &search, next, context);
}

static bool is_neighbour(const struct search_mote *mote, uint16_t other)
{
    for (uint8_t i = 0; i < mote->neighbours_count; i++)
        if (mote->neighbours[i] == other)
            return true;
    return false;
}

/* Whether it can have come so: down from the parent, up from anybody else. */
static bool can_be(const struct search_mote *mote, uint16_t from, const struct search *search)
{
    if (search->tree >= mote->trees || search->length == 0 || search->length > SEARCH_PATH ||
        search->path[search->length - 1] != from || from == mote->mote ||
        !summary_ask_check(&mote->shape, &search->ask))
        return false;
    return search->down == (mote->in_trees[search->tree].parent == from);
}

enum search_end search_hear(const struct search_mote *mote, uint16_t from, struct search *search,
                            search_next *next, void *context)
{
    if (!can_be(mote, from, search))
        return SEARCH_REFUSED;
    if (search->except == mote->mote)
        return SEARCH_CIRCLE;
    for (uint8_t i = 0; i < search->length; i++)
        if (search->path[i] == mote->mote)
            return SEARCH_CIRCLE;
    for (uint8_t i = 0; i + 1 < search->length; i++) {
        if (is_neighbour(mote, search->path[i])) {
            search->length = (uint8_t)(i + 1);
            break;
        }
    }
    if (search->length == SEARCH_PATH)
        return SEARCH_LONG;
    search->path[search->length++] = mote->mote;
    search->except = FAR_NOBODY;
    pass(mote, from, search, next, context);
    return mote->has && summary_asked(&mote->shape, &mote->value, &search->ask) ? SEARCH_FOUND
                                                                                : SEARCH_PASSED;
}
