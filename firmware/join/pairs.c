#include "join/pairs.h"

#include "lib/calls.h"

#include <stddef.h>

/* Times go round (RFC 1982): what lies less than half the circle ahead is later. */
static bool before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

#define CYCLE 7

static uint8_t shift_of(uint8_t role) { return role == PAIRS_S ? 2 : 5; }

uint8_t pairs_number(uint8_t passed, uint8_t role) { return passed >> shift_of(role) & CYCLE; }

uint8_t pairs_count(uint8_t *next, uint8_t roles)
{
    uint8_t passed = roles & PAIRS_ROLES;
    for (uint8_t role = PAIRS_S; role <= PAIRS_T; role++) {
        if (!(roles & role))
            continue;
        uint8_t shift = shift_of(role), number = pairs_number(*next, role),
                after = number < CYCLE ? (uint8_t)(number + 1) : 1;
        passed = (uint8_t)(passed | number << shift);
        *next = (uint8_t)((*next & ~(CYCLE << shift)) | after << shift);
    }
    return passed;
}

uint8_t pairs_roles(const uint8_t *groups, uint8_t length, uint8_t mote)
{
    uint8_t roles = 0;
    for (; length > 0; length--, groups++)
        if (pairs_mote(*groups) == mote)
            roles |= pairs_role(*groups);
    return roles;
}

enum pairs_put pairs_put(struct pairs *pairs, const struct pairs_row *row, uint8_t *place)
{
    uint8_t roles = row->passed & pairs_roles(pairs->groups, pairs->groups_length, row->mote);
    bool room = false;
    if (roles == 0)
        return PAIRS_STRANGE;
    for (uint8_t i = 0; i < pairs->rows_room; i++) {
        struct pairs_row *other = &pairs->rows[i];
        if (other->passed == 0) {
            *place = i;
            room = true;
        } else if (other->mote == row->mote && other->epoch == row->epoch)
            return PAIRS_DOUBLED;
    }
    if (before(row->epoch, pairs->at->joined))
        return PAIRS_LATE;
    if (!room)
        return PAIRS_FULL;
    pairs->rows[*place] = *row;
    pairs->rows[*place].passed = (uint8_t)((row->passed & ~PAIRS_ROLES) | roles);
    return PAIRS_PUT;
}

/* From one row of a mote to a later one, by their numbers in a role: how many lie between them,
 * fewer than CYCLE. */
static uint8_t between(const struct pairs_row *row, const struct pairs_row *later, uint8_t role)
{
    return (uint8_t)((pairs_number(later->passed, role) + 2 * CYCLE - 1 -
                      pairs_number(row->passed, role)) %
                     CYCLE);
}

static uint8_t least(uint32_t one, uint8_t other) { return one < other ? (uint8_t)one : other; }

/* Of a mote's rows in a role: the newest one of before an epoch, or of it, and the first behind it.
 */
struct around {
    const struct pairs_row *newest, *following; /* following NULL: none has come */
    uint8_t newer;                              /* from the row that was asked for up to newest */
    bool started;                               /* … the mote has started anew */
};

static struct around look_around(const struct pairs *pairs, const struct pairs_row *row,
                                 uint8_t role, uint32_t at)
{
    struct around found = {row, NULL, 0, false};
    for (uint8_t i = 0; i < pairs->rows_room; i++) {
        const struct pairs_row *other = &pairs->rows[i];
        if (!(other->passed & role) || other->mote != row->mote ||
            !before(row->epoch, other->epoch))
            continue;
        if (before(at, other->epoch)) {
            if (!found.following || before(other->epoch, found.following->epoch))
                found.following = other;
            continue;
        }
        found.newer++;
        found.started |= pairs_number(other->passed, role) == 0;
        if (before(found.newest->epoch, other->epoch))
            found.newest = other;
    }
    return found;
}

/* Rows that may be lost between the newest one and `at`, an epoch before `until`, by the number of
 * the one that follows: what is of `until` or later may still come. */
static uint8_t lost_behind(const struct around *around, uint8_t role, uint32_t at, uint32_t until)
{
    const struct pairs_row *following = around->following;
    /* What a mote lost as it started again no number tells. */
    if (!following || pairs_number(following->passed, role) == 0)
        return 0;
    uint8_t missing = between(around->newest, following, role);
    if (before(until, following->epoch))
        missing = (uint8_t)(missing - least(following->epoch - until, missing));
    return least(at - around->newest->epoch, missing);
}

/* Whether a row is for certain in its mote's window in a role at an epoch that is not before it,
 * and before `until`. Rows that have not come count by the numbers of those that have. */
static bool in_window(const struct pairs *pairs, const struct pairs_row *row, uint8_t role,
                      uint32_t at, uint32_t until)
{
    if (pairs->window.rows == 0)
        return at - row->epoch <= pairs->window.length;
    struct around around = look_around(pairs, row, role, at);
    if (around.newer >= pairs->window.rows)
        return false;
    if (around.started)
        return at - row->epoch < pairs->window.rows;
    uint8_t ahead = (uint8_t)(pairs_number(around.newest->passed, role) + CYCLE -
                              pairs_number(row->passed, role));
    /* Of what has not come there are fewer than CYCLE. */
    uint8_t missing = (uint8_t)((ahead + CYCLE - around.newer % CYCLE) % CYCLE);
    return around.newer + missing + lost_behind(&around, role, at, until) < pairs->window.rows;
}

static bool is_pair(const struct pairs *pairs, uint8_t s, uint8_t t)
{
    uint8_t before = 0;
    bool has_s = false;
    for (uint8_t i = 0; i < pairs->groups_length; i++) {
        uint8_t role = pairs_role(pairs->groups[i]), mote = pairs_mote(pairs->groups[i]);
        if (role == PAIRS_S && before != PAIRS_S)
            has_s = false;
        before = role;
        if (role & PAIRS_T && mote == t && has_s)
            return true;
        if (role & PAIRS_S && mote == s)
            has_s = true;
    }
    return false;
}

/* Takes roles away in which a row meets nobody any more: who comes next is not before `until`. */
static void forget(const struct pairs *pairs, struct pairs_row *row, uint32_t until)
{
    for (uint8_t role = PAIRS_S; role <= PAIRS_T; role++)
        if (before(row->epoch, until) && !in_window(pairs, row, role, until - 1, until))
            row->passed &= (uint8_t)~role;
    if (!(row->passed & PAIRS_ROLES))
        row->passed = 0;
}

/* Whether the rows that it is the turn of meet, one as s and one as t, and have not before. It is
 * no part of pairs_join, on whose stack whoever is told of them stands. */
static NOT_INLINED bool meet(const struct pairs *pairs)
{
    const struct pairs_row *s = &pairs->rows[pairs->at->s], *t = &pairs->rows[pairs->at->t],
                           *earlier = s, *later = t;
    uint32_t until = pairs->at->joined;
    uint8_t role = PAIRS_S;
    if (!(earlier->passed & PAIRS_S) || !(later->passed & PAIRS_T))
        return false;
    if (before(later->epoch, earlier->epoch)) {
        earlier = t;
        later = s;
        role = PAIRS_T;
    }
    /* Each two are joined when it is the later one's turn. */
    return !before(later->epoch, until - pairs->at->under_way) && before(later->epoch, until) &&
           is_pair(pairs, s->mote, t->mote) && in_window(pairs, earlier, role, later->epoch, until);
}

/* Rows of its epochs are late from now on: what meets is the same until all have. */
static bool begin(struct pairs *pairs, uint32_t until)
{
    struct pairs_at *at = pairs->at;
    if (at->under_way > 0)
        return true;
    if (!before(at->joined, until))
        return false;
    uint32_t first = until - 1;
    for (uint8_t i = 0; i < pairs->rows_room; i++) {
        const struct pairs_row *row = &pairs->rows[i];
        if (row->passed != 0 && !before(row->epoch, at->joined) && before(row->epoch, first))
            first = row->epoch;
    }
    at->under_way = least(until - first, UINT8_MAX);
    at->joined = first + at->under_way;
    at->s = at->t = 0;
    return true;
}

enum pairs_step pairs_join(struct pairs *pairs, uint32_t until, pairs_met *met, void *context)
{
    struct pairs_at *at = pairs->at;
    if (!begin(pairs, until))
        return PAIRS_OVER;
    if (at->s < pairs->rows_room) {
        for (; at->t < pairs->rows_room; at->t++)
            if (meet(pairs) && !met(at->s, at->t, context))
                return PAIRS_NO_ROOM;
        at->s++;
        at->t = 0;
        return PAIRS_MORE;
    }
    if (at->t < pairs->rows_room)
        forget(pairs, &pairs->rows[at->t++], at->joined);
    if (at->t == pairs->rows_room)
        at->under_way = 0;
    return PAIRS_MORE;
}
