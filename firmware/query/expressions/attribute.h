/* Attributes as the expression machine reads them: from sensors, board, settings and net. */
#ifndef SKERRY_QUERY_EXPRESSIONS_ATTRIBUTE_H
#define SKERRY_QUERY_EXPRESSIONS_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "query/expressions/eval_context.h"

/* Of a mask of attributes those that a sensor must acquire first. */
uint32_t attribute_sensors(uint32_t mask);
/* A vm_reader. Sensors give their last acquisition. */
bool attribute_read(uint8_t attribute, int32_t *value, const struct eval_context *context);
/* For code that reads nothing else. */
extern const IN_FLASH struct vm_readers attribute_readers;

#endif
