/* The set of queries has a version that the gateway raises with each install and stop. A mote that
 * hears of a newer one than its own sends the neighbour a summary of what it holds; the neighbour
 * answers with what is lacking and its own summary, which also says what to drop. Floods only make
 * that fast: losing them costs time, never a query. */
#include "net/transport/dissemination.h"

#include <stddef.h>
#include <string.h>

#include "net/app.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/tree.h"
#include "net/transport/command_flood.h"
#include "net/transport/flood.h"
#include "net/transport/join_packet.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

#define FRAGMENTS ((WIRE_PROGRAM_MAXIMUM + WIRE_FRAGMENT_MAXIMUM - 1) / WIRE_FRAGMENT_MAXIMUM)
static struct {
    uint16_t version;   /* of the set of queries that is held here */
    uint16_t newest;    /* of a set that a neighbour has been heard to hold */
    uint8_t behind;     /* control windows for which this mote still looks out for that */
    bool version_known; /* false: nothing has been heard in this session of the root */
    bool all_awake; /* in this window; else motes that have not heard of what floods are asleep */
    /* Floods waiting: fragments of queries by bit, stops. Where there is none `repeats` is 0, and
     * so is the query. */
    struct install {
        uint8_t query, fragments, repeats;
        bool repairs; /* the version is that of a set, and not the one that the query made */
        uint16_t version;
    } installs[WIRE_QUERIES_MAXIMUM];
    /* The last stops, newest first. A flood tells of all: a set follows the versions one by one,
     * and of stops that come in one window the first would else be heard by nobody but those next
     * to the root. */
    struct {
        struct wire_stopped last[WIRE_STOPS_MAXIMUM];
        uint8_t count, repeats;
    } stops;
} flooding;

/* One neighbour at a time is asked for queries, or answered. */
static struct {
    uint16_t node;                       /* WIRE_NO_NODE: none */
    uint8_t lacks[WIRE_QUERIES_MAXIMUM]; /* queries that it is to be sent */
    uint8_t count, next, fragment;       /* of them; what is sent next */
} repair = {.node = WIRE_NO_NODE};

/* Begins with the summary alone. */
static void begin_repair(uint16_t node)
{
    repair.node = node;
    repair.count = repair.next = repair.fragment = 0;
}

/* The parent has what applies here now, or asks for it as well. */
void dissemination_want(void)
{
    if (repair.node == WIRE_NO_NODE && tree_own_parent() != WIRE_NO_NODE && app_wants())
        begin_repair(tree_own_parent());
}

void dissemination_window(bool all_awake)
{
    flooding.all_awake = all_awake;
    if (flooding.behind)
        flooding.behind--;
    app_window();
    dissemination_want();
    join_packet_again();
    if (!all_awake)
        return;
    flood_release(&flooding.stops.repeats, FLOOD_LAST);
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        flood_release(&flooding.installs[i].repeats, FLOOD_LAST);
    command_flood_window();
}

uint16_t dissemination_version(void) { return flooding.version; }

/* Serial number arithmetic. */
static bool after(uint16_t a, uint16_t b) { return (int16_t)(uint16_t)(a - b) > 0; }

static bool newer(uint16_t theirs)
{
    return !flooding.version_known || after(theirs, flooding.version);
}

bool dissemination_behind(void)
{
    return flooding.version_known && flooding.behind > 0 && newer(flooding.newest);
}

#ifdef BOARD_TUPLES
bool dissemination_lacks(void) { return flooding.version == 0 || dissemination_behind(); }
#endif

/* The flood of a query, or, of 0, a place for one; NULL: there is none. */
static struct install *install_of(uint8_t query)
{
    for (struct install *install = flooding.installs;
         install < flooding.installs + WIRE_QUERIES_MAXIMUM; install++)
        if (install->query == query)
            return install;
    return NULL;
}

bool dissemination_settled(uint8_t query) { return !install_of(query); }

/* Whether a change that has been heard makes this version. */
static bool heard_of(uint16_t change)
{
    for (const struct install *install = flooding.installs;
         install < flooding.installs + WIRE_QUERIES_MAXIMUM; install++)
        if (install->query != 0 && !install->repairs && install->version == change)
            return true;
    for (uint8_t i = 0; i < flooding.stops.count; i++)
        if (flooding.stops.last[i].query_version == change)
            return true;
    return false;
}

/* Whether a query was installed, or stopped, by a change behind this version: a set of that version
 * says nothing of it. */
static bool installed_since(uint8_t query, uint16_t with)
{
    const struct install *install = query ? install_of(query) : NULL;
    return install && !install->repairs && after(install->version, with);
}

static bool stopped_since(uint8_t query, uint16_t with)
{
    for (uint8_t i = 0; i < flooding.stops.count; i++) {
        const struct wire_stopped *stop = &flooding.stops.last[i];
        if ((stop->query == query || stop->query == 0) && after(stop->query_version, with))
            return true;
    }
    return false;
}

/* Changes behind a version may have been heard already. */
static void take_over(uint16_t theirs)
{
    flooding.version = theirs;
    flooding.version_known = true;
    while (heard_of((uint16_t)(flooding.version + 1)))
        flooding.version++;
}

/* A set may take over a version only when it lacks nothing before it. */
static void follow(uint16_t theirs)
{
    if (!tree_is_root() && !(flooding.version_known && theirs == (uint16_t)(flooding.version + 1)))
        return;
    take_over(theirs);
}

static void flood(uint8_t query, uint16_t with, bool repairs)
{
    struct install *install = install_of(query);
    if (!install)
        install = install_of(0);
    if (!install)
        return;
    install->query = query;
    install->version = with;
    install->repairs = repairs;
    install->fragments = (1 << FRAGMENTS) - 1;
    install->repeats = FLOOD_NEW;
}

void dissemination_install(const struct wire_query_install *install, uint8_t length, bool asked)
{
    if (!newer(install->query_version) && install->query_version != flooding.version)
        return;
    if (stopped_since(install->query, install->query_version))
        return; /* a neighbour that has not heard of the stop */
    enum app_outcome outcome = app_install(install, length);
    /* Of a set that repairs, other queries may be missing still: its summary tells. */
    bool repairs = install->offset & WIRE_FRAGMENT_REPAIRS;
    if (outcome == APP_PASSED && !repairs)
        follow(install->query_version);
    /* The gateway may install again what the root holds. Motes that hold it find the new version
     * out by the summary: one fragment known says nothing of the others. */
    if (outcome != APP_COMPLETE &&
        !(outcome == APP_KNOWN && tree_is_root() && newer(install->query_version)))
        return;
    if (!repairs)
        follow(install->query_version);
    /* Queries that a mote without children has asked for are held by others near it: a flood of
     * them would only delay what is news, such as their start. */
    if (app_spreads(install->query) && (!asked || tree_has_children()))
        flood(install->query, install->query_version, repairs);
}

/* 0: all. What is dropped counts no more as a change that was heard of. */
static void drop(uint8_t query)
{
    dissemination_drops(query);
    app_stop(query);
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (query == 0 || flooding.installs[i].query == query)
            flooding.installs[i].query = flooding.installs[i].repeats = 0;
}

static bool is_known_stop(const struct wire_stopped *stop)
{
    for (uint8_t i = 0; i < flooding.stops.count; i++)
        if (memcmp(&flooding.stops.last[i], stop, sizeof *stop) == 0)
            return true;
    return false;
}

static void take_stop(const struct wire_stopped *stop)
{
    if (!newer(stop->query_version) || (!flooding.version_known && !tree_is_root()))
        return;
    /* With a gap in the versions it stays newer than ours: once is enough all the same. */
    if (is_known_stop(stop)) {
        follow(stop->query_version);
        return;
    }
    if (app_spreads(stop->query))
        flooding.stops.repeats = FLOOD_NEW;
    if (!installed_since(stop->query, stop->query_version))
        drop(stop->query);
    follow(stop->query_version);
    if (flooding.stops.count < WIRE_STOPS_MAXIMUM)
        flooding.stops.count++;
    memmove(flooding.stops.last + 1, flooding.stops.last,
            (flooding.stops.count - 1U) * sizeof *stop);
    flooding.stops.last[0] = *stop;
}

void dissemination_stop(const struct wire_stopped *heard, uint8_t count)
{
    while (count-- > 0)
        take_stop(&heard[count]);
}

void dissemination_heard(uint16_t source, uint16_t theirs)
{
    if (tree_is_root() || !newer(theirs))
        return;
    if (theirs == 0) {
        flooding.version_known = true; /* nothing has been asked of this network yet */
        return;
    }
    flooding.newest = theirs;
    flooding.behind = BEHIND_WINDOWS;
    if (repair.node != WIRE_NO_NODE)
        return;
    begin_repair(source);
}

/* A summary's parts: ids of queries that its sender holds, and what it knows of those with a route.
 */
struct names {
    const uint8_t *held;
    const struct wire_routed_query *routed;
    uint8_t held_count, routed_count;
};

static bool read_names(const struct wire_query_request *summary, uint8_t length,
                       struct names *names)
{
    uint8_t count = (uint8_t)(length - sizeof *summary);
    const uint8_t *end = memchr(summary->queries, 0, count);
    names->held = summary->queries;
    names->held_count = (uint8_t)(end ? end - summary->queries : count);
    uint8_t rest = end ? (uint8_t)(count - names->held_count - 1) : 0;
    names->routed = (const struct wire_routed_query *)(summary->queries + names->held_count + 1);
    names->routed_count = (uint8_t)(rest / sizeof *names->routed);
    return names->held_count <= WIRE_QUERIES_MAXIMUM &&
           names->routed_count <= WIRE_QUERIES_MAXIMUM && rest % sizeof *names->routed == 0;
}

static const struct wire_routed_query *routed(const struct names *names, uint8_t query)
{
    for (uint8_t i = 0; i < names->routed_count; i++)
        if (names->routed[i].query == query)
            return &names->routed[i];
    return NULL;
}

static bool among(const uint8_t *ids, uint8_t count, uint8_t query)
{
    return memchr(ids, query, count) != NULL;
}

static bool holds(const struct names *names, uint8_t query)
{
    return among(names->held, names->held_count, query);
}

/* Drops what it does not name and was not installed behind it, and learns of what has a route; with
 * all it names, takes its version over. */
static void catch_up(uint16_t theirs, const struct names *names)
{
    uint8_t ids[WIRE_QUERIES_MAXIMUM], known = app_known(ids);
    for (uint8_t i = 0; i < known; i++)
        if (!holds(names, ids[i]) && !routed(names, ids[i]) && !installed_since(ids[i], theirs))
            drop(ids[i]);
    for (uint8_t i = 0; i < names->routed_count; i++)
        app_learn(theirs, &names->routed[i]);
    known = app_known(ids);
    for (uint8_t i = 0; i < names->held_count + names->routed_count; i++) {
        uint8_t query =
            i < names->held_count ? names->held[i] : names->routed[i - names->held_count].query;
        if (!among(ids, known, query) && !app_refused_lately(query) &&
            !stopped_since(query, theirs))
            return;
    }
    take_over(theirs);
}

/* Queries that are held here and that the neighbour lacks: it wants them, or knows nothing of them.
 */
static uint8_t lacks(uint16_t neighbour, const struct names *names, uint8_t *ids)
{
    uint8_t held = app_held(ids), count = 0;
    for (uint8_t i = 0; i < held; i++) {
        const struct wire_routed_query *entry = routed(names, ids[i]);
        if (holds(names, ids[i]) || (entry ? entry->srt != 0 : !app_concerns(ids[i], neighbour)))
            continue;
        ids[count++] = ids[i];
    }
    return count;
}

/* Newer than ours: catch up. Else send what it lacks. */
void dissemination_summary(uint16_t source, const struct wire_query_request *summary,
                           uint8_t length)
{
    uint8_t ids[WIRE_QUERIES_MAXIMUM];
    struct names names;
    if (!read_names(summary, length, &names)) {
        mac_counters.malformed++;
        return;
    }
    if (newer(summary->query_version) && summary->query_version != 0) {
        if (tree_is_root())
            return;
        catch_up(summary->query_version, &names);
        dissemination_want(); /* A neighbour that does not need a query itself cannot send it. */
        return;
    }
    if (!flooding.version_known || repair.node != WIRE_NO_NODE)
        return;
    uint8_t count = lacks(source, &names, ids);
    if (summary->query_version == flooding.version && count == 0)
        return;
    begin_repair(source);
    memcpy(repair.lacks, ids, count);
    repair.count = count;
    /* A mote that lacks what has just been flooded may be one of many that ask at once, of which
     * hardly one is heard: the flood is repeated, as they are awake now. */
    struct install *flooded = count ? install_of(ids[0]) : NULL;
    if (!flooded)
        return;
    flooded->repeats = FLOOD_NEW;
    flooding.all_awake = true;
}

bool dissemination_waiting(void)
{
    if (join_packet_waits() || repair.node != WIRE_NO_NODE)
        return true;
    if (!flooding.all_awake)
        return false;
    if (flood_due(flooding.stops.repeats) || command_flood_waits())
        return true;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (flood_due(flooding.installs[i].repeats))
            return true;
    return false;
}

static void sent(enum radio_outcome outcome)
{
    if (outcome != RADIO_SENT &&
        ((const struct wire_mac_header *)control_frame.bytes)->destination != WIRE_BROADCAST)
        repair.node = WIRE_NO_NODE;
    dissemination_sent();
}

static bool send(uint8_t length)
{
    mac_finish(&control_frame, length);
    return mac_send(&control_frame, UNICAST_TRIES, sent);
}

static bool send_fragment(uint16_t destination, uint8_t query, uint8_t fragment, uint16_t with,
                          bool repairs)
{
    struct wire_query_install *install =
        mac_begin(&control_frame, destination, WIRE_PACKET_QUERY_INSTALL);
    uint8_t length = app_fragment(query, (uint8_t)(fragment * WIRE_FRAGMENT_MAXIMUM), install);
    install->query_version = with;
    if (repairs)
        install->offset |= WIRE_FRAGMENT_REPAIRS;
    return length && send(length);
}

/* The next query that the neighbour lacks, fragment by fragment, then the summary. */
static bool send_repair(void)
{
    for (; repair.next < repair.count; repair.next++, repair.fragment = 0)
        while (repair.fragment < FRAGMENTS)
            if (send_fragment(repair.node, repair.lacks[repair.next], repair.fragment++,
                              flooding.version, true))
                return true;
    struct wire_query_request *summary =
        mac_begin(&control_frame, repair.node, WIRE_PACKET_QUERY_REQUEST);
    summary->query_version = flooding.version;
    uint8_t held = app_held(summary->queries), routes = app_routes(summary->queries + held + 1);
    summary->queries[held] = 0;
    repair.node = WIRE_NO_NODE;
    return send((uint8_t)(sizeof *summary + held + (routes ? 1U + routes : 0U)));
}

static bool send_install(void)
{
    for (struct install *install = flooding.installs;
         install < flooding.installs + WIRE_QUERIES_MAXIMUM; install++) {
        while (flood_due(install->repeats)) {
            uint8_t query = install->query, fragment = 0;
            bool repairs = install->repairs;
            for (uint8_t left = install->fragments; !(left & 1); left >>= 1)
                fragment++;
            install->fragments = (uint8_t)(install->fragments & (install->fragments - 1));
            if (!install->fragments) {
                install->fragments = (1 << FRAGMENTS) - 1;
                install->repeats = flood_spent(install->repeats);
                if (!install->repeats)
                    install->query = 0;
            }
            if (send_fragment(WIRE_BROADCAST, query, fragment, install->version, repairs))
                return true;
        }
    }
    return false;
}

bool dissemination_send(void)
{
    if (mac_busy())
        return true;
    if (join_packet_send())
        return true;
    if (flooding.all_awake) {
        uint8_t length;
        if (flood_due(flooding.stops.repeats)) {
            length = (uint8_t)(flooding.stops.count * sizeof flooding.stops.last[0]);
            flooding.stops.repeats = flood_spent(flooding.stops.repeats);
            memcpy(mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_QUERY_STOP),
                   flooding.stops.last, length);
            return send(length);
        }
        if (send_install())
            return true;
        length = command_flood_write();
        if (length)
            return send(length);
    }
    return repair.node != WIRE_NO_NODE && send_repair();
}

/* Another session of the root numbers its versions anew. */
void dissemination_forget(void)
{
    flooding.version_known = false;
    flooding.version = flooding.newest = 0;
    memset(flooding.installs, 0, sizeof flooding.installs);
    memset(&flooding.stops, 0, sizeof flooding.stops);
    command_flood_forget();
    repair.node = WIRE_NO_NODE;
    app_stop(0);
}
