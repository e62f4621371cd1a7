#include "query/srt.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "drivers/settings.h"
#include "net/cobs.h"
#include "net/neighbours.h"
#include "query/attribute.h"
#include "query/vm.h"

#define AXES 2
/* Control windows in which less has been below this mote before it says so: what moves is to be in another place first. */
#define NARROW_WINDOWS 4
/* What a sampled value may change by before it is told again, in codes. */
#define SLACK 1

/* Interval of codes; none where low is above high. */
struct interval {
    uint8_t low, high;
};

/* With one axis both are of it, and it is their union; with two one of each, and it is what is in both. */
struct set {
    struct interval part[2];
};

static const struct interval NONE = {UINT8_MAX, 0}, ALL = {0, UINT8_MAX};

/* Behind the tree's program. */
struct state {
    struct set told, own; /* own: of what is sampled, the last value */
    uint8_t codes[AXES];  /* of own */
    uint8_t narrower; /* control windows since less than that has been true */
    struct known {
        struct set set;
        uint8_t value[AXES];
    } known[NEIGHBOURS];
};

struct tree {
    const struct slot *slot;
    const struct wire_srt *srt;
    uint8_t axes;
    struct state *state;
};

static bool is_tree(const struct wire_query_program *program, uint8_t length, struct program_field *field)
{
    return program_clause(program, length, WIRE_AGGREGATE_SRT, 0, field);
}

/* The next tree held, from slot *at on. */
static bool next_tree(uint8_t *at, struct tree *tree)
{
    while (*at < WIRE_QUERIES_MAXIMUM) {
        const struct slot *slot = slot_at((*at)++);
        struct program_field field;
        if (slot == NULL || !is_tree(slot_program(slot), slot->length, &field))
            continue;
        tree->slot = slot;
        tree->srt = (const struct wire_srt *)field.code.bytes;
        tree->axes = (uint8_t)((field.code.length - sizeof *tree->srt) / sizeof(struct wire_srt_axis));
        tree->state = (struct state *)(slot_windows(slot) + slot->windows);
        return true;
    }
    return false;
}

static bool find(uint8_t number, struct tree *tree)
{
    for (uint8_t at = 0; next_tree(&at, tree);)
        if (tree->srt->srt == number)
            return true;
    return false;
}

bool srt_check(const struct program_field *field, uint32_t *attributes)
{
    const struct wire_srt *srt = (const struct wire_srt *)field->code.bytes;
    const struct wire_route *route = (const struct wire_route *)field->code.bytes;
    if (field->aggregate == WIRE_AGGREGATE_ROUTE)
        return field->code.length == sizeof *route && route->srt != 0;
    uint8_t axes = (uint8_t)((field->code.length - sizeof *srt) / sizeof(struct wire_srt_axis));
    if (field->code.length != sizeof *srt + axes * sizeof(struct wire_srt_axis) || axes < 1 || axes > AXES || srt->srt == 0)
        return false;
    for (uint8_t i = 0; i < axes; i++) {
        uint8_t attribute = srt->axes[i].attribute;
        bool sampled = attribute <= WIRE_ATTRIBUTE_MAXIMUM;
        if (srt->axes[i].step == 0 || (!sampled && (attribute < WIRE_ATTRIBUTE_OWN || attribute >= WIRE_ATTRIBUTE_END)))
            return false;
        if (sampled)
            *attributes |= (uint32_t)1 << attribute;
    }
    return true;
}

uint16_t srt_size(const struct wire_query_program *program, uint8_t length)
{
    struct program_field field;
    return is_tree(program, length, &field) ? sizeof(struct state) : 0;
}

bool srt_too_many(const struct wire_query_program *program, uint8_t length)
{
    struct program_field field;
    struct tree tree;
    uint8_t held = 0;
    for (uint8_t at = 0; next_tree(&at, &tree);)
        held++;
    return held >= BOARD_SRTS && is_tree(program, length, &field);
}

static struct set everything(const struct tree *tree) { return (struct set){{ALL, tree->axes == 1 ? NONE : ALL}}; }

void srt_open(struct slot *slot)
{
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        if (tree.slot != slot)
            continue;
        tree.state->told = tree.state->own = everything(&tree);
        for (uint8_t i = 0; i < NEIGHBOURS; i++)
            tree.state->known[i].set = tree.state->told;
    }
}

/* ---- sets ---- */
static bool none(struct interval a) { return a.low > a.high; }
static bool meet(struct interval a, struct interval b) { return !none(a) && !none(b) && a.low <= b.high && b.low <= a.high; }
static bool within(struct interval a, struct interval b) { return none(a) || (a.low >= b.low && a.high <= b.high); }

static struct interval hull(struct interval a, struct interval b)
{
    if (none(a))
        return b;
    if (none(b))
        return a;
    return (struct interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/* Codes between two intervals that do not meet; 0 where one is none. */
static uint8_t gap(struct interval a, struct interval b)
{
    if (none(a) || none(b) || meet(a, b))
        return 0;
    return (uint8_t)((a.low > b.high ? a.low - b.high : b.low - a.high) - 1);
}

/* Two intervals that hold three: those with the least between them become one. */
static void add(struct set *set, struct interval more)
{
    struct interval *a = &set->part[0], *b = &set->part[1];
    if (none(more))
        return;
    if (none(*a)) {
        *a = more;
        return;
    }
    if (none(*b) && gap(*a, more) != 0) {
        *b = more;
        return;
    }
    uint8_t ab = none(*b) ? UINT8_MAX : gap(*a, *b), am = gap(*a, more), bm = none(*b) ? UINT8_MAX : gap(*b, more);
    if (am <= ab && am <= bm) {
        *a = hull(*a, more);
    } else if (bm <= ab) {
        *b = hull(*b, more);
    } else {
        *a = hull(*a, *b);
        *b = more;
    }
    if (!none(*b) && gap(*a, *b) == 0) {
        *a = hull(*a, *b);
        *b = NONE;
    }
}

static void unite(const struct tree *tree, struct set *set, const struct set *more)
{
    for (uint8_t i = 0; i < 2; i++)
        if (tree->axes == 1)
            add(set, more->part[i]);
        else
            set->part[i] = hull(set->part[i], more->part[i]);
}

static bool inside(const struct tree *tree, const struct set *a, const struct set *b)
{
    if (tree->axes == 2)
        return within(a->part[0], b->part[0]) && within(a->part[1], b->part[1]);
    for (uint8_t i = 0; i < 2; i++)
        if (!within(a->part[i], b->part[0]) && !within(a->part[i], b->part[1]))
            return false;
    return true;
}

static bool overlap(const struct tree *tree, const struct set *a, const struct wire_route *route)
{
    struct interval first = {route->low, route->high}, second = {route->low2, route->high2};
    if (tree->axes == 2)
        return meet(a->part[0], first) && meet(a->part[1], second);
    return meet(a->part[0], first) || meet(a->part[0], second) || meet(a->part[1], first) || meet(a->part[1], second);
}

/* ---- this mote's own values ---- */
static uint8_t code_of(const struct wire_srt_axis *axis, int32_t value)
{
    if (value <= axis->low)
        return 0;
    uint32_t code = ((uint32_t)value - (uint32_t)axis->low) / axis->step;
    return code < UINT8_MAX ? (uint8_t)code : UINT8_MAX;
}

static bool is_sampled(const struct wire_srt_axis *axis)
{
    return axis->attribute <= WIRE_ATTRIBUTE_MAXIMUM && attribute_sensors((uint32_t)1 << axis->attribute) != 0;
}

/* This mote's own values now. */
static const struct set *own(const struct tree *tree)
{
    for (uint8_t i = 0; i < tree->axes; i++) {
        const struct wire_srt_axis *axis = &tree->srt->axes[i];
        struct interval *part = &tree->state->own.part[i];
        int32_t value;
        if (!attribute_read(axis->attribute, &value, tree->slot)) {
            /* What is sampled keeps its value while it is acquired. No condition on one attribute is true of NULL. */
            if (!is_sampled(axis))
                *part = tree->axes == 1 ? NONE : ALL;
            continue;
        }
        uint8_t code = tree->state->codes[i] = code_of(axis, value), slack = is_sampled(axis) ? SLACK : 0;
        part->low = code < slack ? 0 : (uint8_t)(code - slack);
        part->high = code > UINT8_MAX - slack ? UINT8_MAX : (uint8_t)(code + slack);
    }
    return &tree->state->own;
}

/* ---- routes ---- */
const struct wire_route *srt_route(const struct wire_query_program *program, uint8_t length)
{
    struct program_field field;
    return program_clause(program, length, WIRE_AGGREGATE_ROUTE, 0, &field) ? (const struct wire_route *)field.code.bytes : NULL;
}

bool srt_neighbour(uint8_t neighbour, const struct wire_route *route)
{
    struct tree tree;
    return !find(route->srt, &tree) || overlap(&tree, &tree.state->known[neighbour].set, route);
}

bool srt_below(const struct wire_route *route)
{
    for (uint8_t i = 0; i < NEIGHBOURS; i++)
        if (neighbour_is_child(&neighbours()[i]) && srt_neighbour(i, route))
            return true;
    return false;
}

static bool here(const struct tree *tree, const struct wire_route *route)
{
    return overlap(tree, own(tree), route);
}

bool srt_applies(const struct wire_route *route)
{
    struct tree tree;
    return !find(route->srt, &tree) || here(&tree, route) || srt_below(route);
}

bool srt_samples(const struct wire_route *route)
{
    struct tree tree;
    if (!find(route->srt, &tree))
        return true;
    for (uint8_t i = 0; i < tree.axes; i++)
        if (is_sampled(&tree.srt->axes[i]))
            return true;
    return here(&tree, route);
}

/* ---- what neighbours say, and what they are told ---- */
static bool possible(const struct wire_srt_entry *entry)
{
    struct interval first = {entry->low, entry->high}, second = {entry->low2, entry->high2};
    return entry->srt != 0 && (!none(first) || memcmp(&first, &NONE, sizeof first) == 0) &&
           (!none(second) || memcmp(&second, &NONE, sizeof second) == 0);
}

bool srt_heard(uint8_t neighbour, const uint8_t *entries, uint8_t length, bool whole)
{
    const struct wire_srt_entry *entry = (const struct wire_srt_entry *)entries;
    uint8_t count = (uint8_t)(length / sizeof *entry);
    struct tree tree;
    for (uint8_t i = 0; i < count; i++)
        if (!possible(&entry[i]))
            return false;
    if (length % sizeof *entry != 0)
        return false;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        struct known *known = &tree.state->known[neighbour];
        uint8_t i = 0;
        while (i < count && entry[i].srt != tree.srt->srt)
            i++;
        if (i < count) {
            known->set = (struct set){{{entry[i].low, entry[i].high}, {entry[i].low2, entry[i].high2}}};
            known->value[0] = entry[i].value;
            known->value[1] = entry[i].value2;
        } else if (whole) {
            known->set = everything(&tree);
        }
    }
    return true;
}

void srt_forget(uint8_t neighbour)
{
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);)
        tree.state->known[neighbour].set = (struct set){{NONE, NONE}};
}

bool srt_refresh(bool window)
{
    bool wider = false;
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        struct state *state = tree.state;
        struct set now = *own(&tree), all = everything(&tree);
        for (uint8_t i = 0; i < NEIGHBOURS; i++)
            if (neighbour_is_child(&neighbours()[i]))
                unite(&tree, &now, &state->known[i].set);
        if (neighbours_crowded())
            now = all; /* what children tell that have no place is not known */
        if (!inside(&tree, &now, &state->told)) {
            unite(&tree, &state->told, &now);
            state->narrower = 0;
            wider = true;
        } else if (inside(&tree, &state->told, &now)) {
            state->narrower = 0;
        } else if (inside(&tree, &all, &state->told) || state->narrower >= NARROW_WINDOWS) {
            state->told = now; /* what has been told as unknown is not waited with */
            state->narrower = 0;
        } else if (window) {
            state->narrower++;
        }
    }
    return wider;
}

uint8_t srt_write(uint8_t *entries)
{
    struct wire_srt_entry *entry = (struct wire_srt_entry *)entries;
    uint8_t length = 0;
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree); entry++) {
        entry->srt = tree.srt->srt;
        memcpy(&entry->low, &tree.state->told, sizeof tree.state->told);
        memcpy(&entry->value, tree.state->codes, AXES);
        length = (uint8_t)(length + sizeof *entry);
    }
    return length;
}

/* ---- the choice of a parent ---- */
static bool choosing(struct tree *tree)
{
    for (uint8_t at = 0; next_tree(&at, tree);)
        if (tree->srt->policy != WIRE_POLICY_LINK)
            return true;
    return false;
}

bool srt_chooses(void)
{
    struct tree tree;
    return choosing(&tree);
}

/* Sixty-fourths of the codes of an axis, a bit each. */
#define PART_SHIFT 2
#define PARTS 64
/* A query asks for a range: values so near to others, in codes on each side, are mostly asked for together with them. */
#define NEAR 48

struct parts {
    uint8_t bits[PARTS / 8];
};

/* Marks an interval and what is near it; how many were not marked before. */
static uint8_t mark(struct parts *parts, struct interval of)
{
    uint8_t added = 0, from = (uint8_t)(of.low < NEAR ? 0 : of.low - NEAR) >> PART_SHIFT;
    uint8_t to = (uint8_t)(of.high > UINT8_MAX - NEAR ? UINT8_MAX : of.high + NEAR) >> PART_SHIFT;
    for (uint8_t i = from; !none(of) && i <= to; i++) {
        uint8_t bit = (uint8_t)(1U << i % 8);
        added = (uint8_t)(added + !(parts->bits[i / 8] & bit));
        parts->bits[i / 8] |= bit;
    }
    return added;
}

/* What this mote's values would add below a parent, of an axis: to the parent's own value, to what siblings that are heard have chosen
 * it for, and, unless this mote's are among them, to what the parent tells. */
static uint8_t spread(const struct tree *tree, uint8_t axis, uint8_t neighbour, bool parent)
{
    const struct known *known = tree->state->known;
    uint8_t code = known[neighbour].value[axis], added = 0, first = axis, last = tree->axes == 1 ? 1 : axis;
    struct parts parts = {{0}};
    mark(&parts, (struct interval){code, code});
    for (uint8_t i = 0; i < NEIGHBOURS; i++) {
        const struct neighbour *of = &neighbours()[i];
        if (of->node == WIRE_NO_NODE || (i == neighbour ? parent : of->parent != neighbours()[neighbour].node))
            continue;
        for (uint8_t j = first; j <= last; j++)
            mark(&parts, known[i].set.part[j]);
    }
    for (uint8_t j = first; j <= last; j++)
        added = (uint8_t)(added + mark(&parts, tree->state->told.part[j]));
    return added;
}

static uint8_t apart(uint8_t a, uint8_t b) { return a > b ? (uint8_t)(a - b) : (uint8_t)(b - a); }

uint16_t srt_distance(uint8_t neighbour, bool parent)
{
    struct tree tree;
    uint16_t sum = 0;
    if (!choosing(&tree))
        return 0;
    if (tree.srt->policy == WIRE_POLICY_RANDOM) {
        uint16_t node = neighbours()[neighbour].node, own = settings()->nodeid;
        return crc_xmodem(crc_xmodem(crc_xmodem(own, (uint8_t)(own >> 8)), (uint8_t)node), (uint8_t)(node >> 8));
    }
    for (uint8_t i = 0; i < tree.axes; i++) {
        if (tree.srt->policy == WIRE_POLICY_CLOSEST)
            sum = (uint16_t)(sum + apart(tree.state->known[neighbour].value[i], tree.state->codes[i]));
        else
            sum = (uint16_t)(sum + spread(&tree, i, neighbour, parent));
    }
    return sum;
}
