/* Why it is exact: who sends a state keeps it until it is acknowledged, and who acknowledges passes
 * it on, or has heard of one that leaves it without effect. The state heard is therefore on its way
 * to the root without this mote, unless it goes through it: to it, or to one of its children. What
 * is heard counts in this slot only, in which no child sends. */
#include "net/transport/snoop.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/uplink.h"

/* Cells to listen in. */
#define CELLS 8
/* Fewer siblings are not worth listening to. */
#define SIBLINGS 5

static uint8_t cells; /* to listen in yet */
/* Of an approximate query (query/operators/approximate.c): whom this mote has named to whom. */
static struct {
    uint16_t parent, speaker;
    uint8_t query, missed;
} named = {.speaker = WIRE_NO_NODE};
/* Its speaker was not heard, or unlike, in so many epochs: others are listened to. */
#define MISSED_MOST 2

static bool silent; /* … whose children may have nothing to send */
/* all that waited in the last slot of an epoch's rows were states of queries that snoop */
static bool alone;

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
        silent &= !app_approximates(record->body[offsetof(struct wire_partial, query)]);
    }
    return some;
}

bool snoop_begin(void)
{
    uint8_t siblings = 0;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n))
        if (n->level == tree_own_level())
            siblings++;
    silent = true;
    alone = waiting() && !uplink_outstanding();
    cells = CELLS;
    if (named.parent != tree_own_parent() || named.missed++ > MISSED_MOST ||
        !app_approximates(named.query))
        named.speaker = WIRE_NO_NODE;
    return alone && siblings >= SIBLINGS;
}

bool snoop_may_be_silent(void) { return alone && silent; }

bool snoop_take_cell(void) { return cells-- > 0; }

uint16_t snoop_representative(void) { return named.speaker; }

/* A state of an approximate query, to this mote's parent: its own is withheld, or names the
 * speaker. */
static void heard_alike(uint16_t source, const struct wire_partial *heard, uint8_t length)
{
    uint16_t self = settings()->nodeid;
    struct queue_record *own = NULL;
    bool said = named.speaker == source && named.query == heard->query;
    /* One speaker, of one query: the others are exact. And a root does not keep all. */
    if ((named.speaker != WIRE_NO_NODE && !said) ||
        (tree_own_level() == 1 &&
         (source >= APP_APPROXIMATE_NODES || self >= APP_APPROXIMATE_NODES)))
        return;
    /* An older state may be the one that names the speaker, and has not gone yet. */
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
        named.missed = 0;
    if (said && ((uint8_t)heard->epoch + self) % APP_APPROXIMATE_EVERY != 0) {
        queue_remove(own);
        return;
    }
    /* Who names a speaker may be silent next time. */
    if (!said && length == app_state_size(heard->query))
        return;
    named.parent = tree_own_parent();
    named.speaker = source;
    named.query = heard->query;
    named.missed = 0;
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
