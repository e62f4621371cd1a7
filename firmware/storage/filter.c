#include "storage/filter.h"

/* Bits of a name. */
#define BITS 4
#define SIZE (FILTER_WORDS * 32U)

/* The bit of a hash and its number: two halves of the hash make all of them. */
static uint16_t bit(uint32_t hash, uint8_t number)
{
    return (uint16_t)((hash + number * ((hash >> 16) | 1U)) % SIZE);
}

void filter_add(uint32_t *filter, uint32_t hash)
{
    for (uint8_t i = 0; i < BITS; i++)
        filter[bit(hash, i) / 32] |= (uint32_t)1 << bit(hash, i) % 32;
}

bool filter_may_have(const volatile uint32_t *filter, uint32_t hash)
{
    for (uint8_t i = 0; i < BITS; i++)
        if (!(filter[bit(hash, i) / 32] >> bit(hash, i) % 32 & 1))
            return false;
    return true;
}

/* The last steps are MurmurHash3's. */
uint32_t filter_hash(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t hash = (a * 2654435761U ^ b) * 2246822519U ^ c;
    hash = (hash ^ hash >> 16) * 2246822507U;
    hash = (hash ^ hash >> 13) * 3266489909U;
    return hash ^ hash >> 16;
}
