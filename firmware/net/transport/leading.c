#include "net/transport/leading.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/geographic.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

static struct {
    struct lead {
        struct way *way; /* that is being opened; NULL: none */
        union {
            struct {
                struct heading heading;
                uint16_t from; /* the neighbour by whom it came, and where that stands */
                struct place from_place;
                uint8_t left; /* hops that may be tried yet */
            };
            struct {
                uint8_t length;
                uint8_t vector[WIRE_VECTOR_MAXIMUM];
            };
        };
        uint8_t waited; /* windows in which not all neighbours have told where they stand */
    } leads[LEADS];
    struct {
        struct way *way;
        struct place place;
    } begun[PLACES];
    uint8_t windows;   /* a count of control windows */
    uint8_t asked : 4; /* times that neighbours were asked for their places in this window */
    bool tells : 1;    /* where it stands, in this window: it was asked to */
    bool told : 1;     /* … once */
} leading;

static bool begins_here(const struct way *way)
{
    return way && way->by_place && way->source == settings()->nodeid;
}

static const struct place *place_begun(const struct way *way)
{
    for (uint8_t i = 0; begins_here(way) && i < PLACES; i++)
        if (leading.begun[i].way == way)
            return &leading.begun[i].place;
    return NULL;
}

/* The first mote of a path vector, and how many bytes that takes; 0: it is none. */
static uint8_t first_of(const uint8_t *vector, uint8_t length, uint16_t *node)
{
    uint16_t difference = 0;
    for (uint8_t i = 0; i < length && i < 3; i++) {
        difference = (uint16_t)(difference | (uint16_t)((vector[i] & 0x7FU) << (7 * i)));
        if (vector[i] & 0x80)
            continue;
        uint16_t sign = difference & 1 ? UINT16_MAX : 0;
        *node = (uint16_t)(settings()->nodeid + ((difference >> 1) ^ sign));
        return (uint8_t)(i + 1);
    }
    return 0;
}

static struct lead *lead_of(const struct way *way)
{
    for (struct lead *lead = leading.leads; lead < leading.leads + LEADS; lead++)
        if (lead->way == way)
            return lead;
    return NULL;
}

/* What it holds is needed: the way is still to be sent on from here. */
static bool is_held(const struct lead *lead)
{
    const struct way *way = lead->way;
    return way && way->source != WIRE_NO_NODE && (way->by_place || way->by_vector) && way->opening;
}

/* Where a way that has come to this mote is led. One that begins here gives way to it: it is known
 * here where that goes, and it would not come any further but by neighbours that take others', too.
 * NULL: all lead others' on. */
static struct lead *lead_for(const struct way *way)
{
    struct lead *found = lead_of(way);
    for (struct lead *lead = leading.leads; !found && lead < leading.leads + LEADS; lead++)
        if (!is_held(lead))
            found = lead;
    for (struct lead *lead = leading.leads; !found && lead < leading.leads + LEADS; lead++)
        if (begins_here(lead->way) && !begins_here(way))
            found = lead;
    return found;
}

bool leading_goes(const struct way *way, const struct way_route *route)
{
    uint16_t first;
    if (!route)
        return !way->by_place && !way->by_vector;
    if (!route->place)
        return way->by_vector && !way->opening && first_of(route->vector, route->length, &first) &&
               first == way->next;
    const struct place *begun = place_begun(way);
    return begun && begun->x == route->place->x && begun->y == route->place->y;
}

/* One that is free, or whose way has been idle for longest; PLACES: there is none. */
static uint8_t free_place(void)
{
    uint8_t found = PLACES;
    for (uint8_t i = 0; i < PLACES; i++) {
        const struct way *way = leading.begun[i].way;
        if (!begins_here(way))
            return i;
        if (way_is_idle(way) && (found == PLACES || way->idle > leading.begun[found].way->idle))
            found = i;
    }
    return found;
}

bool leading_room(const struct way_route *route) { return !route->place || free_place() < PLACES; }

bool leading_begin(struct way *way, const struct way_route *route)
{
    if (!route->place) {
        if (route->length > WIRE_VECTOR_MAXIMUM || !leading_takes(way))
            return false;
        way->by_vector = true;
        leading_take_vector(way, route->vector, route->length);
        return true;
    }
    uint8_t slot = free_place();
    if (slot == PLACES)
        return false;
    struct way *idle = leading.begun[slot].way;
    way->by_place = true;
    if (idle != way && begins_here(idle))
        idle->source = WIRE_NO_NODE;
    for (uint8_t i = 0; i < PLACES; i++)
        if (leading.begun[i].way == way)
            leading.begun[i].way = NULL; /* It was another one's. */
    leading.begun[slot].way = way;
    leading.begun[slot].place = *route->place;
    return true;
}

bool leading_takes(const struct way *way) { return lead_for(way) != NULL; }

bool leading_possible(const struct wire_way_place *place)
{
    return place_possible(place->x, place->y) && place_possible(place->sender_x, place->sender_y) &&
           place_possible(place->entered_x, place->entered_y) && place->left <= WIRE_HOPS_MAXIMUM;
}

bool leading_knows(const struct way *way, const struct wire_way_place *place)
{
    const struct lead *lead = lead_of(way);
    return lead && lead->left == place->left;
}

void leading_take(struct way *way, uint16_t from, const struct wire_way_place *place,
                  bool perimeter)
{
    struct lead *lead = lead_for(way);
    if (!lead)
        return;
    *lead = (struct lead){.way = way,
                          .from = from,
                          .from_place = {place->sender_x, place->sender_y},
                          .left = place->left,
                          .heading = {.to = {place->x, place->y},
                                      .entered = {place->entered_x, place->entered_y},
                                      .crossed = place->crossed,
                                      .first = place->first,
                                      .second = place->second,
                                      .perimeter = perimeter}};
    place_told(from, lead->from_place);
}

void leading_take_vector(struct way *way, const uint8_t *vector, uint8_t length)
{
    struct lead *lead = lead_for(way);
    if (!lead)
        return;
    lead->way = way;
    lead->length = length;
    memcpy(lead->vector, vector, length);
}

void leading_again(const struct way *way)
{
    struct lead *lead = lead_of(way);
    if (lead)
        lead->way = NULL;
}

void leading_window(void)
{
    leading.asked = 0;
    if ((++leading.windows & (POSITION_WINDOWS - 1)) == 0)
        places_forget();
}

static void position_sent(enum radio_outcome outcome)
{
    (void)outcome;
    dissemination_sent();
}

/* Tells where this mote stands, and asks those `asked`. */
static bool send_position(const uint16_t *asked, uint8_t count)
{
    struct wire_position *position =
        mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_POSITION);
    struct place own = place_own();
    position->x = own.x;
    position->y = own.y;
    if (count)
        memcpy(position->asked, asked, count * sizeof *asked);
    leading.tells = false;
    leading.told = true;
    mac_finish(&control_frame, (uint8_t)(sizeof *position + count * sizeof *asked));
    return mac_send(&control_frame, 1, position_sent);
}

/* The source leads a way from its beginning on; others have what came with the packet. NULL: not
 * now, or not any more. */
static struct lead *led(struct way *way)
{
    const struct place *place = place_begun(way);
    struct lead *lead = lead_of(way);
    if (lead || !place)
        return lead;
    lead = lead_for(way);
    if (lead)
        *lead = (struct lead){
            .way = way, .from = WIRE_NO_NODE, .left = WIRE_HOPS_MAXIMUM, .heading = {.to = *place}};
    return lead;
}

static void write(struct leading_tail *tail, const struct heading *heading, uint8_t left)
{
    struct place own = place_own();
    tail->flags = (uint8_t)(WIRE_WAY_PLACE | (heading->perimeter ? WIRE_WAY_PERIMETER : 0));
    tail->length = sizeof tail->place;
    tail->place = (struct wire_way_place){.x = heading->to.x,
                                          .y = heading->to.y,
                                          .sender_x = own.x,
                                          .sender_y = own.y,
                                          .entered_x = heading->entered.x,
                                          .entered_y = heading->entered.y,
                                          .crossed = heading->crossed,
                                          .first = heading->first,
                                          .second = heading->second,
                                          .left = (uint8_t)(left - 1)};
}

static enum leading_outcome next_by_vector(struct way *way, struct leading_tail *tail)
{
    const struct lead *lead = lead_of(way);
    if (!lead)
        return LEADING_BUSY;
    uint8_t taken = first_of(lead->vector, lead->length, &way->next);
    if (!taken || way->next == settings()->nodeid || way->next == WIRE_NO_NODE)
        return LEADING_LOST;
    tail->flags = WIRE_WAY_VECTOR;
    tail->length = (uint8_t)(lead->length - taken);
    memcpy(tail->vector, lead->vector + taken, tail->length);
    return LEADING_ON;
}

static enum leading_outcome next_by_place(struct way *way, struct leading_tail *tail)
{
    struct lead *lead = led(way);
    if (!lead)
        return LEADING_BUSY;
    uint16_t unknown[WIRE_POSITIONS_ASKED];
    uint8_t count = places_unknown(unknown);
    /* Who does not answer may have been asleep already. */
    if (count && lead->waited < POSITION_WAITED) {
        if (leading.asked == POSITION_ASKED) {
            lead->waited++;
            return LEADING_WAITS;
        }
        leading.asked++;
        (void)send_position(unknown, count);
        return LEADING_ASKS;
    }
    /* A copy: should the next mote not acknowledge it, the choice is made anew. */
    struct heading heading = lead->heading;
    const struct neighbour *direct = neighbour_find(way->destination);
    enum heading_outcome outcome = HEADING_ON;
    if (way->destination != WIRE_NO_NODE && direct && place_is_linked(direct))
        way->next = way->destination;
    else
        outcome = geographic_next(&heading, lead->from, lead->from_place, &way->next);
    if (outcome == HEADING_ARRIVED && way->destination == WIRE_NO_NODE)
        return LEADING_ARRIVED;
    if (outcome != HEADING_ON || lead->left == 0) {
        /* The next way may go by those that this one has avoided. */
        places_not_avoided();
        return LEADING_LOST;
    }
    write(tail, &heading, lead->left);
    return LEADING_ON;
}

enum leading_outcome leading_next(struct way *way, struct leading_tail *tail)
{
    return way->by_vector ? next_by_vector(way, tail) : next_by_place(way, tail);
}

bool leading_position_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_position *position = (const struct wire_position *)body;
    uint16_t own = settings()->nodeid;
    if (length < sizeof *position || (length - sizeof *position) % sizeof own != 0 ||
        length > sizeof *position + WIRE_POSITIONS_ASKED * sizeof own ||
        !place_possible(position->x, position->y))
        return false;
    if (!tree_joined())
        return true;
    place_told(from, (struct place){position->x, position->y});
    for (const uint8_t *asked = position->asked; asked < body + length; asked += sizeof own)
        if (memcmp(asked, &own, sizeof own) == 0)
            leading.tells = true;
    return true;
}

void leading_moved(void)
{
    places_forget();
    leading.tells = leading.told;
}

bool leading_waits(const struct way *way) { return begins_here(way) && !lead_of(way); }

bool leading_tells(void) { return leading.tells; }

bool leading_tell(void) { return send_position(NULL, 0); }
