/* Sensors of the board, each attribute by its number in wire.h; split-phase. */
#ifndef SKERRY_DRIVERS_SENSOR_H
#define SKERRY_DRIVERS_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* Bit n set: attribute n comes from a sensor of this board that answered at boot. */
uint32_t sensor_available(void);
/* Begins to acquire all attributes in the mask, in parallel where the hardware can; others keep
 * their values. sensor_done follows from the main loop. False when an acquisition is still under
 * way. The voltage alone has its value when this returns. */
bool sensor_acquire(uint32_t mask);
/* Keeps the sensors of these attributes powered, so that sensor_read can have them; all others are
 * off between acquisitions. */
void sensor_hold(uint32_t mask);
/* Acquires all attributes in the mask before it returns, if need be in the middle of another
 * acquisition. False: not all of them can be read at once, or their sensors are not held long
 * enough yet. */
bool sensor_read(uint32_t mask);
/* Value of the last acquisition in the attribute's fixed-point unit; false: NULL (absent or
 * failed). */
bool sensor_value(uint8_t attribute, int32_t *value);

/* Implemented by query/sampling/acquire. All attributes of the mask have a value or failed. */
void sensor_done(void);

#endif
