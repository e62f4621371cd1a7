#include "query/program/installer.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/health/status.h"
#include "query/program/check.h"
#include "query/query_conf.h"

static struct {
    uint16_t count; /* programs refused since boot */
    /* queries refused lately: told to the gateway once, and not asked for again; 0: none */
    uint8_t queries[REFUSALS];
    uint8_t next; /* of `queries`, to be overwritten */
} refused;

void installer_init(void) { memset(&refused, 0, sizeof refused); }

void installer_free(struct query_entry *entry)
{
    if (entry->state & ENTRY_WHOLE)
        clauses_close(entry);
    memory_release(&entry->block);
    entry->query = 0;
    entry->state = 0;
    entry->progress = EPOCH_DONE;
}

/* An entry to put a new program into: a free one, else one whose program is half received, else one
 * whose query is finished. NULL: all run. */
static struct query_entry *make_room(void)
{
    struct query_entry *finished = NULL, *half = NULL;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct query_entry *entry = entry_any(i);
        if (entry->query == 0)
            return entry;
        if (entry_passed(entry))
            continue;
        if (!(entry->state & ENTRY_WHOLE))
            half = entry;
        else if (entry->state & ENTRY_FINISHED && !entry_first_clause(entry, WIRE_AGGREGATE_STORE))
            finished = entry; /* a storage point's rows are read until it is stopped */
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

static uint8_t fragment_offset(const struct wire_query_install *install)
{
    return install->offset & (uint8_t)~WIRE_FRAGMENT_REPAIRS;
}

static bool well_formed(const struct wire_query_install *install, uint8_t length)
{
    return length > sizeof *install && install->query != 0 &&
           install->total <= WIRE_PROGRAM_MAXIMUM && begins(fragment_offset(install)) &&
           fragment_offset(install) < install->total &&
           length - sizeof *install == fragment_size(install->total, fragment_offset(install));
}

/* False: there is no memory for it. What is known of its route is kept until it is whole. */
static bool begin(struct query_entry *entry, const struct wire_query_install *install)
{
    bool passed = entry->query == install->query && entry_passed(entry);
    installer_free(entry);
    memset(entry, 0, passed ? offsetof(struct query_entry, idle) : sizeof *entry);
    bool room = memory_grow(&entry->block, install->total);
    if (room || passed)
        entry->query = install->query;
    if (room) {
        entry->length = install->total;
        entry->version = install->query_version;
    }
    return room;
}

static bool remembered(uint8_t query)
{
    for (uint8_t i = 0; i < REFUSALS; i++)
        if (refused.queries[i] == query)
            return true;
    return false;
}

bool app_refused_lately(uint8_t query) { return query != 0 && remembered(query); }

/* Counts, and tells the gateway once. */
static enum app_outcome refuse(uint8_t query, uint8_t reason, uint16_t missing)
{
    refused.count++;
    if (query != 0 && !remembered(query)) {
        refused.queries[refused.next] = query;
        refused.next = (uint8_t)((refused.next + 1) % REFUSALS);
        net_query_refused(query, reason, missing);
    }
    return APP_REFUSED;
}

static void forget_refusal(uint8_t query)
{
    for (uint8_t i = 0; i < REFUSALS; i++)
        if (query == 0 || refused.queries[i] == query)
            refused.queries[i] = 0;
}

static uint16_t missing_bytes(uint16_t needed) { return (uint16_t)(needed - memory_free()); }

/* Whether the entry's whole program stays what it is: the fragment repeats a part of it, or is
 * older. Of one as new as the part that was repeated last the rest may be another. */
static bool known(struct query_entry *entry, const struct wire_query_install *install)
{
    if (newer(entry->version, install->query_version))
        return true;
    if (install->total != entry->length ||
        memcmp(&entry->block.bytes[fragment_offset(install)], install->data,
               fragment_size(install->total, fragment_offset(install))) != 0)
        return false;
    entry->version = install->query_version;
    return true;
}

static void clear(struct query_entry *entry)
{
    installer_free(entry);
    memset(entry, 0, sizeof *entry);
}

bool installer_pass_over(uint8_t query, uint16_t version, const struct wire_route *route)
{
    struct wire_route kept = *route; /* it may lie in the entry's program */
    struct query_entry *entry = entry_find(query);
    if (entry == NULL)
        entry = make_room();
    if (entry == NULL)
        return false;
    clear(entry);
    entry->query = query;
    entry->version = version;
    entry->idle = ENTRY_PASSED;
    entry->route = kept;
    return true;
}

/* Why a whole program cannot run here, or 0; *missing: bytes that are short. */
static uint8_t obstacle(struct query_entry *entry, uint16_t *missing)
{
    uint8_t reason = clauses_refusal(entry, missing);
    if (reason != 0)
        return reason;
    uint16_t state = (uint16_t)(entry->windows_size + clauses_size(entry, CLAUSES_ALL));
    if (memory_grow(&entry->block, state))
        return 0;
    *missing = missing_bytes(state);
    return WIRE_REFUSAL_MEMORY;
}

/* A whole program that is accepted and has its memory begins; its clauses may have it otherwise. */
static void begin_query(struct query_entry *entry)
{
    uint32_t period = entry_program(entry)->period;
    entry->state = period < WIRE_PERIOD_MINIMUM_MS ? ENTRY_WHOLE | ENTRY_FAST : ENTRY_WHOLE;
    entry_rows_each(entry, period);
    clauses_open(entry);
}

static enum app_outcome complete(struct query_entry *entry)
{
    uint8_t query = entry->query, reason = WIRE_REFUSAL_MALFORMED;
    uint16_t missing = 0;
    struct program_facts facts;
    entry->idle = 0;
    if (program_check(entry->block.bytes, entry->length, &facts)) {
        const struct wire_route *route = entry_route(entry);
        if (route != NULL && !settings()->root && !route_applies(route)) {
            installer_pass_over(query, entry->version, route);
            return APP_PASSED;
        }
        entry->attributes = facts.attributes;
        entry->windows_size = facts.windows_size;
        reason = obstacle(entry, &missing);
    }
    if (reason != 0) {
        installer_free(entry);
        return refuse(query, reason, missing);
    }
    forget_refusal(query);
    begin_query(entry);
    return APP_COMPLETE;
}

enum app_outcome installer_install(const struct wire_query_install *install, uint8_t length)
{
    if (!well_formed(install, length))
        return refuse(0, WIRE_REFUSAL_MALFORMED, 0);
    struct query_entry *entry = entry_find(install->query);
    if (entry != NULL && entry->state & ENTRY_WHOLE && known(entry, install))
        return APP_KNOWN;
    if (entry != NULL && entry_passed(entry) && !newer(install->query_version, entry->version) &&
        !route_applies(&entry->route))
        return APP_KNOWN;
    if (entry == NULL)
        entry = make_room();
    if (entry == NULL)
        return refuse(install->query, WIRE_REFUSAL_SLOTS, 0);
    /* Another program, or the query's own from another version of the set: fragments do not mix. */
    if (entry->query != install->query || entry->state & ENTRY_WHOLE ||
        entry->version != install->query_version || entry->length != install->total)
        if (!begin(entry, install))
            return refuse(install->query, WIRE_REFUSAL_MEMORY, missing_bytes(install->total));

    memcpy(&entry->block.bytes[fragment_offset(install)], install->data,
           fragment_size(entry->length, fragment_offset(install)));
    entry->received = (uint8_t)(entry->received | (fragment_offset(install) == 0 ? 1 : 2));
    return entry->received == (entry->length > WIRE_FRAGMENT_MAXIMUM ? 3 : 1) ? complete(entry)
                                                                              : APP_STORED;
}

void installer_stop(uint8_t query)
{
    forget_refusal(query);
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (query == 0 || entry_any(i)->query == query) {
            /* What there was no room for may have some now: neighbours are asked for it again. */
            if (entry_any(i)->query != 0)
                forget_refusal(0);
            installer_free(entry_any(i));
        }
}

uint8_t app_held(uint8_t *ids)
{
    uint8_t count = 0;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        ids[count++] = entry->query;
    return count;
}

bool app_snoops(uint8_t query)
{
    const struct query_entry *entry = entry_of(query);
    return entry != NULL && entry_program(entry)->flags & WIRE_QUERY_SNOOP;
}

uint8_t app_fragment(uint8_t query, uint8_t offset, struct wire_query_install *install)
{
    const struct query_entry *entry = entry_of(query);
    if (entry == NULL || offset >= entry->length || !begins(offset))
        return 0;
    uint8_t size = fragment_size(entry->length, offset);
    install->query = query;
    install->total = entry->length;
    install->offset = offset;
    memcpy(install->data, &entry->block.bytes[offset], size);
    return (uint8_t)(sizeof *install + size);
}

uint16_t app_refused(void) { return refused.count; }
