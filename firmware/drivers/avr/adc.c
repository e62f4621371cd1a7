#include "drivers/avr/adc.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/delay.h>

#include "board.h"

#define BAND_GAP 0x1E
#define BAND_GAP_MV 1100UL
#define FULL 1023 /* the input is at the reference, or above */

/* Wakes the CPU. */
ISR(ADC_vect) {}

/* 125 kHz (prescaler 64); the first conversion after switching on takes 25 clocks, 200 us, which
 * the CPU sleeps through. */
static uint16_t convert(uint8_t channel)
{
    ADMUX = _BV(REFS0) | channel;
    ADCSRA = _BV(ADEN) | _BV(ADPS2) | _BV(ADPS1);
    if (channel == BAND_GAP)
        _delay_us(100); /* it needs 70 us to settle (table 31-5) */
    ADCSRA |= _BV(ADSC) | _BV(ADIE);
    cli();
    while (ADCSRA & _BV(ADSC))
        board_sleep(false);
    sei();
    uint16_t value = ADC;
    ADCSRA = 0;
    return value;
}

bool adc_supply(int32_t *mv)
{
    uint16_t value = convert(BAND_GAP);
    if (value == 0 || value == FULL)
        return false;
    *mv = (int32_t)((BAND_GAP_MV * 1024 + value / 2) / value);
    return true;
}

void adc_accelerometer(bool on)
{
    if (on)
        PORTC |= _BV(PC0);
    else
        PORTC &= (uint8_t)~_BV(PC0);
}

/* ADXL202: half of the supply at 0 g, 167 mV/g at 3 V, both ratiometric: 1 g = 57.0 counts. */
bool adc_acceleration(uint8_t axis, int32_t *mg)
{
    uint16_t value = convert((uint8_t)(axis + 1));
    if (value < 50)
        return false;
    int32_t offset = (int32_t)value - 512;
    *mg = (offset * 1149754L + 32768) >> 16; /* 1000 / 57.0, and 65536ths of it */
    return true;
}
