#include "query/operators/index_groups.h"

#include "board.h"

#ifdef BOARD_TUPLES

#include <stddef.h>
#include <string.h>

#include "query/query_conf.h"
#include "wire.h"

/* The groups one after the other: each a key, and a state of each aggregate. */
static struct {
    const void *question;
    uint8_t states;
    uint16_t used; /* bytes */
    uint8_t bytes[INDEX_GROUPS_BYTES];
} groups;

static uint8_t size(void)
{
    return (uint8_t)(sizeof(int32_t) + groups.states * sizeof(struct wire_group_state));
}

bool index_groups_take(const void *question, uint8_t states)
{
    if (groups.question == question)
        return true;
    if (groups.question != NULL)
        return false;
    groups.question = question;
    groups.states = states;
    groups.used = 0;
    return true;
}

void index_groups_free(const void *question)
{
    if (groups.question == question)
        groups.question = NULL;
}

static struct wire_group_state *states_of(int32_t key)
{
    for (uint8_t *at = groups.bytes; at < groups.bytes + groups.used; at += size())
        if (memcmp(at, &key, sizeof key) == 0)
            return (struct wire_group_state *)(at + sizeof key);
    return NULL;
}

static bool is_extreme(uint8_t aggregate)
{
    return aggregate == WIRE_AGGREGATE_MIN || aggregate == WIRE_AGGREGATE_MAX;
}

/* Whether a state can say what it would be with one more value. */
static bool fits(const struct wire_group_state *state, const struct index_grouped *one)
{
    int32_t sum;
    return !one->known ||
           (state->count < UINT16_MAX && (is_extreme(one->aggregate) ||
                                          !__builtin_add_overflow(state->value, one->value, &sum)));
}

static void add(struct wire_group_state *state, const struct index_grouped *one)
{
    if (!one->known)
        return;
    if (!is_extreme(one->aggregate))
        state->value += one->value;
    else if (state->count == 0 ||
             (one->aggregate == WIRE_AGGREGATE_MIN ? one->value < state->value
                                                   : one->value > state->value))
        state->value = one->value;
    state->count++;
}

bool index_groups_add(int32_t key, const struct index_grouped *tuple)
{
    struct wire_group_state *states = states_of(key);
    if (states == NULL) {
        if (groups.used + size() > INDEX_GROUPS_BYTES)
            return false;
        uint8_t *at = groups.bytes + groups.used;
        memset(at, 0, size());
        memcpy(at, &key, sizeof key);
        groups.used = (uint16_t)(groups.used + size());
        states = (struct wire_group_state *)(at + sizeof key);
    }
    for (uint8_t i = 0; i < groups.states; i++)
        if (!fits(&states[i], &tuple[i]))
            return false;
    for (uint8_t i = 0; i < groups.states; i++)
        add(&states[i], &tuple[i]);
    return true;
}

uint8_t index_groups_move(uint8_t *record, uint8_t room)
{
    uint8_t moved = 0;
    for (; groups.used > 0 && moved + size() <= room; moved = (uint8_t)(moved + size())) {
        groups.used = (uint16_t)(groups.used - size());
        memcpy(record + moved, groups.bytes + groups.used, size());
    }
    return moved;
}

bool index_groups_left(void) { return groups.used > 0; }

#endif
