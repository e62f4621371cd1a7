#include "index/cache.h"

#include <string.h>

void cache_begin(struct join_cache *cache, struct cache_entry *entries, uint16_t room)
{
    cache->entries = entries;
    cache->room = room;
    cache->count = 0;
}

static uint16_t found(const struct join_cache *cache, uint32_t tuple, uint8_t attribute)
{
    uint16_t at = 0;
    while (at < cache->count &&
           (cache->entries[at].tuple != tuple || cache->entries[at].attribute != attribute))
        at++;
    return at;
}

/* All before it move back by one, and it becomes the first. */
static void put_first(struct join_cache *cache, uint16_t at, const struct cache_entry *entry)
{
    memmove(cache->entries + 1, cache->entries, at * sizeof *cache->entries);
    cache->entries[0] = *entry;
}

bool cache_put(struct join_cache *cache, const struct cache_entry *entry, struct cache_entry *gone)
{
    if (cache->room == 0) {
        *gone = *entry;
        return true;
    }
    uint16_t at = found(cache, entry->tuple, entry->attribute);
    bool full = at == cache->room;
    if (full)
        *gone = cache->entries[--at];
    else if (at == cache->count)
        cache->count++;
    put_first(cache, at, entry);
    return full;
}

const struct cache_entry *cache_get(struct join_cache *cache, uint32_t tuple, uint8_t attribute)
{
    uint16_t at = found(cache, tuple, attribute);
    if (at == cache->count)
        return NULL;
    struct cache_entry entry = cache->entries[at];
    put_first(cache, at, &entry);
    return cache->entries;
}

void cache_drop(struct join_cache *cache, uint32_t tuple)
{
    uint16_t kept = 0;
    for (uint16_t i = 0; i < cache->count; i++)
        if (cache->entries[i].tuple != tuple)
            cache->entries[kept++] = cache->entries[i];
    cache->count = kept;
}

uint16_t cache_owned(struct join_cache *cache, const struct zone_owned *owned)
{
    uint16_t kept = 0, before = cache->count;
    for (uint16_t i = 0; i < before; i++)
        if (zone_owns(owned, cache->entries[i].code))
            cache->entries[kept++] = cache->entries[i];
    cache->count = kept;
    return (uint16_t)(before - kept);
}
