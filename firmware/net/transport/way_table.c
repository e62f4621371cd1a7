/* The root is the last to know a mote that nobody else does: it has that one asked for by a flood,
 * and the mote lays a trail. Trails that lead nowhere any more lie only on branches that a mote has
 * left. A way that a trail would lead back to whom it came from is sent back: either that one knows
 * the trail by now, or it denies it, and the trail is over. */
#include "net/transport/way_table.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "lib/random.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/neighbours.h"
#include "net/routing/positions.h"
#include "net/routing/routing_conf.h"
#include "net/routing/tree.h"
#include "net/transport/command_flood.h"
#include "net/transport/leading.h"
#include "net/transport/trails.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

/* A neighbour that is the destination is sent to at once, whatever the tree says, over links of so
 * many transmissions at most. */
#define DIRECT_COST (3 * COST_UNIT / 2)
/* The root floods a question in the second window in which it has no trail: one may be on its way.
 */
#define TRIES_FIND 1

static struct {
    struct way table[WAYS];
    /* A neighbour's way for which there is no place here. */
    struct {
        uint16_t to; /* WIRE_NO_NODE: none */
        uint16_t source;
        uint8_t number;
    } refusal;
    bool refuses;        /* … which it is told in this window */
    uint8_t next_number; /* of this mote's next way */
    struct way *sending; /* what is being sent is of this one */
} known;

struct way *way_table(void) { return known.table; }

static void release(struct way *way)
{
    way_drops_records(way);
    way->source = WIRE_NO_NODE;
}

void ways_init(void)
{
    for (uint8_t i = 0; i < WAYS; i++)
        known.table[i].source = WIRE_NO_NODE;
    known.refusal.to = WIRE_NO_NODE;
    trails_init();
    places_forget();
    /* From anywhere on: others may still hold ways of before a restart. */
    known.next_number = (uint8_t)random_bits();
}

void ways_forget(void)
{
    for (uint8_t i = 0; i < WAYS; i++)
        if (known.table[i].source != WIRE_NO_NODE)
            release(&known.table[i]);
    known.refusal.to = WIRE_NO_NODE;
    trails_forget();
}

#define IS_SAME(one, other) ((((one) ^ (other)) & (uint8_t)-WAY_OPENINGS) == 0)

static void open_anew(struct way *way)
{
    way->number = (uint8_t)((way->number & (uint8_t)-WAY_OPENINGS) |
                            ((way->number + 1) & (WAY_OPENINGS - 1)));
    way->opening = true;
    way->ready = way->confirms = false;
}

static struct way *find(uint16_t source, uint8_t number)
{
    for (struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->source == source && IS_SAME(way->number, number) && source != WIRE_NO_NODE)
            return way;
    return NULL;
}

/* A free place, or that of the way which has been idle for longest and was not used in its last
 * round; NULL: all are in use. */
static struct way *place(void)
{
    struct way *idlest = NULL;
    for (struct way *way = known.table; way < known.table + WAYS; way++) {
        if (way->source == WIRE_NO_NODE)
            return way;
        if (way_is_idle(way) && (!idlest || way->idle > idlest->idle))
            idlest = way;
    }
    return idlest;
}

static struct way *begin(uint16_t source, uint8_t number)
{
    struct way *way = place();
    if (!way)
        return NULL;
    leading_again(way); /* What is known there is of the way before. */
    *way = (struct way){.source = source,
                        .number = number,
                        .previous = WIRE_NO_NODE,
                        .next = WIRE_NO_NODE,
                        .opening = true,
                        .due = true};
    return way;
}

/* It does not go by the tree, and only its source knows how. */
static bool is_led(const struct way *way) { return way->by_place || way->by_vector; }

static bool leads_to(const struct way *way, uint16_t destination, const struct way_route *route)
{
    return way->source == settings()->nodeid && way->destination == destination &&
           leading_goes(way, route);
}

struct way *way_to(uint16_t destination, const struct way_route *route, uint8_t every)
{
    uint16_t own = settings()->nodeid;
    for (struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->every <= every && leads_to(way, destination, route))
            return way;
    /* Else another one would give way for nothing. */
    if (route && !leading_room(route))
        return NULL;
    struct way *way = begin(own, known.next_number);
    if (!way)
        return NULL;
    way->destination = destination;
    way->every = every & 15U;
    if (route && !leading_begin(way, route)) {
        way->source = WIRE_NO_NODE;
        return NULL;
    }
    known.next_number = (uint8_t)(known.next_number + WAY_OPENINGS);
    return way;
}

struct way *way_of(uint16_t from, uint16_t source, uint8_t number)
{
    struct way *way = find(source, number);
    return way && way->previous == from ? way : NULL;
}

#ifdef BOARD_TUPLES
struct way *way_forgotten(uint16_t from, uint16_t source, uint8_t number, uint8_t hop)
{
    if (!tree_joined() || source == settings()->nodeid || find(source, number))
        return NULL;
    struct way *way = begin(source, number);
    if (!way)
        return NULL;
    way->destination = settings()->nodeid;
    way->previous = from;
    way->hop = hop & 0x7FU;
    way->every = WAY_EVERY_LEAST;
    way->opening = way->due = false;
    way->ends = true;
    return way;
}
#endif

/* ---- opening ---- */
/* The neighbour by whom it goes on; WIRE_NO_NODE: none, or not yet. `down`: by a trail. */
static uint16_t next_hop(struct way *way, bool *down)
{
    const struct neighbour *neighbour = neighbour_find(way->destination);
    *down = true;
    if (neighbour && way->tries == 0 && neighbour_link_cost(neighbour) <= DIRECT_COST)
        return way->destination;
    uint16_t next = trails_next(way->destination);
    if (next != WIRE_NO_NODE && next == way->previous && way->denied) {
        trails_end(way->destination, next);
        next = WIRE_NO_NODE;
    }
    /* Whom it comes from has laid the trail since, or does not know that it is over. */
    if (next != WIRE_NO_NODE)
        return next == way->previous ? WIRE_NO_NODE : next;
    *down = false;
    return way->down ? WIRE_NO_NODE : tree_own_parent();
}

static void end(struct way *way)
{
    way->next = WIRE_NO_NODE;
    way->opening = way->due = false;
    way->ends = true;
    if (way->previous == WIRE_NO_NODE)
        way_delivers_records(way);
    else
        way->confirms = way->due = way->by_place;
}

static void give_up(struct way *way)
{
    way_loses_records(way);
    if (way->previous == WIRE_NO_NODE) {
        way->source = WIRE_NO_NODE;
        return;
    }
    way->opening = way->back = false;
    way->lost = way->due = true;
    way->tries = 0;
}

/* To a place a way may go around a hole, and be cut short then: what has gone already would be
 * left there. */
bool way_may_send(const struct way *way)
{
    bool begins = way->previous == WIRE_NO_NODE;
    return !way->opening && !way->lost && !way->ends && !(begins && way->by_place && !way->ready) &&
           way_has_records(way);
}

void way_used(struct way *way) { way->idle = way->tries = way->vain = 0; }

void way_vain(struct way *way)
{
    if (way->vain < WAY_VAIN - 1) {
        way->vain++;
        return;
    }
    way->vain = 0;
    /* Who does not listen has no such way, or is gone. */
    trails_end(way->destination, way->next);
    open_anew(way);
    way->due = false;
    way->tries = 1; /* not to the same neighbour, because it is one */
    if (is_led(way) && way->previous != WIRE_NO_NODE)
        give_up(way);
}

void way_idle(struct way *way)
{
    bool begins = way->previous == WIRE_NO_NODE,
         unanswered = begins && way->by_place && !way->opening && !way->ready;
    uint8_t most = unanswered ? WAY_UNANSWERED : begins ? WAY_IDLE - 2 : WAY_IDLE;
    /* How long it may be opened is counted in windows, which are seldom in a slow network. */
    if (way->idle <= most && !(begins && way->opening))
        way->idle++;
    if (way->idle <= most)
        return;
    bool waits = way_has_records(way);
    if (unanswered && (waits || ++way->tries < WAY_WINDOWS)) {
        /* Nobody has said that it leads there: a mote of it has refused or forgotten it without a
         * word that came. What waits here would wait for as long as more of it comes. */
        open_anew(way);
        leading_again(way);
        way->idle = 0;
    } else if (!waits)
        release(way);
}

/* What a WAY_OPEN says of a place; NULL: it is none. */
static const struct wire_way_place *place_in(const struct wire_way_open *open)
{
    return open->flags & WIRE_WAY_PLACE ? (const struct wire_way_place *)open->more : NULL;
}

static bool is_possible(const struct wire_way_open *open, uint8_t length)
{
    if (length < sizeof *open || open->source == WIRE_NO_NODE ||
        open->source == open->destination || open->hop == 0 || open->hop > WIRE_HOPS_MAXIMUM ||
        open->every < WAY_EVERY_LEAST || open->every > WAY_EVERY_MOST)
        return false;
    if (open->flags & WIRE_WAY_VECTOR)
        return open->flags == WIRE_WAY_VECTOR && open->destination != WIRE_NO_NODE &&
               length <= sizeof *open + WIRE_VECTOR_MAXIMUM;
    const struct wire_way_place *place = place_in(open);
    if (!place)
        return length == sizeof *open && open->destination != WIRE_NO_NODE &&
               !(open->flags & ~(uint8_t)(WIRE_WAY_DOWN | WIRE_WAY_DENIES));
    return length == sizeof *open + sizeof *place &&
           !(open->flags & ~(uint8_t)(WIRE_WAY_PLACE | WIRE_WAY_PERIMETER)) &&
           leading_possible(place);
}

static void refuse(uint16_t to, const struct wire_way_open *open)
{
    if (known.refusal.to != WIRE_NO_NODE)
        return;
    known.refusal.to = to;
    known.refusal.source = open->source;
    known.refusal.number = open->number;
    known.refuses = true;
}

/* Its source knows one way to a mote by the tree, with cells as often, and begins another one when
 * it has none any more: what is left of those before would keep its place here until it lapses, and
 * the new one be refused. */
static void make_place(const struct wire_way_open *open)
{
    for (struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->source == open->source && way->destination == open->destination &&
            way->every == open->every && way->previous != WIRE_NO_NODE && !is_led(way) &&
            (int8_t)(open->number - way->number) > 0)
            release(way);
}

bool ways_open_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_way_open *open = (const struct wire_way_open *)body;
    if (!is_possible(open, length))
        return false;
    if (!tree_joined())
        return true;
    struct way *way = find(open->source, open->number);
    /* Where it ends nobody has to lead it on, and whoever comes last is the previous one. */
    bool ends = open->destination == settings()->nodeid;
    bool round = !ends && way && way->number == open->number && open->hop > way->hop;
    if (way && way->previous == WIRE_NO_NODE && !round)
        return true; /* It has begun here, and this is of an opening before. */
    const struct wire_way_place *place = place_in(open);
    /* It has gone on already: two of the same way would go around after each other. */
    if (way && place && !ends && way->number == open->number && !way->opening && !way->lost &&
        leading_knows(way, place))
        return true;
    if (!ends && open->flags & (WIRE_WAY_PLACE | WIRE_WAY_VECTOR) && !leading_takes(way)) {
        refuse(from, open);
        return true;
    }
    if (!way && open->source != settings()->nodeid) {
        if (!(open->flags & (WIRE_WAY_PLACE | WIRE_WAY_VECTOR)))
            make_place(open);
        way = begin(open->source, open->number);
    }
    if (!way) {
        refuse(from, open);
        return true;
    }
    if (place && !ends)
        leading_take(way, from, place, open->flags & WIRE_WAY_PERIMETER);
    way->by_place = place != NULL;
    way->by_vector = open->flags & WIRE_WAY_VECTOR;
    if (way->by_vector && !ends)
        leading_take_vector(way, open->more, (uint8_t)(length - sizeof *open));
    way->due = way->opening = true;
    way->ends = way->ready = way->confirms = false;
    way->lost = false;
    way->down = open->flags & WIRE_WAY_DOWN;
    way->denied = open->flags & WIRE_WAY_DENIES;
    way->denies = false;
    way->idle = way->tries = 0;
    /* It has come round: what lies between is left out, and not gone to again. */
    if (round) {
        trails_end(way->destination, way->next);
        return true;
    }
    way->number = open->number;
    way->previous = from;
    way->destination = open->destination;
    way->hop = open->hop & 0x7FU;
    way->every = open->every & 15U;
    if (ends)
        end(way);
    return true;
}

bool ways_state_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_way_state *told = (const struct wire_way_state *)body;
    if (length != sizeof *told || told->state > WIRE_WAY_IS_OPEN)
        return false;
    struct way *way = find(told->source, told->number);
    if (!way || way->next != from)
        return true;
    way->awaits = false;
    if (told->state == WIRE_WAY_IS_OPEN) {
        way->ready = !way->opening;
        way->idle = 0;
        way->confirms = way->due = way->ready && way->previous != WIRE_NO_NODE;
        return true;
    }
    bool by_trail = !is_led(way) && !way->down && from != tree_own_parent(),
         denies = told->state == WIRE_WAY_IS_BACK && from == tree_own_parent() && !way->denies,
         again = way->by_place && way->previous == WIRE_NO_NODE && ++way->tries < WAY_WINDOWS;
    trails_end(way->destination, from);
    if (!by_trail && !denies && !again) {
        give_up(way);
        return true;
    }
    open_anew(way);
    way->denies = denies;
    /* To a place not by the same motes in the same window. */
    way->due = !again;
    if (again)
        leading_again(way);
    return true;
}

void ways_trail_laid(uint16_t destination)
{
    for (struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->source != WIRE_NO_NODE && way->opening && way->destination == destination) {
            way->due = true;
            way->denied = false; /* Whoever had no trail may be the one who has laid it now. */
        }
}

/* ---- control windows ---- */
void ways_window(bool all_awake)
{
    trails_window(all_awake);
    leading_window();
    for (struct way *way = known.table; way < known.table + WAYS; way++) {
        way->due = way->source != WIRE_NO_NODE && all_awake &&
                   (way->opening || way->lost || way->confirms);
        way->awaits = false;
    }
    known.refuses = all_awake && known.refusal.to != WIRE_NO_NODE;
}

bool ways_waiting(void)
{
    for (uint8_t i = 0; i < WAYS; i++)
        if (known.table[i].source != WIRE_NO_NODE && known.table[i].due)
            return true;
    return known.refuses || trails_waiting() || leading_tells();
}

/* One has been led on: those that begin here, and waited for that, may go in the same window. */
static void led_on(void)
{
    for (struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->source != WIRE_NO_NODE && way->opening && leading_waits(way))
            way->due = true;
}

/* A neighbour has acknowledged nothing: where that is so in the next window, too, others are gone
 * by. */
static void not_heard(struct way *way)
{
    if (way->by_place && way->deaf)
        place_avoid(way->next);
    way->deaf = !way->deaf;
    if (++way->tries >= WAY_WINDOWS)
        give_up(way);
    else if (way->tries >= 2)
        trails_end(way->destination, way->next);
}

bool ways_awaited(void)
{
    for (const struct way *way = known.table; way < known.table + WAYS; way++)
        if (way->source != WIRE_NO_NODE && way->awaits)
            return true;
    return false;
}

static void way_sent(enum radio_outcome outcome)
{
    struct way *way = known.sending;
    if (way->source == WIRE_NO_NODE || outcome == RADIO_BUSY || outcome == RADIO_FAILED) {
        /* in the next window */
    } else if (way->lost && (outcome == RADIO_SENT || ++way->tries >= WAY_TRIES))
        release(way);
    else if (way->opening && outcome == RADIO_SENT) {
        way->opening = way->deaf = false;
        way->awaits = is_led(way);
        led_on();
    } else if (way->confirms && !way->opening)
        way->confirms = outcome != RADIO_SENT;
    else if (way->opening)
        not_heard(way);
    dissemination_sent();
}

static void refusal_sent(enum radio_outcome outcome)
{
    if (outcome != RADIO_BUSY)
        known.refusal.to = WIRE_NO_NODE;
    dissemination_sent();
}

static bool send_state(uint16_t to, uint16_t source, uint8_t number, uint8_t is, mac_handler *done)
{
    struct wire_way_state *state = mac_begin(&control_frame, to, WIRE_PACKET_WAY_STATE);
    *state = (struct wire_way_state){.source = source, .number = number, .state = is};
    mac_finish(&control_frame, sizeof *state);
    return mac_send(&control_frame, UNICAST_TRIES, done);
}

/* At the root, which has no trail: all motes are asked, once, in the hope of one. */
static void ask_for(uint16_t destination)
{
    struct wire_command command = {
        .target = destination, .token = random_bits() | TOKENS_OF_MOTES, .op = WIRE_COMMAND_FIND};
    if (command_flood_room())
        command_flood_take(&command, sizeof command);
}

static bool send_way_open(const struct way *way, uint8_t flags, const struct leading_tail *tail)
{
    struct wire_way_open *open = mac_begin(&control_frame, way->next, WIRE_PACKET_WAY_OPEN);
    *open = (struct wire_way_open){.source = way->source,
                                   .number = way->number,
                                   .flags = flags,
                                   .destination = way->destination,
                                   .hop = (uint8_t)(way->hop + 1),
                                   .every = way->every};
    if (tail)
        memcpy(open->more, tail->vector, tail->length);
    mac_finish(&control_frame, (uint8_t)(sizeof *open + (tail ? tail->length : 0)));
    return mac_send(&control_frame, UNICAST_TRIES, way_sent);
}

static bool send_open_led(struct way *way)
{
    struct leading_tail tail;
    switch (leading_next(way, &tail)) {
    case LEADING_ASKS: way->due = true; return true;
    case LEADING_WAITS: return false;
    case LEADING_ARRIVED: end(way); return false;
    case LEADING_ON:
        if (way->hop < WIRE_HOPS_MAXIMUM)
            return send_way_open(way, tail.flags, &tail);
        break;
    case LEADING_BUSY:
        if (way->previous == WIRE_NO_NODE && !way->by_vector)
            return false;
        break;
    case LEADING_LOST: break;
    }
    give_up(way);
    return false;
}

/* False: there is nobody to send it to in this window. */
static bool send_open(struct way *way)
{
    if (is_led(way))
        return send_open_led(way);
    bool down;
    uint16_t next = next_hop(way, &down);
    if (next == WIRE_NO_NODE) {
        bool back = trails_next(way->destination) != WIRE_NO_NODE;
        if (!way->down && tree_is_root() && way->tries == TRIES_FIND)
            ask_for(way->destination);
        if (back || way->down || ++way->tries >= WAY_WINDOWS)
            give_up(way);
        way->back = back;
        return false;
    }
    way->next = next;
    return send_way_open(
        way,
        (uint8_t)((down || way->down ? WIRE_WAY_DOWN : 0) | (way->denies ? WIRE_WAY_DENIES : 0)),
        NULL);
}

bool ways_control_send(void)
{
    if (mac_busy())
        return true;
    if (leading_tells())
        return leading_tell();
    if (known.refuses) {
        known.refuses = false;
        return send_state(known.refusal.to, known.refusal.source, known.refusal.number,
                          WIRE_WAY_IS_LOST, refusal_sent);
    }
    if (trails_send())
        return true;
    for (struct way *way = known.table; way < known.table + WAYS; way++) {
        if (way->source == WIRE_NO_NODE || !way->due)
            continue;
        way->due = false;
        known.sending = way;
        if (way->opening && send_open(way))
            return true;
        if (way->source == WIRE_NO_NODE || !(way->lost || way->confirms))
            continue;
        way->due = false;
        return send_state(way->previous, way->source, way->number,
                          !way->lost  ? WIRE_WAY_IS_OPEN
                          : way->back ? WIRE_WAY_IS_BACK
                                      : WIRE_WAY_IS_LOST,
                          way_sent);
    }
    return false;
}
