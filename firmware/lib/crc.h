/* CRC-16/XMODEM (ITU-T V.41): polynomial 0x1021, start 0, most significant bit first. */
#ifndef SKERRY_LIB_CRC_H
#define SKERRY_LIB_CRC_H

#include <stdint.h>

/* One byte more into a check sum. Over data and then its own check sum, high byte first, it is 0.
 */
uint16_t crc_xmodem(uint16_t crc, uint8_t byte);

#endif
