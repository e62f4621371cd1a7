/* What a join has sent is not sent again: a mote keeps what came, and of what it sent itself where
 * to.
 *
 * Who keeps: values of tuples whose other values it stores, by the tuple's name. Who sends: of each
 * tuple and other part, to which zones it has gone. */
#ifndef SKERRY_INDEX_CACHE_H
#define SKERRY_INDEX_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "index/zone.h"

/* A value that came for a tuple that is stored here. */
struct cache_entry {
    uint32_t tuple; /* its name */
    uint32_t code;  /* under which it is stored here */
    int32_t value;
    uint8_t attribute;
    bool is_null;
};

/* Memory is the caller's. Entries stand in the order of their last use. */
struct join_cache {
    struct cache_entry *entries;
    uint16_t room, count;
};

void cache_begin(struct join_cache *cache, struct cache_entry *entries, uint16_t room);
/* Keeps an entry, in place of one that it has of this tuple and attribute; true where the one that
 * was not used for the longest time had to go, which *gone then is: it has to be asked for again.
 */
bool cache_put(struct join_cache *cache, const struct cache_entry *entry, struct cache_entry *gone);
/* The entry of a tuple and attribute, which is used by that; NULL where there is none. It stays
 * where it is until the next call. */
const struct cache_entry *cache_get(struct join_cache *cache, uint32_t tuple, uint8_t attribute);
/* The tuple is stored no longer. */
void cache_drop(struct join_cache *cache, uint32_t tuple);
/* A zone has changed hands: entries of tuples that are another mote's now go. How many. */
uint16_t cache_owned(struct join_cache *cache, const struct zone_owned *owned);

#endif
