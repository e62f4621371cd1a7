/* Suppression loses nothing: a sender keeps its record until it is acknowledged; the receiver
 * forwards it or has overheard one that makes it redundant. The record overheard is therefore on
 * its way to the root without this mote, unless it goes through it: to it, or to one of its
 * children. What was overheard counts in this slot only, in which no child sends. */
#include "net/transport/snoop.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/transport_conf.h"
#include "net/transport/uplink.h"

/* A representative that was not heard, or was unlike, in so many epochs is one no more: others are
 * listened to. */
#define MISSED_MOST 2

static struct {
    uint8_t cells_left; /* to listen in yet, in this slot */
    /* The sibling that this mote has named to its parent as its representative, for an approximate
     * query (query/operators/approximate.c): it may be silent while it hears that one. */
    struct {
        uint16_t parent;
        uint16_t node; /* WIRE_NO_NODE: none is named */
        uint8_t query;
        uint8_t missed; /* epochs in which it was not heard, or unlike, one after the other */
    } representative;
    /* All that waits may be suppressed: in the last slot of an epoch's rows, there were but partial
     * states of queries that snoop. */
    bool only_suppressible_pending;
    bool exact_only; /* … and none of an approximate query: children may have nothing to send */
} snoop = {.representative.node = WIRE_NO_NODE};

/* Something, and nothing but states of queries that snoop. */
static bool waiting(void)
{
    bool some = false;
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record)) {
        if (record->type == QUEUE_HEARD)
            continue;
        if (record->type != WIRE_PACKET_PARTIAL ||
            !app_snoops(record->body[offsetof(struct wire_partial, query)]))
            return false;
        some = true;
        snoop.exact_only &= !app_approximates(record->body[offsetof(struct wire_partial, query)]);
    }
    return some;
}

bool snoop_begin(void)
{
    uint8_t siblings = 0;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n))
        if (n->level == tree_own_level())
            siblings++;
    snoop.exact_only = true;
    snoop.only_suppressible_pending = waiting() && !uplink_outstanding();
    snoop.cells_left = SNOOP_CELLS;
    if (snoop.representative.parent != tree_own_parent() ||
        snoop.representative.missed++ > MISSED_MOST ||
        !app_approximates(snoop.representative.query))
        snoop.representative.node = WIRE_NO_NODE;
    return snoop.only_suppressible_pending && siblings >= SNOOP_SIBLINGS;
}

bool snoop_may_be_silent(void) { return snoop.only_suppressible_pending && snoop.exact_only; }

bool snoop_take_cell(void) { return snoop.cells_left-- > 0; }

uint16_t snoop_representative(void) { return snoop.representative.node; }

/* A state of an approximate query, to this mote's parent: its own is withheld, or names
 * the sender its representative. */
static void heard_alike(uint16_t source, const struct wire_partial *heard, uint8_t length)
{
    uint16_t self = settings()->nodeid;
    struct queue_record *own = NULL;
    bool said = snoop.representative.node == source && snoop.representative.query == heard->query;
    /* There is one representative, for one query: for the others the mote sends. And a root keeps
     * only some. */
    if ((snoop.representative.node != WIRE_NO_NODE && !said) ||
        (tree_own_level() == 1 &&
         (source >= APP_APPROXIMATE_NODES || self >= APP_APPROXIMATE_NODES)))
        return;
    /* An older state may be the one that names the representative, and has not gone yet. */
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record))
        if (record->type == WIRE_PACKET_PARTIAL &&
            record->body[offsetof(struct wire_partial, query)] == heard->query) {
            if (own)
                return;
            own = record;
        }
    if (!own || !app_alike((const struct wire_partial *)own->body, own->length, heard, length))
        return;
    if (said)
        snoop.representative.missed = 0;
    if (said && ((uint8_t)heard->epoch + self) % APP_APPROXIMATE_EVERY != 0) {
        queue_remove(own);
        return;
    }
    /* A record that names a representative itself may not be sent next time. */
    if (!said && length == app_state_size(heard->query))
        return;
    snoop.representative.parent = tree_own_parent();
    snoop.representative.node = source;
    snoop.representative.query = heard->query;
    snoop.representative.missed = 0;
    app_name_representative(heard->query, heard->epoch, source);
}

bool snoop_heard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length)
{
    const struct neighbour *to = neighbour_find(destination);
    const struct wire_record *record;
    if (to && neighbour_is_child(to))
        return true;
    for (uint8_t at = sizeof(struct wire_bundle);
         (record = uplink_record(body, length, &at)) != NULL;) {
        const struct wire_partial *partial = (const struct wire_partial *)(record + 1);
        if (record->type != WIRE_PACKET_PARTIAL || record->body_length < sizeof *partial ||
            !app_snoops(partial->query) || queue_room() <= WIRE_PACKET_MAXIMUM)
            continue;
        if (!app_approximates(partial->query))
            queue_push(QUEUE_HEARD, partial, record->body_length);
        else if (destination == tree_own_parent())
            heard_alike(source, partial, record->body_length);
    }
    queue_withhold();
    return waiting();
}

void snoop_end(void)
{
    struct queue_record *record = queue_next(NULL);
    while (record) {
        bool heard = record->type == QUEUE_HEARD;
        if (heard)
            queue_remove(record);
        record = queue_next(heard ? NULL : record);
    }
}
