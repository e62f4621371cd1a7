/* Consistent overhead byte stuffing (Cheshire and Baker 1999). */
#ifndef SKERRY_LIB_COBS_H
#define SKERRY_NET_COBS_H

#include <stdint.h>

/* Stuffs `length` (<= 253) bytes into `out` (length + 2 bytes), closing zero included; bytes
 * written. They may lie in `out`, from its second byte on. */
uint8_t cobs_encode(const uint8_t *data, uint8_t length, uint8_t *out);
/* Unstuffs in place; bytes left, 0 when they were not stuffed bytes. */
uint8_t cobs_decode(uint8_t *data, uint8_t length);

#endif
