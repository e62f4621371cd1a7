#include "lib/wide.h"

/* Little-endian, as wire.h makes sure: the compiler would call a routine to shift by 32 bits. */
union halves {
    uint64_t all;
    struct {
        uint32_t low, high;
    };
};

bool wide_divide(uint64_t numerator, uint32_t divisor, uint32_t *quotient, uint32_t *remainder)
{
    union halves halves = {numerator};
    uint32_t rest = halves.high, low = halves.low;
    if (rest >= divisor)
        return false;
    if (rest == 0) { /* three times as fast */
        *quotient = low / divisor;
        *remainder = low % divisor;
        return true;
    }
    /* Restoring division: quotient bits move into `low` from the right as its own leave on the
     * left. */
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

uint32_t wide_magnitude(int32_t value)
{
    return value < 0 ? 0U - (uint32_t)value : (uint32_t)value;
}

bool wide_signed(uint32_t size, bool negative, int32_t *value)
{
    *value = (int32_t)(negative ? 0U - size : size);
    return size == 0 || (*value < 0) == negative;
}

/* Rounds `whole`, beside which a division has left `rest`. */
static bool rounded(uint32_t whole, uint32_t rest, uint32_t divisor, bool negative, int32_t *value)
{
    if (rest >= divisor - rest && ++whole == 0)
        return false;
    return wide_signed(whole, negative, value);
}

bool wide_round(uint64_t numerator, uint32_t divisor, bool negative, int32_t *value)
{
    uint32_t whole, rest;
    return wide_divide(numerator, divisor, &whole, &rest) &&
           rounded(whole, rest, divisor, negative, value);
}

bool wide_quotient(int64_t numerator, uint8_t decimals, uint32_t divisor, int32_t *value)
{
    bool negative = numerator < 0;
    uint32_t whole, digit, rest;
    if (!wide_divide(negative ? 0U - (uint64_t)numerator : (uint64_t)numerator, divisor, &whole,
                     &rest))
        return false;
    for (; decimals > 0; decimals--) {
        if (whole > INT32_MAX / 10)
            return false;
        wide_divide((uint64_t)rest * 10, divisor, &digit, &rest);
        whole = whole * 10 + digit;
    }
    return rounded(whole, rest, divisor, negative, value);
}

uint32_t wide_distance(int32_t a, int32_t b)
{
    return a < b ? (uint32_t)b - (uint32_t)a : (uint32_t)a - (uint32_t)b;
}

int32_t wide_between(int32_t a, int32_t b, uint32_t at, uint32_t span)
{
    int32_t part = 0;
    /* at <= span: its low 32 bits suffice */
    wide_round((uint64_t)wide_distance(a, b) * at, span, b < a, &part);
    return (int32_t)((uint32_t)a + (uint32_t)part);
}

void wide_add(int64_t *sum, int32_t a, int32_t b) { *sum += (int64_t)a * b; }

int32_t wide_power_of_ten(uint8_t power)
{
    int32_t value = 1;
    while (power-- > 0)
        value *= 10;
    return value;
}
