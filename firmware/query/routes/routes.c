/* Queries that go only where a semantic routing tree says: who needs them, and what motes that do
 * not need them know of them. */
#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/routing/neighbours.h"
#include "query/events/events.h"
#include "query/program/installer.h"
#include "query/routes/srt.h"

/* Control windows for which a query that does not apply any more is kept: values move back, and
 * rows are still under way. */
#define IDLE_WINDOWS 4

static const struct wire_route *route_of(const struct slot *slot)
{
    if (slot_passed(slot))
        return &slot->route;
    return slot->query != 0 && slot->state & SLOT_WHOLE ? slot_route(slot) : NULL;
}

uint8_t app_known(uint8_t *ids)
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (slot_any(i)->state & SLOT_WHOLE || slot_passed(slot_any(i)))
            ids[count++] = slot_any(i)->query;
    return count;
}

uint8_t app_routes(uint8_t *entries)
{
    struct wire_routed_query *entry = (struct wire_routed_query *)entries;
    uint8_t length = 0;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        const struct slot *slot = slot_any(i);
        const struct wire_route *route = route_of(slot);
        if (route == NULL)
            continue;
        bool wanted = slot_passed(slot) && route_applies(route);
        entry->query = slot->query;
        memcpy(&entry->srt, route, sizeof *route);
        if (wanted)
            entry->srt = 0;
        entry++;
        length = (uint8_t)(length + sizeof *entry);
    }
    return length;
}

void app_learn(uint16_t version, const struct wire_routed_query *entry)
{
    if (entry->query != 0 && entry->srt != 0 && slot_find(entry->query) == NULL)
        installer_pass_over(entry->query, version, (const struct wire_route *)&entry->srt);
}

bool app_spreads(uint8_t query)
{
    const struct slot *slot = query != 0 ? slot_find(query) : NULL;
    const struct wire_route *route = slot != NULL ? route_of(slot) : NULL;
    return route == NULL || srt_below(route) || neighbours_crowded();
}

bool app_concerns(uint8_t query, uint16_t neighbour)
{
    const struct slot *slot = slot_of(query);
    const struct wire_route *route = slot != NULL ? route_of(slot) : NULL;
    const struct neighbour *of = neighbour_find(neighbour);
    return route == NULL || of == NULL || srt_neighbour((uint8_t)(of - neighbours()), route);
}

bool app_wants(void)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (slot_passed(slot_any(i)) && route_applies(&slot_any(i)->route))
            return true;
    return false;
}

void app_window(void)
{
    bool changed = false;
    events_changed();
    for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
        const struct wire_route *route = !settings()->root ? route_of(slot) : NULL;
        if (route == NULL)
            continue;
        if (route_applies(route))
            slot->idle = 0;
        else if (slot->idle < IDLE_WINDOWS)
            slot->idle++;
        else if (!(slot->state & (SLOT_WAITING | SLOT_SAMPLING | SLOT_SCANNING)))
            changed |= installer_pass_over(slot->query, slot->version, route);
    }
    if (changed)
        event_post(&queries_changed);
}
