/* sensor.h for the analogue sensor board of the CC2538 mote: LM60 temperature, HIH-5030 humidity,
 * TEMT6000 light, ADXL202 acceleration, all switched on together by PC0. An input that stays at 0
 * has nothing connected, or a sensor that failed. */
#include "drivers/sensor.h"

#include "drivers/cc2538/adc.h"
#include "drivers/cc2538/registers.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "wire.h"

#define BIT(attribute) (1UL << (attribute))
#define FIRST WIRE_ATTRIBUTE_LIGHT
#define COUNT (WIRE_ATTRIBUTE_ACCEL_Y - FIRST + 1)
#define OWN                                                                                        \
    (BIT(WIRE_ATTRIBUTE_LIGHT) | BIT(WIRE_ATTRIBUTE_TEMP) | BIT(WIRE_ATTRIBUTE_HUMIDITY) |         \
     BIT(WIRE_ATTRIBUTE_VOLTAGE) | BIT(WIRE_ATTRIBUTE_ACCEL_X) | BIT(WIRE_ATTRIBUTE_ACCEL_Y))
#define SENSOR_POWER 1UL
/* The reference, less what a count may be off: as much, or more. */
#define SATURATED_UV (ADC_REFERENCE_UV - 1000)
/* The slowest after power-on: the HIH-5030 with 70 ms (Honeywell 009050-2). */
#define SETTLING_MS 75
/* The ADXL202 alone: 16 ms (rev. B). */
#define ACCEL_SETTLING_MS 17
#define ACCEL (BIT(WIRE_ATTRIBUTE_ACCEL_X) | BIT(WIRE_ATTRIBUTE_ACCEL_Y))

enum pin { PIN_TEMP = 2, PIN_HUMIDITY = 4, PIN_LIGHT = 5, PIN_ACCEL_X = 6, PIN_ACCEL_Y = 7 };

static uint32_t wanted, valid;
static int32_t values[COUNT];
static struct timer settled;
static bool busy, held; /* held: the sensors stay on between acquisitions */
static uint32_t warm;   /* attributes that have settled since they were switched on */
static struct event done = {.handler = sensor_done};

/* uV at a pin against the internal reference; at most 1.19 V. */
static int32_t microvolts(uint8_t pin)
{
    return (int32_t)((int64_t)adc_convert(pin, ADC_INTERNAL) * ADC_REFERENCE_UV / ADC_FULL);
}

static int32_t rounded(int64_t numerator, int32_t denominator)
{
    return (int32_t)((numerator + (numerator < 0 ? -denominator : denominator) / 2) / denominator);
}

/* Each: the attribute's fixed-point value; false when nothing answers. */
static bool temperature(int32_t *value)
{
    /* LM60 (SNIS119): 424 mV at 0 degC, 6.25 mV/K; -40 degC are 174 mV. */
    int32_t uv = microvolts(PIN_TEMP);
    *value = rounded((int64_t)(uv - 424000) * 100, 6250);
    return uv > 173500 && uv < SATURATED_UV; /* from 122.4 degC on */
}

static bool humidity(int32_t *value)
{
    /* HIH-5030: output / supply = 0.00636 RH + 0.1515. */
    int32_t counts = adc_convert(PIN_HUMIDITY, ADC_SUPPLY);
    *value = rounded((int64_t)counts * 1000000 - 151500LL * ADC_FULL,
                     (int32_t)(6360LL * ADC_FULL / 100));
    return counts > ADC_FULL / 10 && counts < ADC_FULL - 1;
}

static bool light(int32_t *value)
{
    /* TEMT6000 (Vishay 81579): 50 uA at 100 lx, linear, into 470 ohm: 235 uV/lx. Its dark is 0 V,
     * so only the board's bias tells that it is there. */
    int32_t uv = microvolts(PIN_LIGHT);
    *value = rounded(uv - 10000, 235);
    if (*value < 0)
        *value = 0;
    return uv > 5000 && uv < SATURATED_UV; /* from 5,000 lx on */
}

static bool acceleration(uint8_t pin, int32_t *value)
{
    /* ADXL202 (rev. B): half of the supply at 0 g, 167 mV/g at 3 V, both ratiometric. */
    int32_t counts = adc_convert(pin, ADC_SUPPLY);
    *value = rounded((int64_t)(counts - ADC_FULL / 2) * 3000 * 1000, 167 * ADC_FULL);
    return counts > ADC_FULL / 20;
}

static bool voltage(int32_t *value)
{
    int32_t counts = adc_convert(ADC_SUPPLY_THIRD, ADC_INTERNAL);
    *value = rounded((int64_t)counts * 3 * ADC_REFERENCE_UV, 1000 * ADC_FULL);
    return counts > 0 && counts < ADC_FULL - 1; /* up to 3.57 V */
}

static bool measure(uint8_t attribute, int32_t *value)
{
    switch (attribute) {
    case WIRE_ATTRIBUTE_TEMP: return temperature(value);
    case WIRE_ATTRIBUTE_HUMIDITY: return humidity(value);
    case WIRE_ATTRIBUTE_LIGHT: return light(value);
    case WIRE_ATTRIBUTE_ACCEL_X: return acceleration(PIN_ACCEL_X, value);
    case WIRE_ATTRIBUTE_ACCEL_Y: return acceleration(PIN_ACCEL_Y, value);
    case WIRE_ATTRIBUTE_VOLTAGE: return voltage(value);
    default: return false;
    }
}

uint32_t sensor_available(void) { return OWN; }

static void switch_off(void)
{
    GPIO_DATA(GPIO_C, SENSOR_POWER) = 0;
    warm = 0;
}

static void measure_all(uint32_t mask)
{
    for (uint8_t attribute = FIRST; attribute <= (uint8_t)WIRE_ATTRIBUTE_ACCEL_Y; attribute++)
        if (mask & BIT(attribute) && measure(attribute, &values[attribute - FIRST]))
            valid |= BIT(attribute);
}

static void convert(void)
{
    measure_all(wanted);
    busy = false;
    warm |= wanted;
    if (!held)
        switch_off();
    event_post(&done);
}

static void warm_up(void)
{
    bool slow = wanted & ~(ACCEL | BIT(WIRE_ATTRIBUTE_VOLTAGE));
    GPIO_DATA(GPIO_C, SENSOR_POWER) = SENSOR_POWER;
    timer_start(&settled,
                clock_now() + (slow ? CLOCK_MS(SETTLING_MS) : CLOCK_MS(ACCEL_SETTLING_MS)),
                convert);
}

bool sensor_acquire(uint32_t mask)
{
    if (busy || done.pending)
        return false;
    wanted = mask & OWN;
    valid &= ~mask;
    busy = true;
    if (wanted & ~warm & ~BIT(WIRE_ATTRIBUTE_VOLTAGE))
        warm_up();
    else
        convert();
    return true;
}

void sensor_hold(uint32_t mask)
{
    held = mask & OWN & ~BIT(WIRE_ATTRIBUTE_VOLTAGE);
    if (busy || done.pending)
        return; /* then sensor_read has to wait for the next */
    if (!held)
        switch_off();
    else if (mask & OWN & ~warm & ~BIT(WIRE_ATTRIBUTE_VOLTAGE))
        (void)sensor_acquire(mask);
}

bool sensor_read(uint32_t mask)
{
    if (mask & OWN & ~warm & ~BIT(WIRE_ATTRIBUTE_VOLTAGE))
        return false;
    valid &= ~mask;
    measure_all(mask);
    return true;
}

bool sensor_value(uint8_t attribute, int32_t *value)
{
    if (!(valid & BIT(attribute)))
        return false;
    *value = values[attribute - FIRST];
    return true;
}
