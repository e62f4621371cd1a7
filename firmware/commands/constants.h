/* Constants of the deployment, which commands set. */
#ifndef SKERRY_COMMANDS_CONSTANTS_H
#define SKERRY_COMMANDS_CONSTANTS_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* Keeps one over restarts: 16 bits `offset` bytes into the settings. */
void constants_keep(uint8_t offset, uint16_t value);

#endif
