/* Queries that go only where a semantic routing tree says: who needs them, and what motes that do
 * not need them know of them. */
#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "query/events/raising.h"
#include "query/program/installer.h"
#include "query/query_conf.h"
#include "query/routes/srt.h"

static const struct wire_route *route_of(const struct query_entry *entry)
{
    if (entry_passed(entry))
        return &entry->route;
    return entry->query != 0 && entry->state & ENTRY_WHOLE ? entry_route(entry) : NULL;
}

uint8_t app_known(uint8_t *ids)
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (entry_any(i)->state & ENTRY_WHOLE || entry_passed(entry_any(i)))
            ids[count++] = entry_any(i)->query;
    return count;
}

uint8_t app_routes(uint8_t *entries)
{
    struct wire_routed_query *item = (struct wire_routed_query *)entries;
    uint8_t length = 0;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        const struct query_entry *entry = entry_any(i);
        const struct wire_route *route = route_of(entry);
        if (route == NULL)
            continue;
        bool wanted = entry_passed(entry) && route_applies(route);
        item->query = entry->query;
        memcpy(&item->srt, route, sizeof *route);
        if (wanted)
            item->srt = 0;
        item++;
        length = (uint8_t)(length + sizeof *item);
    }
    return length;
}

void app_learn(uint16_t version, const struct wire_routed_query *entry)
{
    if (entry->query != 0 && entry->srt != 0 && entry_find(entry->query) == NULL)
        installer_pass_over(entry->query, version, (const struct wire_route *)&entry->srt);
}

bool app_spreads(uint8_t query)
{
    const struct query_entry *entry = query != 0 ? entry_find(query) : NULL;
    const struct wire_route *route = entry != NULL ? route_of(entry) : NULL;
    return route == NULL || srt_below(route) || neighbours_crowded();
}

bool app_concerns(uint8_t query, uint16_t neighbour)
{
    const struct query_entry *entry = entry_of(query);
    const struct wire_route *route = entry != NULL ? route_of(entry) : NULL;
    const struct neighbour *of = neighbour_find(neighbour);
    return route == NULL || of == NULL || srt_neighbour((uint8_t)(of - neighbours()), route);
}

bool app_wants(void)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (entry_passed(entry_any(i)) && route_applies(&entry_any(i)->route))
            return true;
    return false;
}

void app_window(void)
{
    bool changed = false;
    events_changed();
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        const struct wire_route *route = !settings()->root ? route_of(entry) : NULL;
        if (route == NULL)
            continue;
        if (route_applies(route))
            entry->idle = 0;
        else if (entry->idle < IDLE_CONTROL_WINDOWS)
            entry->idle++;
        else if (entry->progress == EPOCH_DONE)
            changed |= installer_pass_over(entry->query, entry->version, route);
    }
    if (changed)
        event_post(&queries_changed);
}
