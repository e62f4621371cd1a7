/* The ATmega1281's ADC, 10 bit, against AVcc. */
#ifndef SKERRY_AVR_ADC_H
#define SKERRY_AVR_ADC_H

#include <stdbool.h>
#include <stdint.h>

/* Supply voltage in mV, from the band gap: above 1.1 V; false: there is no telling. */
bool adc_supply(int32_t *mv);
/* Powers the accelerometer; it settles in ADC_ACCELEROMETER_MS. */
void adc_accelerometer(bool on);
#define ADC_ACCELEROMETER_MS 17
/* mg along x (axis 0) or y (1); false: nothing connected. */
bool adc_acceleration(uint8_t axis, int32_t *mg);

#endif
