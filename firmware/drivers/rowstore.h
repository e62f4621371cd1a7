/* Rows in EEPROM or flash: rings of fixed-size places, each over some of the blocks of
 * WIRE_STORE_BLOCK bytes that the board gives. What a ring means, and which of its places hold
 * rows, is query/operators/storage's affair. */
#ifndef SKERRY_DRIVERS_ROWSTORE_H
#define SKERRY_DRIVERS_ROWSTORE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the smallest and of the largest row. */
#define ROWSTORE_ROW_MINIMUM 14U
#define ROWSTORE_ROW_MAXIMUM 64U

struct rowstore_ring {
    uint8_t block, blocks; /* first, and how many: block + blocks <= rowstore_blocks() */
    uint8_t size;          /* bytes of a row, ROWSTORE_ROW_MINIMUM..ROWSTORE_ROW_MAXIMUM */
};

/* Blocks that the board has; 0: none. */
uint8_t rowstore_blocks(void);
/* Rows that the ring has places for. */
uint16_t rowstore_rows(const struct rowstore_ring *ring);
/* Bytes of a place below rowstore_rows(): what was written last, or anything. */
void rowstore_read(const struct rowstore_ring *ring, uint16_t place, void *bytes);
/* Writes a place, on some boards in the background; false: there is no room yet for one more that
 * is being written, and nothing is. */
bool rowstore_write(const struct rowstore_ring *ring, uint16_t place, const void *bytes);

#endif
