#include "query/routes/srt.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "drivers/settings.h"
#include "lib/crc.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/program/clauses.h"
#include "query/program/installer.h"
#include "query/query_conf.h"

#define AXES 2
#define CELLS 32

/* Interval of codes; none where low is above high. */
struct interval {
    uint8_t low, high;
};

/* With one axis both are of it, and it is their union; with two one of each, and it is what is in
 * both. */
struct set {
    struct interval part[2];
};

static const struct interval NONE = {UINT8_MAX, 0}, ALL = {0, UINT8_MAX};

/* What a mote tells of a tree, as in its entry. */
struct told {
    struct set set;
    uint8_t value[AXES];
    uint32_t cells; /* without what the set holds for longer */
} __attribute__((packed));
_Static_assert(sizeof(struct told) ==
                   sizeof(struct wire_srt_entry) - offsetof(struct wire_srt_entry, low),
               "told");

/* The clause's state. */
struct state {
    struct told mine;
    struct set own;      /* of what is sampled, the last value */
    uint8_t smaller_for; /* control windows since less than `mine` has been true */
    struct told known[NEIGHBOURS];
};

struct tree {
    struct query_entry *entry;
    const struct wire_srt *srt;
    uint8_t axes;
    struct state *state;
};

/* The next tree held, from entry *at on. */
static bool next_tree(uint8_t *at, struct tree *tree)
{
    while (*at < WIRE_QUERIES_MAXIMUM) {
        struct query_entry *entry = entry_at((*at)++);
        struct program_field field;
        if (entry == NULL || !entry_clause(entry, WIRE_AGGREGATE_SRT, 0, &field))
            continue;
        tree->entry = entry;
        tree->srt = (const struct wire_srt *)field.code.bytes;
        tree->axes =
            (uint8_t)((field.code.length - sizeof *tree->srt) / sizeof(struct wire_srt_axis));
        tree->state = (struct state *)clauses_state(entry, WIRE_AGGREGATE_SRT);
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

static bool route_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_route *route = (const struct wire_route *)field->code.bytes;
    (void)facts;
    return field->code.length == sizeof *route && route->srt != 0;
}

static bool srt_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_srt *srt = (const struct wire_srt *)field->code.bytes;
    facts->keeps |= PROGRAM_KEEPS_TREE;
    uint8_t axes = (uint8_t)((field->code.length - sizeof *srt) / sizeof(struct wire_srt_axis));
    if (field->code.length != sizeof *srt + axes * sizeof(struct wire_srt_axis) || axes < 1 ||
        axes > AXES || srt->srt == 0)
        return false;
    for (uint8_t i = 0; i < axes; i++) {
        uint8_t attribute = srt->axes[i].attribute;
        bool sampled = attribute <= WIRE_ATTRIBUTE_MAXIMUM;
        if (srt->axes[i].step == 0 ||
            (!sampled && (attribute < WIRE_ATTRIBUTE_OWN || attribute >= WIRE_ATTRIBUTE_END)))
            return false;
        if (sampled)
            facts->attributes |= (uint32_t)1 << attribute;
    }
    return true;
}

static uint16_t srt_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)entry, (void)field;
    return sizeof(struct state);
}

static uint8_t srt_refusal(const struct query_entry *entry, const struct program_field *field,
                           uint16_t *missing)
{
    struct tree tree;
    uint8_t held = 0;
    (void)entry, (void)field, (void)missing;
    for (uint8_t at = 0; next_tree(&at, &tree);)
        held++;
    return held >= BOARD_SRTS ? WIRE_REFUSAL_TREES : 0;
}

static struct set everything(const struct tree *tree)
{
    return (struct set){{ALL, tree->axes == 1 ? NONE : ALL}};
}

/* Nothing is known of the neighbours that there are. */
static void srt_open(struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        if (tree.entry != entry)
            continue;
        tree.state->mine.set = tree.state->own = everything(&tree);
        for (uint8_t i = 0; i < NEIGHBOURS; i++)
            tree.state->known[i].set = tree.state->own;
    }
}

/* ---- sets ---- */
static bool none(struct interval a) { return a.low > a.high; }
static bool meet(struct interval a, struct interval b)
{
    return !none(a) && !none(b) && a.low <= b.high && b.low <= a.high;
}
static bool within(struct interval a, struct interval b)
{
    return none(a) || (a.low >= b.low && a.high <= b.high);
}

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
    uint8_t ab = none(*b) ? UINT8_MAX : gap(*a, *b), am = gap(*a, more),
            bm = none(*b) ? UINT8_MAX : gap(*b, more);
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
    for (uint8_t i = 0; i < 2; i++)
        if (!within(a->part[i], b->part[i]) &&
            (tree->axes == 2 || !within(a->part[i], b->part[!i])))
            return false;
    return true;
}

static bool overlap(const struct tree *tree, const struct set *a, const struct wire_route *route)
{
    const struct interval *asked =
        (const struct interval *)((const uint8_t *)route + offsetof(struct wire_route, low));
    bool first = meet(a->part[0], asked[0]), second = meet(a->part[1], asked[1]);
    return tree->axes == 2
               ? first && second
               : first || second || meet(a->part[0], asked[1]) || meet(a->part[1], asked[0]);
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
    return axis->attribute <= WIRE_ATTRIBUTE_MAXIMUM &&
           attribute_sensors((uint32_t)1 << axis->attribute) != 0;
}

/* This mote's own values now. */
static const struct set *own(const struct tree *tree)
{
    struct eval_context context = entry_context(tree->entry);
    for (uint8_t i = 0; i < tree->axes; i++) {
        const struct wire_srt_axis *axis = &tree->srt->axes[i];
        struct interval *part = &tree->state->own.part[i];
        int32_t value;
        if (!attribute_read(axis->attribute, &value, &context)) {
            /* What is sampled keeps its value while it is acquired. No condition on one attribute
             * is true of NULL. */
            if (!is_sampled(axis))
                *part = tree->axes == 1 ? NONE : ALL;
            continue;
        }
        uint8_t code = tree->state->mine.value[i] = code_of(axis, value),
                hysteresis = is_sampled(axis) ? VALUE_HYSTERESIS : 0;
        part->low = code < hysteresis ? 0 : (uint8_t)(code - hysteresis);
        part->high = code > UINT8_MAX - hysteresis ? UINT8_MAX : (uint8_t)(code + hysteresis);
    }
    return &tree->state->own;
}

static uint32_t cells_of(const struct tree *tree, const uint8_t *codes)
{
    uint32_t cells = 0;
    for (uint8_t i = 0; i < tree->axes; i++)
        cells |= (uint32_t)1 << ((codes[i] >> (tree->axes - 1)) / 8 + CELLS / 2 * i);
    return cells;
}

/* ---- routes ---- */
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

bool route_applies(const struct wire_route *route)
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
/* It is NONE where it is none. */
static bool sound(struct interval a) { return !none(a) || a.low - a.high == UINT8_MAX; }

static bool possible(const struct wire_srt_entry *item)
{
    const struct interval *part =
        (const struct interval *)((const uint8_t *)item + offsetof(struct wire_srt_entry, low));
    return item->srt != 0 && sound(part[0]) && sound(part[1]);
}

bool app_srt_heard(uint8_t neighbour, const uint8_t *entries, uint8_t length, bool whole)
{
    const struct wire_srt_entry *item = (const struct wire_srt_entry *)entries;
    uint8_t count = (uint8_t)(length / sizeof *item);
    struct tree tree;
    for (uint8_t i = 0; i < count; i++)
        if (!possible(&item[i]))
            return false;
    if (length % sizeof *item != 0)
        return false;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        struct told *known = &tree.state->known[neighbour];
        uint8_t i = 0;
        while (i < count && item[i].srt != tree.srt->srt)
            i++;
        if (i < count) {
            memcpy(known, &item[i].low, sizeof *known);
        } else if (whole) {
            known->set = everything(&tree);
        }
    }
    return true;
}

void app_srt_forget(uint8_t neighbour)
{
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);)
        tree.state->known[neighbour] = (struct told){.set = {{NONE, NONE}}};
}

bool app_srt_refresh(bool control_window)
{
    bool wider = false;
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree);) {
        struct state *state = tree.state;
        struct set now = *own(&tree), all = everything(&tree);
        uint32_t cells = cells_of(&tree, state->mine.value);
        for (uint8_t i = 0; i < NEIGHBOURS; i++) {
            if (!neighbour_is_child(&neighbours()[i]))
                continue;
            unite(&tree, &now, &state->known[i].set);
            cells |= state->known[i].cells;
        }
        state->mine.cells = cells;
        if (neighbours_crowded())
            now = all; /* what children tell that have no place is not known */
        if (!inside(&tree, &now, &state->mine.set)) {
            unite(&tree, &state->mine.set, &now);
            state->smaller_for = 0;
            wider = true;
        } else if (inside(&tree, &state->mine.set, &now) || inside(&tree, &all, &state->mine.set) ||
                   state->smaller_for >= NARROWING_CONTROL_WINDOWS) {
            state->mine.set = now; /* what has been told as unknown is not waited with */
            state->smaller_for = 0;
        } else if (control_window) {
            state->smaller_for++;
        }
    }
    return wider;
}

uint8_t app_srt_write(uint8_t *entries)
{
    struct wire_srt_entry *item = (struct wire_srt_entry *)entries;
    uint8_t length = 0;
    struct tree tree;
    for (uint8_t at = 0; next_tree(&at, &tree); item++) {
        item->srt = tree.srt->srt;
        memcpy(&item->low, &tree.state->mine, sizeof tree.state->mine);
        length = (uint8_t)(length + sizeof *item);
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

bool app_srt_chooses(void)
{
    struct tree tree;
    return choosing(&tree);
}

/* Cells and what is near them; of two attributes that is a hint where the halves meet. */
static uint32_t near(uint32_t cells)
{
    for (uint8_t i = 0; i < NEAR_CELLS; i++)
        cells |= cells << 1 | cells >> 1;
    return cells;
}

/* Cells that this mote would add to what is below a parent, whose present one's are told with this
 * mote's own. */
static uint8_t added(const struct tree *tree, const struct told *known, bool parent)
{
    uint32_t mine = tree->state->mine.cells, there = parent ? known->cells & ~mine : known->cells;
    uint8_t count = 0;
    for (mine = near(mine) & ~near(there | cells_of(tree, known->value)); mine != 0;
         mine &= mine - 1)
        count++;
    return count;
}

static uint8_t apart(uint8_t a, uint8_t b) { return a > b ? (uint8_t)(a - b) : (uint8_t)(b - a); }

uint16_t app_srt_distance(uint8_t neighbour, bool parent)
{
    struct tree tree;
    uint16_t sum = 0;
    if (!choosing(&tree))
        return 0;
    if (tree.srt->policy == WIRE_POLICY_RANDOM) {
        uint16_t node = neighbours()[neighbour].node, own = settings()->nodeid;
        return crc_xmodem(crc_xmodem(crc_xmodem(own, (uint8_t)(own >> 8)), (uint8_t)node),
                          (uint8_t)(node >> 8));
    }
    const struct told *known = &tree.state->known[neighbour];
    for (uint8_t i = 0; i < tree.axes; i++)
        sum = (uint16_t)(sum + apart(known->value[i], tree.state->mine.value[i]));
    return tree.srt->policy == WIRE_POLICY_CLOSEST
               ? sum
               : (uint16_t)(sum / 2 + CELL_WEIGHT * added(&tree, known, parent));
}

const IN_FLASH struct clause clause_srt = {WIRE_AGGREGATE_SRT, srt_check, srt_refusal,
                                           srt_size,           srt_open,  NULL};
const IN_FLASH struct clause clause_route = {
    WIRE_AGGREGATE_ROUTE, route_check, NULL, NULL, NULL, NULL};
