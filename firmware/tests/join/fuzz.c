/* Fuzzes what reaches a search from outside: forged searches, summaries, offers of trees.
 *
 * fuzz INPUTS SEED; built with AddressSanitizer and UndefinedBehaviorSanitizer, which end it at the
 * first fault. What a mote keeps lies in heap blocks of its exact size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "join/search.h"
#include "tests/fuzz.h"

static uint32_t searches, passed, found, sent, shapes, valid;

static void next(uint16_t to, const struct search *search, void *context)
{
    const struct search_mote *mote = context;
    sent++;
    if (search->length == 0 || search->length > SEARCH_PATH || search->tree >= mote->trees ||
        search->path[search->length - 1] != mote->mote || to == mote->mote)
        abort();
}

static void forge(void)
{
    struct search_mote mote;
    struct search search;
    fill(&search, sizeof search);
    search.length = (uint8_t)below(SEARCH_PATH + 3);
    search.tree = (uint8_t)below(FAR_TREES + 1);
    search.down = below(2);
    fill(&mote.shape, sizeof mote.shape);
    mote.shape.kind = (uint8_t)below(6);
    mote.shape.width = (uint8_t)below(16);
    shapes++;
    if (!summary_shape_check(&mote.shape))
        return;
    valid++;
    mote.mote = (uint16_t)below(12);
    mote.trees = (uint8_t)(1 + below(FAR_TREES));
    mote.more = (uint8_t)(below(4) ? 0 : random_number());
    mote.has = below(2);
    fill(&mote.value, sizeof mote.value);
    mote.children_count = (uint8_t)below(5);
    mote.neighbours_count = (uint8_t)below(5);
    struct far_place *in_trees = malloc(mote.trees * sizeof *in_trees);
    struct search_child *children = malloc(mote.children_count * sizeof *children + 1);
    uint16_t *neighbours = malloc(mote.neighbours_count * sizeof *neighbours + 1);
    if (!in_trees || !children || !neighbours)
        abort();
    for (uint8_t i = 0; i < mote.trees; i++) {
        far_begin(&in_trees[i]);
        for (uint8_t told = 0; told < 4; told++)
            (void)far_hear(&in_trees[i], mote.mote, (uint16_t)below(12), (uint16_t)below(12),
                           (uint8_t)random_number());
        if (in_trees[i].parent == mote.mote)
            abort();
    }
    for (uint8_t i = 0; i < mote.children_count; i++) {
        children[i] = (struct search_child){.mote = (uint16_t)(12 + below(12)),
                                            .tree = (uint8_t)below(FAR_TREES),
                                            .known = below(4) != 0};
        fill(&children[i].summary, sizeof children[i].summary);
    }
    for (uint8_t i = 0; i < mote.neighbours_count; i++)
        neighbours[i] = (uint16_t)below(24);
    mote.in_trees = in_trees, mote.children = children, mote.neighbours = neighbours;
    for (uint8_t i = 0; i < SEARCH_PATH; i++)
        search.path[i] = (uint16_t)below(64);
    uint16_t from = below(8) && search.length && search.length <= SEARCH_PATH
                        ? search.path[search.length - 1]
                        : (uint16_t)below(64);
    searches++;
    enum search_end end = search_hear(&mote, from, &search, next, &mote);
    passed += end == SEARCH_PASSED || end == SEARCH_FOUND;
    found += end == SEARCH_FOUND;
    struct summary told;
    search_tell(&mote, (uint8_t)below(mote.trees), &told);
    struct summary_ask own = {mote.value, mote.value};
    if (mote.has && !summary_may(&mote.shape, &told, &own))
        abort();
    free(in_trees);
    free(children);
    free(neighbours);
}

int main(int arguments, char **values)
{
    if (arguments != 3)
        return 2;
    uint32_t inputs = (uint32_t)strtoul(values[1], NULL, 10);
    fuzz_seed(strtoull(values[2], NULL, 10));
    for (uint32_t i = 0; i < inputs; i++)
        forge();
    printf("shapes %u/%u searches %u/%u found %u/%u sent %u\n", valid, shapes, passed, searches,
           found, passed, sent);
    return 0;
}
