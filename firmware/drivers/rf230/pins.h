/* How the AT86RF230 hangs on the IRIS: SPI on port B, SLP_TR PB7, /RST PA6, IRQ PD4 = ICP1. */
#ifndef SKERRY_RF230_PINS_H
#define SKERRY_RF230_PINS_H

#include <avr/io.h>
#include <stdbool.h>
#include <util/delay.h>

static inline void rf230_pins_init(void)
{
    PORTB |= _BV(PB0);
    DDRB |= _BV(PB0) | _BV(PB1) | _BV(PB2) | _BV(PB7);
    PORTB &= (uint8_t)~_BV(PB7);
    PORTA |= _BV(PA6);
    DDRA |= _BV(PA6);
    DDRD &= (uint8_t)~_BV(PD4);
    SPCR = _BV(SPE) | _BV(MSTR);
    SPSR = _BV(SPI2X); /* 8 MHz / 2 */
}
static inline void rf230_select(void) { PORTB &= (uint8_t)~_BV(PB0); }
static inline void rf230_deselect(void) { PORTB |= _BV(PB0); }
static inline void rf230_sleep_high(void) { PORTB |= _BV(PB7); }
static inline void rf230_sleep_low(void) { PORTB &= (uint8_t)~_BV(PB7); }
static inline void rf230_reset_low(void) { PORTA &= (uint8_t)~_BV(PA6); }
static inline void rf230_reset_high(void) { PORTA |= _BV(PA6); }

static inline uint8_t rf230_exchange(uint8_t out)
{
    SPDR = out;
    while (!(SPSR & _BV(SPIF))) {}
    return SPDR;
}

/* Timer 1 runs at 1 MHz while the radio is on; its input capture stamps the radio's interrupt. */
static inline void rf230_capture_on(void)
{
    TCCR1A = 0;
    TCCR1B = _BV(ICES1) | _BV(CS11);
    TIFR1 = _BV(ICF1);
    TIMSK1 = _BV(ICIE1);
}
static inline void rf230_capture_off(void)
{
    TIMSK1 = 0;
    TCCR1B = 0;
}
/* An edge has been captured, and its handler has not run yet. */
static inline bool rf230_capture_pending(void) { return TIFR1 & _BV(ICF1); }
/* us since the captured edge. */
static inline uint16_t rf230_capture_age(void) { return (uint16_t)(TCNT1 - ICR1); }

#endif
