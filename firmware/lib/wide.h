/* 64-bit sums, products and quotients without the compiler's 64-bit division, which costs an AVR 1
 * KB of flash. */
#ifndef SKERRY_LIB_WIDE_H
#define SKERRY_LIB_WIDE_H

#include <stdbool.h>
#include <stdint.h>

/* numerator / divisor, truncated, with what is left over; false when the quotient needs more than
 * 32 bits or the divisor is 0. */
bool wide_divide(uint64_t numerator, uint32_t divisor, uint32_t *quotient, uint32_t *remainder);
/* round(numerator / divisor), half away from zero, `negative` or not; false when that needs more
 * than 32 bits, or the divisor is 0. Where it is below 2^32 and yet no int32_t, *value has its low
 * 32 bits. */
bool wide_round(uint64_t numerator, uint32_t divisor, bool negative, int32_t *value);
/* round(numerator * 10^decimals / divisor), half away from zero; false when that needs more than 32
 * bits, or the divisor is 0. */
bool wide_quotient(int64_t numerator, uint8_t decimals, uint32_t divisor, int32_t *value);
/* The value of sign and magnitude; false when it needs more than 32 bits. */
bool wide_signed(uint32_t size, bool negative, int32_t *value);
uint32_t wide_magnitude(int32_t value);
/* How far two values are from each other. */
uint32_t wide_distance(int32_t a, int32_t b);
/* Rounded value at `at` on the line from a at 0 to b at `span`, halves away from a; at <= span. */
int32_t wide_between(int32_t a, int32_t b, uint32_t at, uint32_t span);
/* a + b and a - b; false when that needs more than 32 bits. */
static inline bool wide_sum(int32_t a, int32_t b, int32_t *value)
{
    return !__builtin_add_overflow(a, b, value);
}
static inline bool wide_difference(int32_t a, int32_t b, int32_t *value)
{
    return !__builtin_sub_overflow(a, b, value);
}
/* Adds a product. */
void wide_add(int64_t *sum, int32_t a, int32_t b);
int32_t wide_power_of_ten(uint8_t power);

#endif
