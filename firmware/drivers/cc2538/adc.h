/* The CC2538's ADC (SWRU319C, chapter 15): single-ended, decimation 512, 13 bits and sign. */
#ifndef SKERRY_CC2538_ADC_H
#define SKERRY_CC2538_ADC_H

#include <stdint.h>

/* Counts at full scale. */
#define ADC_FULL 8192
/* The internal reference (data sheet SWRS096D). */
#define ADC_REFERENCE_UV 1190000L

enum adc_reference { ADC_INTERNAL, ADC_SUPPLY };

/* One conversion of pin PA`channel`, or with channel 15 of a third of the supply: 132 us.
 * 0..ADC_FULL - 1. */
int32_t adc_convert(uint8_t channel, enum adc_reference reference);

#endif
