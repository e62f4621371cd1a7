/* sensor.h for the IRIS sensor board: all sensors of an acquisition work side by side. */
#include "drivers/sensor.h"

#include "drivers/avr/adc.h"
#include "drivers/avr/twi.h"
#include "drivers/digital_board/sht21.h"
#include "drivers/digital_board/tsl2561.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "wire.h"

/* This board's attributes follow one another: their masks are kept shifted, in a byte. */
#define FIRST WIRE_ATTRIBUTE_LIGHT
#define COUNT (WIRE_ATTRIBUTE_ACCEL_Y - FIRST + 1)
#define BIT(attribute) (1U << ((attribute) - FIRST))
#define LIGHT BIT(WIRE_ATTRIBUTE_LIGHT)
#define TEMP BIT(WIRE_ATTRIBUTE_TEMP)
#define HUMIDITY BIT(WIRE_ATTRIBUTE_HUMIDITY)
#define VOLTAGE BIT(WIRE_ATTRIBUTE_VOLTAGE)
#define ACCEL_X BIT(WIRE_ATTRIBUTE_ACCEL_X)
#define ACCEL_Y BIT(WIRE_ATTRIBUTE_ACCEL_Y)
#define ALL (BIT(WIRE_ATTRIBUTE_ACCEL_Y + 1) - 1)

static uint8_t pending, valid;
static int32_t values[COUNT];
static struct timer climate_timer, light_timer, accel_timer;
static bool busy, held, warm; /* held: the accelerometer stays on; warm: it has been long enough */
static struct event done = {.handler = sensor_done};

static uint8_t own(uint32_t mask) { return (uint8_t)(mask >> FIRST) & ALL; }

uint32_t sensor_available(void)
{
    static uint8_t available;
    if (!available) {
        twi_init();
        available = VOLTAGE | ACCEL_X | ACCEL_Y;
        if (sht21_present())
            available |= TEMP | HUMIDITY;
        if (tsl2561_present())
            available |= LIGHT;
    }
    return (uint32_t)available << FIRST;
}

static void store(uint8_t attribute, bool ok, int32_t value)
{
    uint8_t bit = (uint8_t)BIT(attribute); /* a loop of shifts on AVR */
    values[attribute - FIRST] = value;
    if (ok)
        valid |= bit;
    pending &= (uint8_t)~bit;
    if (!pending && busy) {
        busy = false;
        event_post(&done);
    }
}

static void climate_begin(void);

static void climate_end(void)
{
    int32_t value = 0;
    bool humidity = !(pending & TEMP);
    bool ok = sht21_result(humidity, &value);
    store(humidity ? WIRE_ATTRIBUTE_HUMIDITY : WIRE_ATTRIBUTE_TEMP, ok, value);
    climate_begin();
}

/* The SHT21 does one conversion at a time: temperature, then humidity. */
static void climate_begin(void)
{
    if (!(pending & (TEMP | HUMIDITY)))
        return;
    bool humidity = !(pending & TEMP);
    if (sht21_start(humidity)) {
        timer_after(&climate_timer,
                    (humidity ? CLOCK_MS(SHT21_HUMIDITY_MS) : CLOCK_MS(SHT21_TEMPERATURE_MS)),
                    climate_end);
    } else {
        if (pending & HUMIDITY)
            store(WIRE_ATTRIBUTE_HUMIDITY, false, 0);
        if (pending & TEMP)
            store(WIRE_ATTRIBUTE_TEMP, false, 0);
    }
}

static void light_end(void)
{
    int32_t value = 0;
    bool again, ok = tsl2561_result(&value, &again);
    if (again)
        timer_after(&light_timer, CLOCK_MS(TSL2561_SHORT_MS), light_end);
    else
        store(WIRE_ATTRIBUTE_LIGHT, ok, value);
}

static void acceleration(uint8_t axis)
{
    int32_t value = 0;
    bool ok = adc_acceleration(axis, &value);
    store((uint8_t)(WIRE_ATTRIBUTE_ACCEL_X + axis), ok, value);
}

static void accel_off(void)
{
    adc_accelerometer(false);
    warm = false;
}

static void accel_end(void)
{
    bool x = pending & ACCEL_X, y = pending & ACCEL_Y;
    warm = true;
    if (x)
        acceleration(0);
    if (y)
        acceleration(1);
    if (!held)
        accel_off();
}

static void accel_begin(void)
{
    if (accel_timer.running)
        return;
    adc_accelerometer(true);
    timer_after(&accel_timer, CLOCK_MS(ADC_ACCELEROMETER_MS), accel_end);
}

bool sensor_acquire(uint32_t mask)
{
    if (busy || done.pending)
        return false;
    pending = own(mask);
    valid &= (uint8_t)~pending;
    busy = true;
    if (!pending) {
        busy = false;
        event_post(&done);
        return true;
    }
    if (pending & (ACCEL_X | ACCEL_Y)) {
        if (warm)
            accel_end();
        else
            accel_begin();
    }
    if (pending & LIGHT) {
        if (tsl2561_start())
            timer_after(&light_timer, CLOCK_MS(TSL2561_INTEGRATION_MS), light_end);
        else
            store(WIRE_ATTRIBUTE_LIGHT, false, 0);
    }
    climate_begin();
    if (pending & VOLTAGE) {
        int32_t value = 0;
        bool ok = adc_supply(&value);
        store(WIRE_ATTRIBUTE_VOLTAGE, ok, value);
    }
    return true;
}

void sensor_hold(uint32_t mask)
{
    held = own(mask) & (ACCEL_X | ACCEL_Y);
    if (held && !warm)
        accel_begin();
    else if (!held && !accel_timer.running)
        accel_off();
}

bool sensor_read(uint32_t mask)
{
    uint8_t wanted = own(mask);
    if (mask & ~((uint32_t)(ACCEL_X | ACCEL_Y) << FIRST) || !warm)
        return mask == 0;
    valid &= (uint8_t)~wanted;
    if (wanted & ACCEL_X)
        acceleration(0);
    if (wanted & ACCEL_Y)
        acceleration(1);
    return true;
}

bool sensor_value(uint8_t attribute, int32_t *value)
{
    uint8_t place = (uint8_t)(attribute - FIRST);
    if (place >= COUNT || !(valid >> place & 1))
        return false;
    *value = values[place];
    return true;
}
