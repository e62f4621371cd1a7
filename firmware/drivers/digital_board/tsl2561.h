/* TAOS TSL2561T (TAOS059N): illuminance. */
#ifndef SKERRY_TSL2561_H
#define SKERRY_TSL2561_H

#include <stdbool.h>
#include <stdint.h>

/* Nominal integration 402 ms, plus the oscillator's error of 5 %. */
#define TSL2561_INTEGRATION_MS 422

bool tsl2561_present(void);
/* Powers it up; an integration begins. */
bool tsl2561_start(void);
/* lx; false: no answer, or saturated. Powers it down. */
bool tsl2561_result(int32_t *lux);

#endif
