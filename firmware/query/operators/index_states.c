#include "query/operators/index_states.h"

#include "board.h"
#include "net/app.h"

#ifdef BOARD_TUPLES

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(struct gather_cell) == sizeof(struct wire_gathered_state),
               "states are sent as they are kept");

/* Bytes of so many aggregates' states, of no mote yet. */
static uint8_t size_of(uint8_t aggregates)
{
    return (uint8_t)(sizeof(struct wire_states) + aggregates * (1U + sizeof(struct gather_cell)));
}

struct gather_cell *index_states_cells(struct wire_states *states)
{
    return (struct gather_cell *)(states->more + states->aggregates);
}

uint8_t index_states_begin(struct wire_states *states, uint16_t token, uint16_t mote,
                           uint8_t aggregates, const uint8_t *kinds)
{
    uint8_t size = size_of(aggregates);
    memset(states, 0, size);
    states->token = token;
    states->aggregates = aggregates;
    states->motes = 1;
    memcpy(states->more, kinds, aggregates);
    memcpy((uint8_t *)states + size, &mote, sizeof mote);
    return (uint8_t)(size + sizeof mote);
}

static bool sound(const struct wire_states *states, uint8_t length)
{
    return length >= sizeof *states && states->aggregates >= 1 &&
           states->aggregates <= WIRE_GATHERED_MAXIMUM &&
           length == size_of(states->aggregates) + states->motes * sizeof(uint16_t);
}

uint8_t app_states_more(const struct wire_states *into, uint8_t length,
                        const struct wire_states *from, uint8_t from_length)
{
    bool alike = sound(into, length) && sound(from, from_length) && into->token == from->token &&
                 into->aggregates == from->aggregates &&
                 memcmp(into->more, from->more, into->aggregates) == 0;
    return alike ? (uint8_t)(from->motes * sizeof(uint16_t)) : 0;
}

void app_states_unite(struct wire_states *into, const struct wire_states *from)
{
    uint8_t size = size_of(into->aggregates);
    struct gather_cell *cells = index_states_cells(into);
    const struct gather_cell *others = (const struct gather_cell *)(from->more + from->aggregates);
    for (uint8_t i = 0; i < into->aggregates; i++)
        gather_add(&cells[i], into->more[i], others[i].value, others[i].count);
    memcpy((uint8_t *)into + size + into->motes * sizeof(uint16_t), (const uint8_t *)from + size,
           from->motes * sizeof(uint16_t));
    into->motes = (uint8_t)(into->motes + from->motes);
}

#endif
