/* What fuzzers draw from, by a seed that their tests print. */
#ifndef SKERRY_TESTS_FUZZ_H
#define SKERRY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

static uint64_t fuzz_state;

/* Seeds next to each other draw nothing alike; 0 would draw nothing but zeros. */
static inline void fuzz_seed(uint64_t seed) { fuzz_state = seed * 0x9E3779B97F4A7C15ULL | 1; }

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
static inline uint32_t random_number(void)
{
    fuzz_state ^= fuzz_state >> 12;
    fuzz_state ^= fuzz_state << 25;
    fuzz_state ^= fuzz_state >> 27;
    return (uint32_t)(fuzz_state * 0x2545F4914F6CDD1DULL >> 32);
}

static inline uint32_t below(uint32_t bound) { return random_number() % bound; }

static inline void fill(void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_number();
}

#endif
