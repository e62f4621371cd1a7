#include "drivers/cc2538/adc.h"

#include "drivers/cc2538/registers.h"

/* Polls before a conversion is given up: over 1 ms. */
#define PATIENCE 10000

int32_t adc_convert(uint8_t channel, enum adc_reference reference)
{
    if (channel < 8)
        IOC_PA_OVER(channel) = IOC_OVERRIDE_ANALOGUE;
    SOC_ADC_ADCCON3 =
        (reference == ADC_INTERNAL ? ADCCON3_INTERNAL : ADCCON3_SUPPLY) | ADCCON3_512 | channel;
    for (uint32_t i = 0; i < PATIENCE && !(SOC_ADC_ADCCON1 & ADCCON1_DONE); i++) {}
    uint32_t low = SOC_ADC_ADCL & 0xFF, high = SOC_ADC_ADCH & 0xFF;
    int32_t value = (int16_t)(uint16_t)(high << 8 | low);
    return value < 0 ? 0 : value >> 2;
}
