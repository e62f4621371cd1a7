/* What a test holds of the host board: time, the radio's ears, the serial line, settings. */
#ifndef SKERRY_HOST_H
#define SKERRY_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

void host_settings(const struct wire_settings *settings);
/* Moves time on, running everything that falls due, in steps of at most `step` ticks. */
void host_run(uint32_t ticks, uint32_t step);
/* A frame arrives, if the radio is on; FCS not counted. */
void host_receive(const uint8_t *psdu, uint8_t length, uint8_t lqi);
/* Bytes arrive on the serial line. */
void host_serial(const uint8_t *bytes, uint16_t length);
/* Last frame sent, and how many so far. */
extern uint8_t host_sent[125], host_sent_length;
extern uint32_t host_sent_count;
/* Bytes that the mote has written on the serial line; the test takes them by setting the length to
 * 0. */
extern uint8_t host_written[256];
extern uint16_t host_written_length;
/* Whether unicast frames sent are acknowledged. */
extern bool host_acknowledges;

#endif
