/* The bytes that queries hold while they run, in the blocks of queries: each is a program and,
 * behind it, the state of its windows. Blocks lie side by side without gaps, so that what is free
 * is one piece. */
#ifndef SKERRY_QUERY_PROGRAM_MEMORY_H
#define SKERRY_QUERY_PROGRAM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_block {
    uint8_t *bytes; /* moves when a block before it is released */
    uint16_t size;  /* 0: holds nothing */
};

/* The blocks, from 0 to WIRE_QUERIES_MAXIMUM - 1. Implemented by their owner, program/query_table.
 */
struct memory_block *memory_block_at(uint8_t index);

/* Forgets all blocks. */
void memory_init(void);
/* More bytes, zero, at the end of a block, which may hold nothing yet; false, and nothing changes,
 * when there are not so many. */
bool memory_grow(struct memory_block *block, uint16_t bytes);
void memory_release(struct memory_block *block);
/* Bytes that no query holds; what is lent (net/app.h) is among them. */
uint16_t memory_free(void);

#endif
