/* Forwarding to places: across drawn fields with holes in them, from mote to mote, each of which
 * knows its neighbours alone.
 * sources: net/routing/geographic.c net/routing/positions.c net/routing/neighbours.c */
#include <stdbool.h>

#include "unit.h"

#include "drivers/settings.h"
#include "net/app.h"
#include "net/routing/geographic.h"

enum { MOTES = 120, STEPS = 400, SIDE = 2000, RANGE = 330 };

static struct wire_settings own;
const struct wire_settings *settings(void) { return &own; }
void app_srt_forget(uint8_t neighbour) { (void)neighbour; }
bool neighbour_is_parent(uint16_t node) { return node == WIRE_NO_NODE; }
uint16_t neighbour_worth(const struct neighbour *neighbour) { return neighbour->heard; }

static struct place field[MOTES];
static bool connected[MOTES];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 33) % below;
}

static long apart(struct place a, struct place b)
{
    long x = a.x - b.x, y = a.y - b.y;
    return x * x + y * y;
}

static bool linked(int a, int b)
{
    return a != b && apart(field[a], field[b]) <= (long)RANGE * RANGE;
}

/* The firmware becomes this mote. */
static void become(int mote)
{
    own.nodeid = (uint16_t)mote;
    own.x = field[mote].x * 10;
    own.y = field[mote].y * 10;
    neighbours_clear();
    places_forget();
    int count = 0;
    for (int other = 0; other < MOTES && count < NEIGHBOURS; other++)
        if (linked(mote, other)) {
            neighbours()[count++] =
                (struct neighbour){.node = (uint16_t)other, .heard = 255, .hears = 255};
            place_told((uint16_t)other, field[other]);
        }
}

static int degree(int mote)
{
    int count = 0;
    for (int other = 0; other < MOTES; other++)
        count += linked(mote, other);
    return count;
}

static void connect(int mote)
{
    connected[mote] = true;
    for (int other = 0; other < MOTES; other++)
        if (linked(mote, other) && !connected[other])
            connect(other);
}

/* A field with a hole in its middle, and in it motes that have fewer neighbours than there is room
 * for. */
static void make_field(void)
{
    for (int mote = 0; mote < MOTES; mote++)
        do {
            field[mote].x = (int16_t)((int)draw(SIDE) - SIDE / 2);
            field[mote].y = (int16_t)((int)draw(SIDE) - SIDE / 2);
        } while (apart(field[mote], (struct place){0, 0}) < (long)(SIDE / 4) * (SIDE / 4));
    memset(connected, 0, sizeof connected);
    connect(0);
}

static int nearest(struct place place)
{
    int best = 0;
    for (int mote = 0; mote < MOTES; mote++)
        if (connected[mote] && apart(field[mote], place) < apart(field[best], place))
            best = mote;
    return best;
}

/* Where a way from a mote to a place ends; -1: it is lost. */
static int goes_to(int source, struct place place, int *hops)
{
    struct heading heading = {.to = place};
    int mote = source, before = -1;
    for (*hops = 0; *hops < STEPS; ++*hops) {
        become(mote);
        uint16_t next;
        switch (geographic_next(&heading, before < 0 ? WIRE_NO_NODE : (uint16_t)before,
                                before < 0 ? field[mote] : field[before], &next)) {
        case HEADING_ARRIVED: return mote;
        case HEADING_LOST: return -1;
        case HEADING_ON: break;
        }
        CHECK(next < MOTES && linked(mote, next));
        before = mote;
        mote = next;
    }
    return -1;
}

static void ways_end_at_whoever_stands_nearest(void)
{
    int ended = 0, nearby = 0, around = 0;
    for (state = 1; ended < 600;) {
        make_field();
        bool crowded = false;
        for (int mote = 0; mote < MOTES; mote++)
            crowded |= degree(mote) > NEIGHBOURS;
        if (crowded)
            continue;
        for (int i = 0; i < 20; i++) {
            int source, hops;
            do
                source = (int)draw(MOTES);
            while (!connected[source]);
            /* in the hole, too, and outside the field */
            struct place place = {(int16_t)((int)draw(SIDE * 5 / 4) - SIDE * 5 / 8),
                                  (int16_t)((int)draw(SIDE * 5 / 4) - SIDE * 5 / 8)};
            int end = goes_to(source, place, &hops);
            ended++;
            nearby += end >= 0 && apart(field[end], place) == apart(field[nearest(place)], place);
            around += hops > 20;
        }
    }
    printf("%d of %d at the nearest mote, %d ways of more than 20 hops\n", nearby, ended, around);
    CHECK_EQUAL(nearby, ended);
    CHECK(around > 20);
}

static void offsets_are_kept_exactly(void)
{
    struct place offset;
    for (int16_t x = -2040; x <= 2040; x = (int16_t)(x + 37))
        for (int16_t y = -2040; y <= 2040; y = (int16_t)(y + 41)) {
            field[0] = (struct place){100, -200};
            own = (struct wire_settings){.x = 1000, .y = -2000};
            neighbours_clear();
            neighbours()[3] = (struct neighbour){.node = 9, .heard = 255, .hears = 255};
            place_told(9, (struct place){(int16_t)(x + 100), (int16_t)(y - 200)});
            CHECK(place_offset(&neighbours()[3], &offset));
            CHECK_EQUAL(offset.x, x);
            CHECK_EQUAL(offset.y, y);
        }
    place_told(9, (struct place){9000, 0}); /* too far away */
    CHECK(!place_offset(&neighbours()[3], &offset));
    uint16_t unknown[WIRE_POSITIONS_ASKED];
    CHECK_EQUAL(places_unknown(unknown), 0);
    places_forget();
    CHECK_EQUAL(places_unknown(unknown), 1);
    CHECK_EQUAL(unknown[0], 9);
}

static const struct test tests[] = {
    TEST(ways_end_at_whoever_stands_nearest),
    TEST(offsets_are_kept_exactly),
};
UNIT_MAIN(tests)
