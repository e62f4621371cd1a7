/* The AVR's arithmetic and its flags.
 *
 * Copyright (c) 2026 the skerry authors. These files are MIT, but the library they are built into
 * links libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#ifndef ARITHMETIC_H
#define ARITHMETIC_H

#include <simavr/sim_avr.h>

/* Flags between the instructions of one run. Z is that `zero` is 0; N, V and S are the highest bit
 * of theirs, H is bit 4: each instruction leaves there what it has at hand. T and I stay in
 * avr->sreg. */
struct flags {
    uint8_t carry, zero, negative, overflow, sign, half;
};

static inline struct flags flags_of(const avr_t *avr)
{
    return (struct flags){avr->sreg[S_C],
                          !avr->sreg[S_Z],
                          (uint8_t)(avr->sreg[S_N] << 7),
                          (uint8_t)(avr->sreg[S_V] << 7),
                          (uint8_t)(avr->sreg[S_S] << 7),
                          (uint8_t)(avr->sreg[S_H] << 4)};
}

static inline void keep_flags(avr_t *avr, struct flags flags)
{
    avr->sreg[S_C] = flags.carry;
    avr->sreg[S_Z] = !flags.zero;
    avr->sreg[S_N] = flags.negative >> 7;
    avr->sreg[S_V] = flags.overflow >> 7;
    avr->sreg[S_S] = flags.sign >> 7;
    avr->sreg[S_H] = flags.half >> 4 & 1;
}

/* ---- arithmetic: each returns its result and sets the flags that come of it ---- */
static inline uint8_t logic(struct flags *flags, uint8_t result)
{
    flags->overflow = 0;
    flags->zero = flags->negative = flags->sign = result;
    return result;
}

static inline uint8_t add(struct flags *flags, uint8_t a, uint8_t b, uint8_t carry)
{
    unsigned sum = (unsigned)a + b + carry;
    uint8_t result = (uint8_t)sum;
    flags->carry = (uint8_t)(sum >> 8);
    flags->half = a ^ b ^ result;
    flags->overflow = (a ^ result) & (b ^ result);
    flags->zero = flags->negative = result;
    flags->sign = result ^ flags->overflow;
    return result;
}

/* `zero`: what a difference of several bytes has in those below that is not 0. */
static inline uint8_t subtract(struct flags *flags, uint8_t a, uint8_t b, uint8_t carry,
                               uint8_t zero)
{
    unsigned difference = (unsigned)a - b - carry;
    uint8_t result = (uint8_t)difference;
    flags->carry = difference >> 8 & 1;
    flags->half = a ^ b ^ result;
    flags->overflow = (a ^ b) & (a ^ result);
    flags->zero = result | zero;
    flags->negative = result;
    flags->sign = result ^ flags->overflow;
    return result;
}

static inline uint8_t step_by_one(struct flags *flags, uint8_t result, uint8_t overflows)
{
    flags->overflow = result == overflows ? 0x80 : 0;
    flags->zero = flags->negative = result;
    flags->sign = result ^ flags->overflow;
    return result;
}

static inline uint8_t shift_right(struct flags *flags, uint8_t value, uint8_t high)
{
    uint8_t result = value >> 1 | high;
    flags->carry = value & 1;
    flags->zero = flags->negative = result;
    flags->overflow = result ^ (uint8_t)(flags->carry << 7);
    flags->sign = result ^ flags->overflow;
    return result;
}

static inline void flags_of_word(struct flags *flags, uint16_t result, uint16_t overflow,
                                 uint16_t carry)
{
    flags->overflow = overflow >> 8;
    flags->carry = carry >> 15;
    flags->zero = (uint8_t)(result | result >> 8);
    flags->negative = result >> 8;
    flags->sign = flags->negative ^ flags->overflow;
}

static inline uint16_t pair(const uint8_t *data, unsigned low)
{
    return (uint16_t)(data[low] | data[low + 1] << 8);
}
static inline void set_pair(uint8_t *data, unsigned low, uint16_t value)
{
    data[low] = (uint8_t)value;
    data[low + 1] = value >> 8;
}

static inline void multiply(uint8_t *data, struct flags *flags, int product, int shift)
{
    flags->carry = product >> 15 & 1;
    uint16_t result = (uint16_t)((unsigned)product << shift);
    flags->zero = (uint8_t)(result | result >> 8);
    set_pair(data, 0, result);
}

#endif
