/* Rows in an array, which outlives the mote's restarts as long as the process runs. */
#include "drivers/rowstore.h"

#include <string.h>

#include "wire.h"

#define BLOCKS 63

static uint8_t store[BLOCKS * WIRE_STORE_BLOCK];

static uint8_t *at(const struct rowstore_ring *ring, uint16_t place)
{
    return &store[ring->block * WIRE_STORE_BLOCK + place * ring->size];
}

uint8_t rowstore_blocks(void) { return BLOCKS; }
uint16_t rowstore_rows(const struct rowstore_ring *ring)
{
    return (uint16_t)(ring->blocks * WIRE_STORE_BLOCK / ring->size);
}
void rowstore_read(const struct rowstore_ring *ring, uint16_t place, void *bytes)
{
    memcpy(bytes, at(ring, place), ring->size);
}

bool rowstore_write(const struct rowstore_ring *ring, uint16_t place, const void *bytes)
{
    memcpy(at(ring, place), bytes, ring->size);
    return true;
}
