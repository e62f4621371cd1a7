/* Which names may be in a page: a Bloom filter of a page's last words, in which a 1 says that it
 * may. So what was never written, or was cut short, excludes nothing. */
#ifndef SKERRY_STORAGE_FILTER_H
#define SKERRY_STORAGE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define FILTER_WORDS 16U

/* Adds the hash of a name to a filter that begins with zeros. */
void filter_add(uint32_t *filter, uint32_t hash);
/* Whether a name of this hash may be there. Of 70 others one in 32 passes for one. */
bool filter_may_have(const volatile uint32_t *filter, uint32_t hash);
/* A hash of three words. */
uint32_t filter_hash(uint32_t a, uint32_t b, uint32_t c);

#endif
