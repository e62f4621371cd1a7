#include "index/order.h"

#include "lib/wide.h"

/* Halvings down to which the middle of a range is looked for: 256 zones. */
#define DEPTH 8

/* Within 7 % of the distance by Pythagoras, without a root. */
static uint32_t distance(int32_t x, int32_t y, int32_t other_x, int32_t other_y)
{
    uint32_t across = wide_distance(x, other_x), up = wide_distance(y, other_y);
    return across > up ? across + up / 8 * 3 : up + across / 8 * 3;
}

/* In sixteenths of a transmission. */
static uint32_t hops(uint32_t length, uint16_t hop)
{
    uint32_t whole, rest;
    return wide_divide((uint64_t)length * ORDER_HOP, hop, &whole, &rest) ? whole : UINT32_MAX;
}

static int32_t middle(int32_t low, int32_t high)
{
    return low + (int32_t)(((uint32_t)high - (uint32_t)low) / 2);
}

static int32_t mean(int32_t from, uint64_t sum, uint32_t weight)
{
    uint32_t whole, rest;
    return wide_divide(sum, weight, &whole, &rest) ? (int32_t)((uint32_t)from + whole) : from;
}

/* Motes that are asked, were all zones as large as motes make them. */
static uint16_t asked(const struct index_box *box, uint16_t motes)
{
    struct index_walk walk;
    struct zone zone;
    uint32_t weight = 0;
    uint8_t depth = 0;
    while (depth < 16 && (uint32_t)1 << depth < motes)
        depth++;
    index_walk_begin(&walk, box, depth);
    while (index_walk_next(&walk, &zone))
        weight += (uint32_t)1 << (depth - zone.length);
    uint32_t owners = (motes * weight) >> depth;
    return (uint16_t)(owners > 0 ? owners : 1);
}

/* Rounded down. */
static uint32_t root(uint64_t square)
{
    uint32_t found = 0;
    for (uint32_t bit = (uint32_t)1 << 31; bit; bit >>= 1)
        if ((uint64_t)(found | bit) * (found | bit) <= square)
            found |= bit;
    return found;
}

/* A transmission reaches all around its sender: twice the square of what it covers on a way. Zones
 * that lie apart, by their distance from their middle, want others in between. */
static uint32_t spread(const struct order_stop *stop, const struct index_part *part,
                       uint32_t weight, uint16_t hop, bool everywhere)
{
    uint32_t wide = hops((uint32_t)part->area.right - (uint32_t)part->area.left, hop);
    uint32_t high = hops((uint32_t)part->area.top - (uint32_t)part->area.bottom, hop);
    uint64_t area = (uint64_t)wide * high / (1 << DEPTH) * weight, found;
    if (everywhere ? part->motes == 1 : stop->owners == 1)
        return 0;
    /* A disc's area is the square of 2.66 times the mean distance from its middle. */
    found = everywhere ? area / ORDER_HOP / 2
                       : (uint64_t)root(area) * stop->gather / 100 * 133 / ORDER_HOP;
    return found > UINT32_MAX ? UINT32_MAX : (uint32_t)found;
}

/* To the middle from all over a rectangle: from the middles of its quarters, as the rectangle's own
 * may be the middle. */
static uint32_t mean_distance(const struct order_stop *stop, const struct zone_field *area)
{
    int32_t x = middle(area->left, area->right), y = middle(area->bottom, area->top);
    int32_t left = middle(area->left, x), right = middle(x, area->right);
    int32_t below = middle(area->bottom, y), above = middle(y, area->top);
    return distance(stop->x, stop->y, left, below) / 4 +
           distance(stop->x, stop->y, right, below) / 4 +
           distance(stop->x, stop->y, left, above) / 4 +
           distance(stop->x, stop->y, right, above) / 4;
}

void order_stop(struct order_stop *stop, const struct index_part *part, uint8_t attributes,
                const struct index_box *box, uint16_t hop, bool everywhere)
{
    struct index_walk walk;
    struct zone zone;
    struct zone_field area;
    uint64_t across = 0, up = 0, away = 0;
    uint32_t weight = 0;
    const struct zone_field *all = &part->area;
    index_walk_begin(&walk, box, DEPTH);
    while (index_walk_next(&walk, &zone)) {
        uint32_t share = (uint32_t)1 << (DEPTH - zone.length);
        zone_area(all, &zone, &area);
        across += (uint64_t)share * wide_distance(all->left, middle(area.left, area.right));
        up += (uint64_t)share * wide_distance(all->bottom, middle(area.bottom, area.top));
        weight += share;
    }
    stop->attributes = attributes;
    stop->x = mean(all->left, across, weight);
    stop->y = mean(all->bottom, up, weight);
    index_walk_begin(&walk, box, DEPTH);
    while (index_walk_next(&walk, &zone)) {
        zone_area(all, &zone, &area);
        away += ((uint64_t)1 << (DEPTH - zone.length)) * mean_distance(stop, &area);
    }
    stop->gather = hops((uint32_t)mean(0, away, weight), hop);
    stop->owners = asked(box, part->motes);
    stop->spread = spread(stop, part, everywhere ? 1 << DEPTH : weight, hop, everywhere);
}

void order_count(struct order_counts *counts, const struct order_stop *stops, uint8_t count,
                 const struct histogram *histogram, const struct index_box *box)
{
    for (uint8_t set = 0; set < (1 << count); set++) {
        uint8_t of = 0;
        for (uint8_t i = 0; i < count; i++)
            if (set >> i & 1)
                of = (uint8_t)(of | stops[i].attributes);
        counts->matching[set] = histogram_estimate(histogram, box, of);
    }
}

static uint8_t ones(uint8_t bits)
{
    uint8_t count = 0;
    for (; bits; bits &= (uint8_t)(bits - 1))
        count++;
    return count;
}

/* A sum that stays at its greatest where it does not fit. */
static uint64_t added(uint64_t sum, uint32_t tuples, uint32_t bytes, uint32_t way)
{
    uint64_t product, whole;
    if (__builtin_mul_overflow((uint64_t)tuples * bytes, (uint64_t)way, &product) ||
        __builtin_add_overflow(sum, product, &whole))
        return UINT64_MAX;
    return whole;
}

uint64_t order_cost(const struct order_stop *stops, const uint8_t *order, uint8_t count,
                    const struct order_counts *counts, const struct order_load *load)
{
    uint64_t cost = 0;
    uint8_t set = 0, carried = 0;
    for (uint8_t i = 0; i < count; i++) {
        const struct order_stop *stop = &stops[order[i]];
        uint32_t bytes = (uint32_t)load->value * ones(carried & load->measured) + load->name;
        if (i > 0) {
            const struct order_stop *from = &stops[order[i - 1]];
            uint32_t way = hops(distance(from->x, from->y, stop->x, stop->y), load->hop);
            way = way > UINT32_MAX - stop->spread ? UINT32_MAX : way + stop->spread;
            cost = added(cost, counts->matching[set], bytes, way);
        }
        set = (uint8_t)(set | 1 << order[i]);
        carried = (uint8_t)(carried | stop->attributes);
    }
    const struct order_stop *last = &stops[order[count - 1]];
    uint32_t left = counts->matching[set];
    if (load->state > 0) /* states merge: each mote that is asked sends one */
        return added(cost, last->owners - 1U, load->state, ORDER_HOP);
    return added(cost, left, (uint32_t)load->value * ones(carried & load->measured), last->gather);
}

/* The next permutation in lexicographic order; false after the last. */
static bool permute(uint8_t *order, uint8_t count)
{
    uint8_t at = (uint8_t)(count - 1), other = at;
    while (at > 0 && order[at - 1] > order[at])
        at--;
    if (at == 0)
        return false;
    while (order[other] < order[at - 1])
        other--;
    uint8_t kept = order[at - 1];
    order[at - 1] = order[other];
    order[other] = kept;
    for (other = (uint8_t)(count - 1); at < other; at++, other--) {
        kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    return true;
}

uint64_t order_best(const struct order_stop *stops, uint8_t count,
                    const struct order_counts *counts, const struct order_load *load,
                    uint8_t *order)
{
    uint8_t tried[INDEX_ATTRIBUTES];
    uint64_t least = UINT64_MAX;
    if (count == 0 || count > INDEX_ATTRIBUTES)
        return least;
    for (uint8_t i = 0; i < count; i++)
        order[i] = tried[i] = i;
    do {
        uint64_t cost = order_cost(stops, tried, count, counts, load);
        if (cost < least) {
            least = cost;
            for (uint8_t i = 0; i < count; i++)
                order[i] = tried[i];
        }
    } while (permute(tried, count));
    return least;
}
