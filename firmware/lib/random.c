#include "lib/random.h"

/* Marsaglia's 32-bit xorshift (13, 17, 5). */
static struct {
    uint32_t state; /* never 0 */
} generator = {1};

void random_seed(uint16_t node, uint16_t boots)
{
    generator.state = ((uint32_t)node << 16 | boots) * UINT32_C(2654435761) + 1;
    if (!generator.state)
        generator.state = 1;
    for (uint8_t i = 0; i < 8; i++)
        (void)random_bits();
}

uint16_t random_bits(void)
{
    generator.state ^= generator.state << 13;
    generator.state ^= generator.state >> 17;
    generator.state ^= generator.state << 5;
    return (uint16_t)(generator.state >> 8);
}

uint16_t random_below(uint16_t below) { return (uint16_t)((uint32_t)random_bits() * below >> 16); }
