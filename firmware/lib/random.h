/* The mote's randomness: backoffs and spreads, never secrets. Seeded by node and boot count. */
#ifndef SKERRY_LIB_RANDOM_H
#define SKERRY_LIB_RANDOM_H

#include <stdint.h>

void random_seed(uint16_t node, uint16_t boots);
uint16_t random_bits(void);
/* 0 .. below - 1. */
uint16_t random_below(uint16_t below);
/* from .. to - 1. */
static inline uint16_t random_between(uint16_t from, uint16_t to)
{
    return (uint16_t)(from + random_below((uint16_t)(to - from)));
}

#endif
