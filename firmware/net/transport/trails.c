#include "net/transport/trails.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/routing_conf.h"
#include "net/routing/tree.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"
#include "wire.h"

struct trail {
    uint16_t destination; /* WIRE_NO_NODE: free */
    uint16_t next;        /* this mote's own number: it is the destination */
    uint8_t hop;          /* from the destination */
    uint8_t age : 6;      /* since it was used */
    bool untold : 1;      /* the parent has not acknowledged it yet */
    bool due : 1;         /* … it is to go in this window */
};

static struct {
    struct trail trails[TRAILS];
    struct trail *sending;
    uint8_t windows; /* a count of control windows, which they age by */
} known;

void trails_forget(void)
{
    for (uint8_t i = 0; i < TRAILS; i++)
        known.trails[i].destination = WIRE_NO_NODE;
}

void trails_init(void) { trails_forget(); }

static struct trail *trail_to(uint16_t destination)
{
    for (struct trail *trail = known.trails; trail < known.trails + TRAILS; trail++)
        if (trail->destination == destination)
            return trail;
    return NULL;
}

/* Of more than there is room for, the one that was not used for longest is forgotten. */
static struct trail *place(uint16_t destination)
{
    struct trail *trail = trail_to(destination);
    if (!trail)
        trail = trail_to(WIRE_NO_NODE);
    if (trail)
        return trail;
    trail = known.trails;
    for (struct trail *other = trail + 1; other < known.trails + TRAILS; other++)
        if (other->age > trail->age)
            trail = other;
    return trail;
}

static void lay(uint16_t destination, uint16_t next, uint8_t hop)
{
    bool goes_on = !tree_is_root() && hop < LEVEL_MAXIMUM;
    *place(destination) = (struct trail){
        .destination = destination, .next = next, .hop = hop, .untold = goes_on, .due = goes_on};
}

void trails_lay(void)
{
    if (!tree_is_root())
        lay(settings()->nodeid, settings()->nodeid, 0);
}

void trails_parent_changed(void)
{
    for (uint8_t i = 0; i < TRAILS; i++)
        known.trails[i].untold = known.trails[i].hop < LEVEL_MAXIMUM;
}

uint16_t trails_next(uint16_t destination)
{
    struct trail *trail = trail_to(destination);
    if (!trail)
        return WIRE_NO_NODE;
    trail->age = 0;
    return trail->next;
}

void trails_end(uint16_t destination, uint16_t next)
{
    struct trail *trail = trail_to(destination);
    if (trail && trail->next == next && next != settings()->nodeid)
        trail->destination = WIRE_NO_NODE;
}

bool trails_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_trail *trail = (const struct wire_trail *)body;
    if (length != sizeof *trail || trail->destination == WIRE_NO_NODE || trail->hop == 0 ||
        trail->hop > LEVEL_MAXIMUM)
        return false;
    if (tree_joined() && trail->destination != settings()->nodeid)
        lay(trail->destination, from, trail->hop);
    return true;
}

void trails_window(bool all_awake)
{
    bool older = (++known.windows & (TRAIL_AGES - 1)) == 0;
    for (struct trail *trail = known.trails; trail < known.trails + TRAILS; trail++) {
        if (trail->destination == WIRE_NO_NODE)
            continue;
        trail->due = trail->untold && all_awake;
        if (older && trail->age == TRAIL_AGE_MOST)
            trail->destination = WIRE_NO_NODE;
        else if (older)
            trail->age++;
    }
}

static struct trail *due(void)
{
    for (struct trail *trail = known.trails; trail < known.trails + TRAILS; trail++)
        if (trail->destination != WIRE_NO_NODE && trail->due)
            return trail;
    return NULL;
}

bool trails_waiting(void) { return due() != NULL; }

static void sent(enum radio_outcome outcome)
{
    if (outcome == RADIO_SENT)
        known.sending->untold = false;
    dissemination_sent();
}

bool trails_send(void)
{
    struct trail *trail = due();
    if (!trail || tree_own_parent() == WIRE_NO_NODE)
        return false;
    trail->due = false;
    known.sending = trail;
    struct wire_trail *told = mac_begin(&control_frame, tree_own_parent(), WIRE_PACKET_TRAIL);
    told->destination = trail->destination;
    told->hop = (uint8_t)(trail->hop + 1);
    mac_finish(&control_frame, sizeof *told);
    return mac_send(&control_frame, UNICAST_TRIES, sent);
}
