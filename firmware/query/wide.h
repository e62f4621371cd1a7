/* 64-bit products and quotients without the compiler's 64-bit division, which costs an AVR 1 KB of flash. */
#ifndef SKERRY_QUERY_WIDE_H
#define SKERRY_QUERY_WIDE_H

#include <stdbool.h>
#include <stdint.h>

/* numerator / divisor, truncated, with what is left over; false when the quotient needs more than
 * 32 bits or the divisor is 0. */
bool wide_divide(uint64_t numerator, uint32_t divisor, uint32_t *quotient, uint32_t *remainder);

#endif
