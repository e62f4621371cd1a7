/* Attributes as the expression machine reads them: from sensors, board, settings and net. */
#ifndef SKERRY_QUERY_ATTRIBUTE_H
#define SKERRY_QUERY_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a mask of attributes those that a sensor must acquire first. */
uint32_t attribute_sensors(uint32_t mask);
/* A vm_reader: the context is a struct slot. Sensors give their last acquisition, what is joined
 * the row met at this moment. */
bool attribute_read(uint8_t attribute, int32_t *value, const void *slot);

#endif
