/* What a mote says of itself: STATUS, FLASH and LOG records. */
#ifndef SKERRY_NET_STATUS_H
#define SKERRY_NET_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* Queues a STATUS record, and a FLASH one where the board keeps rows in flash. */
void status_report(void);
/* Each mote reports in a round of its own: one of so many, and in a slow network. Powers of two. */
enum { STATUS_EVERY = 32, STATUS_SELDOM = 512 };
/* Queues a LOG record; severity 0 debug .. 3 error, text at most 60 characters. */
void status_log(uint8_t severity, const char *text);
/* Tells the gateway that a query is refused: an enum wire_refusal, and the bytes that are short. */
void net_query_refused(uint8_t query, uint8_t reason, uint16_t missing);
/* Health attributes, from `link` to `dropped`, and `energy`; false: NULL. */
bool net_health(uint8_t attribute, int32_t *value);

#endif
