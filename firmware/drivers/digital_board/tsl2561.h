/* TAOS TSL2561T (TAOS059N): illuminance. */
#ifndef SKERRY_TSL2561_H
#define SKERRY_TSL2561_H

#include <stdbool.h>
#include <stdint.h>

/* Nominal integrations of 402 and 13.7 ms, plus the oscillator's error of 5 %. */
#define TSL2561_INTEGRATION_MS 422
#define TSL2561_SHORT_MS 15

bool tsl2561_present(void);
/* Powers it up; an integration begins. */
bool tsl2561_start(void);
/* lx; false: no answer, or brighter than the 40,000 lx it is made for. Powers it down.
 * `again`: it was too bright for the first integration, above some 25,000 lx, and another has
 * begun, whose result is there after TSL2561_SHORT_MS. */
bool tsl2561_result(int32_t *lux, bool *again);

#endif
