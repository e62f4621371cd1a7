#include "query/program/installer.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/health/status.h"
#include "query/program/check.h"

static uint16_t refused;
/* Queries refused lately: told to the gateway once, and not asked for again. */
#define REFUSALS 4
static uint8_t refusals[REFUSALS], next_refusal;

void installer_init(void)
{
    memset(refusals, 0, sizeof refusals);
    refused = next_refusal = 0;
}

void installer_free(struct slot *slot)
{
    if (slot->state & SLOT_WHOLE)
        clauses_close(slot);
    memory_release(&slot->block);
    slot->query = 0;
    slot->state = 0;
}

/* A slot to put a new program into: a free one, else one whose program is half received, else one
 * whose query is finished. NULL: all run. */
static struct slot *make_room(void)
{
    struct slot *finished = NULL, *half = NULL;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = &(*slot_any(i));
        if (slot->query == 0)
            return slot;
        if (slot_passed(slot))
            continue;
        if (!(slot->state & SLOT_WHOLE))
            half = slot;
        else if (slot->state & SLOT_FINISHED && !slot_first_clause(slot, WIRE_AGGREGATE_STORE))
            finished = slot; /* a storage point's rows are read until it is stopped */
    }
    return half != NULL ? half : finished;
}

/* Serial number arithmetic: whether a comes after b. */
static bool newer(uint16_t a, uint16_t b) { return (int16_t)(uint16_t)(a - b) > 0; }

_Static_assert(WIRE_PROGRAM_MAXIMUM <= 2 * WIRE_FRAGMENT_MAXIMUM,
               "a program has one fragment or two");
static bool begins(uint8_t offset) { return offset == 0 || offset == WIRE_FRAGMENT_MAXIMUM; }

static uint8_t fragment_size(uint8_t total, uint8_t offset)
{
    uint8_t left = (uint8_t)(total - offset);
    return left < WIRE_FRAGMENT_MAXIMUM ? left : WIRE_FRAGMENT_MAXIMUM;
}

static uint8_t place(const struct wire_query_install *install)
{
    return install->offset & (uint8_t)~WIRE_FRAGMENT_REPAIRS;
}

static bool well_formed(const struct wire_query_install *install, uint8_t length)
{
    return length > sizeof *install && install->query != 0 &&
           install->total <= WIRE_PROGRAM_MAXIMUM && begins(place(install)) &&
           place(install) < install->total &&
           length - sizeof *install == fragment_size(install->total, place(install));
}

/* False: there is no memory for it. What is known of its route is kept until it is whole. */
static bool begin(struct slot *slot, const struct wire_query_install *install)
{
    bool passed = slot->query == install->query && slot_passed(slot);
    installer_free(slot);
    memset(slot, 0, passed ? offsetof(struct slot, idle) : sizeof *slot);
    bool room = memory_grow(&slot->block, install->total);
    if (room || passed)
        slot->query = install->query;
    if (room) {
        slot->length = install->total;
        slot->version = install->query_version;
    }
    return room;
}

static bool remembered(uint8_t query)
{
    for (uint8_t i = 0; i < REFUSALS; i++)
        if (refusals[i] == query)
            return true;
    return false;
}

bool app_refused_lately(uint8_t query) { return query != 0 && remembered(query); }

/* Counts, and tells the gateway once. */
static enum app_outcome refuse(uint8_t query, uint8_t reason, uint16_t missing)
{
    refused++;
    if (query != 0 && !remembered(query)) {
        refusals[next_refusal] = query;
        next_refusal = (uint8_t)((next_refusal + 1) % REFUSALS);
        net_query_refused(query, reason, missing);
    }
    return APP_REFUSED;
}

static void forget_refusal(uint8_t query)
{
    for (uint8_t i = 0; i < REFUSALS; i++)
        if (query == 0 || refusals[i] == query)
            refusals[i] = 0;
}

static uint16_t missing_bytes(uint16_t needed) { return (uint16_t)(needed - memory_free()); }

/* Whether the slot's whole program stays what it is: the fragment repeats a part of it, or is
 * older. Of one as new as the part that was repeated last the rest may be another. */
static bool known(struct slot *slot, const struct wire_query_install *install)
{
    if (newer(slot->version, install->query_version))
        return true;
    if (install->total != slot->length ||
        memcmp(&slot->block.bytes[place(install)], install->data,
               fragment_size(install->total, place(install))) != 0)
        return false;
    slot->version = install->query_version;
    return true;
}

static void empty(struct slot *slot)
{
    installer_free(slot);
    memset(slot, 0, sizeof *slot);
}

bool installer_pass_over(uint8_t query, uint16_t version, const struct wire_route *route)
{
    struct wire_route kept = *route; /* it may lie in the slot's program */
    struct slot *slot = slot_find(query);
    if (slot == NULL)
        slot = make_room();
    if (slot == NULL)
        return false;
    empty(slot);
    slot->query = query;
    slot->version = version;
    slot->idle = SLOT_PASSED;
    slot->route = kept;
    return true;
}

/* Why a whole program cannot run here, or 0; *missing: bytes that are short. */
static uint8_t obstacle(struct slot *slot, uint16_t *missing)
{
    uint8_t reason = clauses_refusal(slot, missing);
    if (reason != 0)
        return reason;
    uint16_t state = (uint16_t)(slot->windows + clauses_size(slot, CLAUSES_ALL));
    if (memory_grow(&slot->block, state))
        return 0;
    *missing = missing_bytes(state);
    return WIRE_REFUSAL_MEMORY;
}

/* A whole program that is accepted and has its memory begins; its clauses may have it otherwise. */
static void begin_query(struct slot *slot)
{
    uint32_t period = slot_program(slot)->period;
    slot->state = SLOT_WHOLE;
    slot->received = period < WIRE_PERIOD_MINIMUM_MS ? SLOT_FAST : 0;
    slot_rows_each(slot, period);
    clauses_open(slot);
}

static enum app_outcome complete(struct slot *slot)
{
    uint8_t query = slot->query, reason = WIRE_REFUSAL_MALFORMED;
    uint16_t missing = 0;
    struct program_facts facts;
    slot->idle = 0;
    if (program_check(slot->block.bytes, slot->length, &facts)) {
        const struct wire_route *route = slot_route(slot);
        if (route != NULL && !settings()->root && !route_applies(route)) {
            installer_pass_over(query, slot->version, route);
            return APP_PASSED;
        }
        slot->attributes = facts.attributes;
        slot->windows = facts.windows;
        reason = obstacle(slot, &missing);
    }
    if (reason != 0) {
        installer_free(slot);
        return refuse(query, reason, missing);
    }
    forget_refusal(query);
    begin_query(slot);
    return APP_COMPLETE;
}

enum app_outcome installer_install(const struct wire_query_install *install, uint8_t length)
{
    if (!well_formed(install, length))
        return refuse(0, WIRE_REFUSAL_MALFORMED, 0);
    struct slot *slot = slot_find(install->query);
    if (slot != NULL && slot->state & SLOT_WHOLE && known(slot, install))
        return APP_KNOWN;
    if (slot != NULL && slot_passed(slot) && !newer(install->query_version, slot->version) &&
        !route_applies(&slot->route))
        return APP_KNOWN;
    if (slot == NULL)
        slot = make_room();
    if (slot == NULL)
        return refuse(install->query, WIRE_REFUSAL_SLOTS, 0);
    /* Another program, or the query's own from another version of the set: fragments do not mix. */
    if (slot->query != install->query || slot->state & SLOT_WHOLE ||
        slot->version != install->query_version || slot->length != install->total)
        if (!begin(slot, install))
            return refuse(install->query, WIRE_REFUSAL_MEMORY, missing_bytes(install->total));

    memcpy(&slot->block.bytes[place(install)], install->data,
           fragment_size(slot->length, place(install)));
    slot->received = (uint8_t)(slot->received | (place(install) == 0 ? 1 : 2));
    return slot->received == (slot->length > WIRE_FRAGMENT_MAXIMUM ? 3 : 1) ? complete(slot)
                                                                            : APP_STORED;
}

void installer_stop(uint8_t query)
{
    forget_refusal(query);
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (query == 0 || (*slot_any(i)).query == query) {
            /* What there was no room for may have some now: neighbours are asked for it again. */
            if ((*slot_any(i)).query != 0)
                forget_refusal(0);
            installer_free(&(*slot_any(i)));
        }
}

uint8_t app_held(uint8_t *ids)
{
    uint8_t count = 0;
    for (const struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;)
        ids[count++] = slot->query;
    return count;
}

bool app_snoops(uint8_t query)
{
    const struct slot *slot = slot_of(query);
    return slot != NULL && slot_program(slot)->flags & WIRE_QUERY_SNOOP;
}

uint8_t app_fragment(uint8_t query, uint8_t offset, struct wire_query_install *install)
{
    const struct slot *slot = slot_of(query);
    if (slot == NULL || offset >= slot->length || !begins(offset))
        return 0;
    uint8_t size = fragment_size(slot->length, offset);
    install->query = query;
    install->total = slot->length;
    install->offset = offset;
    memcpy(install->data, &slot->block.bytes[offset], size);
    return (uint8_t)(sizeof *install + size);
}

uint16_t app_refused(void) { return refused; }
