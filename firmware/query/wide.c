#include "query/wide.h"

bool wide_divide(uint64_t numerator, uint32_t divisor, uint32_t *quotient, uint32_t *remainder)
{
    uint32_t rest = (uint32_t)(numerator >> 32);
    uint32_t low = (uint32_t)numerator;
    if (rest >= divisor)
        return false;
    /* Restoring division: quotient bits move into `low` from the right as its own leave on the left. */
    for (uint8_t bit = 0; bit < 32; bit++) {
        bool carry = rest >> 31;
        rest = rest << 1 | low >> 31;
        low <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            low |= 1;
        }
    }
    *quotient = low;
    *remainder = rest;
    return true;
}
