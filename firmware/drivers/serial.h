/* The UART as bytes, interrupt-driven. */
#ifndef SKERRY_DRIVERS_SERIAL_H
#define SKERRY_DRIVERS_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

/* 38400 baud, 8N1. Only the root calls it. */
void serial_init(void);
/* Bytes that serial_write would take now. */
uint8_t serial_room(void);
/* Queues one byte; false when there is no room. */
bool serial_write(uint8_t byte);
/* Next received byte, or -1. */
int16_t serial_read(void);
/* Implemented by net/link: bytes have arrived, or room has appeared. Called from the main loop. */
void serial_ready(void);

#endif
