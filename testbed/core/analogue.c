/* The analogue sensor board of the CC2538 mote: LM60 temperature (SNIS119), HIH-5030 humidity
 * (009050-2), TEMT6000 light (81579) into 470 ohm above a bias of 10 mV, ADXL202; all on one
 * switch. A failed sensor's output is 0 V. */
#include <math.h>

#include "core.h"

#define MS 1000000U
#define HIH_SETTLING_NS (70U * (uint64_t)MS)
#define LM60_SETTLING_NS (2U * (uint64_t)MS)

void analogue_power(struct sensors *s, uint64_t now, bool on)
{
    sensors_account(s, now);
    if (on && !s->analogue_on)
        s->analogue_since = now;
    s->analogue_on = on;
}

uint32_t analogue_adc(const struct sensors *s, uint64_t now, enum skerry_input input,
                      double supply_mv)
{
    static const int sensor[] = {[SKERRY_INPUT_TEMPERATURE] = SKERRY_SENSOR_TEMPERATURE,
                                 [SKERRY_INPUT_HUMIDITY] = SKERRY_SENSOR_HUMIDITY,
                                 [SKERRY_INPUT_LIGHT] = SKERRY_SENSOR_LIGHT};
    double value = s->value[sensor[input]];
    uint64_t settling = input == SKERRY_INPUT_HUMIDITY ? HIH_SETTLING_NS : LM60_SETTLING_NS;
    if (!s->analogue_on || isnan(value) || now - s->analogue_since < settling)
        return 0;
    double uv = input == SKERRY_INPUT_TEMPERATURE ? 424000.0 + 6250.0 * value
                : input == SKERRY_INPUT_HUMIDITY  ? 1000.0 * supply_mv * (0.00636 * value + 0.1515)
                                                  : 10000.0 + 235.0 * value;
    return (uint32_t)fmax(0, fmin(1000.0 * supply_mv, uv) + 0.5);
}
