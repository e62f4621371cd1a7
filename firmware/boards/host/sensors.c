/* Each attribute is worth ten times its number. */
#include "drivers/sensor.h"

#include "kernel/event.h"

static struct event done = {.handler = sensor_done};
uint32_t sensor_available(void) { return 0x3F0; }
bool sensor_acquire(uint32_t mask)
{
    (void)mask;
    if (done.pending)
        return false;
    event_post(&done);
    return true;
}
void sensor_hold(uint32_t mask) { (void)mask; }
bool sensor_read(uint32_t mask) { return mask != UINT32_MAX; }
bool sensor_value(uint8_t attribute, int32_t *value)
{
    *value = attribute * 10;
    return attribute >= 4 && attribute <= 9;
}
