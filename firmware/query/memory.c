#include "query/memory.h"

#include <string.h>

#include "wire.h"

static uint8_t bytes[MEMORY_BYTES];
static uint16_t used;
static struct memory_block *blocks[WIRE_QUERIES_MAXIMUM]; /* those that hold something, in no order */
static uint8_t count;

void memory_init(void) { used = count = 0; }
uint16_t memory_free(void) { return (uint16_t)(MEMORY_BYTES - used); }

/* Moves everything from `from` on by so many bytes, up or down. */
static void move(uint8_t *from, int16_t by)
{
    memmove(from + by, from, (size_t)(bytes + used - from));
    for (uint8_t i = 0; i < count; i++)
        if (blocks[i]->bytes >= from)
            blocks[i]->bytes += by;
    used = (uint16_t)(used + by);
}

bool memory_grow(struct memory_block *block, uint16_t more)
{
    if (more > memory_free() || (block->size == 0 && count == WIRE_QUERIES_MAXIMUM))
        return false;
    if (block->size == 0) {
        block->bytes = bytes + used;
        blocks[count++] = block;
        used = (uint16_t)(used + more);
    } else {
        move(block->bytes + block->size, (int16_t)more);
    }
    memset(block->bytes + block->size, 0, more);
    block->size = (uint16_t)(block->size + more);
    return true;
}

void memory_release(struct memory_block *block)
{
    if (block->size == 0)
        return;
    for (uint8_t i = 0; i < count; i++)
        if (blocks[i] == block)
            blocks[i] = blocks[--count];
    move(block->bytes + block->size, (int16_t)-block->size);
    block->size = 0;
}
