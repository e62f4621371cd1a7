#include "lib/random.h"

/* Marsaglia's 32-bit xorshift (13, 17, 5). */
static uint32_t state = 1;

void random_seed(uint16_t node, uint16_t boots)
{
    state = ((uint32_t)node << 16 | boots) * UINT32_C(2654435761) + 1;
    if (!state)
        state = 1;
    for (uint8_t i = 0; i < 8; i++)
        (void)random_bits();
}

uint16_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (uint16_t)(state >> 8);
}

uint16_t random_below(uint16_t below) { return (uint16_t)((uint32_t)random_bits() * below >> 16); }
