/* Why it is exact: who sends a state keeps it until it is acknowledged, and who acknowledges passes it on, or has heard of one that leaves
 * it without effect. The state heard is therefore on its way to the root without this mote, unless it goes through it: to it, or to one of its
 * children. What is heard counts in this slot only, in which no child sends. */
#include "net/snoop.h"

#include <stddef.h>

#include "net/neighbours.h"
#include "net/outbox.h"
#include "net/tree.h"
#include "net/uplink.h"
#include "query/query.h"

/* Cells to listen in. */
#define CELLS 8
/* Fewer siblings are not worth listening to. */
#define SIBLINGS 5

static uint8_t cells; /* to listen in yet */
static bool alone;    /* all that waited in the last slot of an epoch's rows were states of queries that snoop */

/* Something, and nothing but states of queries that snoop. */
static bool waiting(void)
{
    bool some = false;
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record)) {
        if (record->type == QUEUE_HEARD) continue;
        if (record->type != WIRE_PACKET_PARTIAL || !query_snoops(record->body[offsetof(struct wire_partial, query)])) return false;
        some = true;
    }
    return some;
}

bool snoop_begin(void)
{
    uint8_t siblings = 0;
    for (uint8_t i = 0; i < NEIGHBOURS; i++) siblings += neighbours()[i].node != WIRE_NO_NODE && neighbours()[i].level == tree_own_level();
    alone = waiting() && !uplink_outstanding();
    cells = CELLS;
    return alone && siblings >= SIBLINGS;
}

bool snoop_alone(void) { return alone; }

bool snoop_take_cell(void) { return cells-- > 0; }

bool snoop_heard(uint16_t destination, const uint8_t *body, uint8_t length)
{
    const struct neighbour *to = neighbour_find(destination);
    const struct wire_record *record;
    if (to && neighbour_is_child(to)) return true;
    for (uint8_t at = sizeof(struct wire_bundle); (record = uplink_record(body, length, &at)) != NULL;) {
        const struct wire_partial *partial = (const struct wire_partial *)(record + 1);
        if (record->type == WIRE_PACKET_PARTIAL && record->body_length >= sizeof *partial && query_snoops(partial->query)
            && queue_room() > WIRE_PACKET_MAXIMUM)
            queue_push(QUEUE_HEARD, partial, record->body_length);
    }
    queue_withhold();
    return waiting();
}

void snoop_end(void)
{
    struct queue_record *record = queue_next(NULL);
    while (record) {
        bool heard = record->type == QUEUE_HEARD;
        if (heard) queue_remove(record);
        record = queue_next(heard ? NULL : record);
    }
}
