#include "index/partition.h"

/* What is still to be cut: some parts, which share some motes. */
struct piece {
    struct zone_field area;
    uint16_t motes_from, motes;
    uint8_t parts_from, parts;
};

/* Where a piece is cut. */
struct cut {
    bool across; /* x is cut, else y */
    uint16_t motes;
    uint8_t parts;
};

static int32_t along(const struct index_position *position, bool across)
{
    return across ? position->x : position->y;
}

/* By x or y, in Shell's way, with Knuth's distances: no recursion, and no memory but the array. */
static void sort(struct index_position *positions, uint16_t count, bool across)
{
    uint16_t gap = 1;
    while (gap < count / 3)
        gap = (uint16_t)(3 * gap + 1);
    for (; gap > 0; gap /= 3)
        for (uint16_t i = gap; i < count; i++) {
            struct index_position one = positions[i];
            uint16_t at = i;
            for (; at >= gap && along(&positions[at - gap], across) > along(&one, across);
                 at = (uint16_t)(at - gap))
                positions[at] = positions[at - gap];
            positions[at] = one;
        }
}

static uint16_t sum(const uint8_t *weights, uint8_t count)
{
    uint16_t all = 0;
    for (uint8_t i = 0; i < count; i++)
        all = (uint16_t)(all + weights[i]);
    return all;
}

/* How many of the parts go to the lower side, so that both weigh about the same. */
static uint8_t half(const uint8_t *weights, uint8_t parts)
{
    uint16_t all = sum(weights, parts), lower = 0;
    uint8_t count = 0;
    /* One more for as long as that is nearer to the middle, but never all. */
    while (count + 1 < parts && 2 * lower + weights[count] < all)
        lower = (uint16_t)(lower + weights[count++]);
    return count > 0 ? count : 1;
}

/* The cut between two motes of different x (or y) that is nearest to the share of the weights. */
static bool choose(const struct piece *piece, const struct index_position *positions,
                   const uint8_t *weights, struct cut *cut)
{
    uint32_t all = sum(weights, piece->parts), lower = sum(weights, cut->parts);
    uint32_t wanted = (piece->motes * lower * 2 + all) / (2 * all), least = UINT32_MAX;
    for (uint16_t at = cut->parts; at + piece->parts - cut->parts <= piece->motes; at++) {
        if (along(&positions[at - 1], cut->across) == along(&positions[at], cut->across))
            continue;
        uint32_t off = at > wanted ? at - wanted : wanted - at;
        if (off < least) {
            least = off;
            cut->motes = at;
        }
    }
    return least != UINT32_MAX;
}

bool index_partition(const struct zone_field *field, struct index_position *positions,
                     uint16_t motes, const uint8_t *weights, uint8_t parts,
                     struct index_part *found)
{
    if (parts == 0 || parts > INDEX_ATTRIBUTES || motes < parts)
        return false;
    struct piece pieces[INDEX_ATTRIBUTES] = {{*field, 0, motes, 0, parts}};
    for (uint8_t count = 1; count > 0;) {
        struct piece *lower = &pieces[count - 1];
        if (lower->parts == 1) {
            found[lower->parts_from] = (struct index_part){lower->area, lower->motes};
            count--;
            continue;
        }
        struct index_position *own = positions + lower->motes_from;
        const uint8_t *weigh = weights + lower->parts_from;
        uint32_t width = (uint32_t)lower->area.right - (uint32_t)lower->area.left;
        uint32_t height = (uint32_t)lower->area.top - (uint32_t)lower->area.bottom;
        struct cut cut = {.across = width >= height, .parts = half(weigh, lower->parts)};
        sort(own, lower->motes, cut.across);
        if (!choose(lower, own, weigh, &cut)) {
            cut.across = !cut.across;
            sort(own, lower->motes, cut.across);
            if (!choose(lower, own, weigh, &cut))
                return false;
        }
        int32_t line = along(&own[cut.motes], cut.across);
        int32_t before = along(&own[cut.motes - 1], cut.across);
        /* In the middle between the two, rounded up: the line is the upper side's. */
        line -= (int32_t)(((uint32_t)line - (uint32_t)before) / 2);
        struct piece *upper = &pieces[count++];
        *upper = *lower;
        upper->motes_from = (uint16_t)(upper->motes_from + cut.motes);
        upper->motes = (uint16_t)(upper->motes - cut.motes);
        upper->parts_from = (uint8_t)(upper->parts_from + cut.parts);
        upper->parts = (uint8_t)(upper->parts - cut.parts);
        lower->motes = cut.motes;
        lower->parts = cut.parts;
        if (cut.across)
            lower->area.right = upper->area.left = line;
        else
            lower->area.top = upper->area.bottom = line;
    }
    return true;
}
