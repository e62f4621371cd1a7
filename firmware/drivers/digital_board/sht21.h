/* Sensirion SHT21 (May 2010): temperature and humidity, no-hold mode. */
#ifndef SKERRY_SHT21_H
#define SKERRY_SHT21_H

#include <stdbool.h>
#include <stdint.h>

/* Longest conversion of 14 bit temperature and 12 bit humidity (table 7), ms. */
#define SHT21_TEMPERATURE_MS 87
#define SHT21_HUMIDITY_MS 31

bool sht21_present(void);
bool sht21_start(bool humidity);
/* 0.01 degC or 0.01 %RH; false: no answer, wrong checksum, or colder or warmer than it may be. */
bool sht21_result(bool humidity, int32_t *value);

#endif
