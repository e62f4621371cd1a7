#include "query/program/memory.h"

#include <stddef.h>
#include <string.h>

#include "kernel/assert.h"
#include "net/app.h"
#include "query/query_conf.h"
#include "wire.h"

static struct {
    uint8_t bytes[MEMORY_BYTES] __attribute__((aligned(4)));
    uint16_t used; /* from the first on; the rest is free */
    uint16_t lent; /* of the last of what is free */
} memory;

void memory_init(void) { memory.used = memory.lent = 0; }
uint16_t memory_free(void) { return (uint16_t)(MEMORY_BYTES - memory.used); }

/* Moves everything from `from` on by so many bytes, up or down. */
static void move(uint8_t *from, int16_t by)
{
    INVARIANT(from >= memory.bytes && from <= memory.bytes + memory.used &&
                  memory.used <= MEMORY_BYTES,
              QUERY_MEMORY);
    memmove(from + by, from, (size_t)(memory.bytes + memory.used - from));
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct memory_block *block = memory_block_at(i);
        if (block->size > 0 && block->bytes >= from)
            block->bytes += by;
    }
    memory.used = (uint16_t)(memory.used + (uint16_t)by);
}

bool memory_grow(struct memory_block *block, uint16_t more)
{
    if (more > memory_free())
        return false;
    if (more > memory_free() - memory.lent)
        memory.lent = 0;
    if (block->size == 0)
        block->bytes = memory.bytes + memory.used;
    uint8_t *end = block->bytes + block->size;
    move(end, (int16_t)more);
    memset(end, 0, more);
    block->size = (uint16_t)(block->size + more);
    return true;
}

void memory_release(struct memory_block *block)
{
    uint16_t size = block->size;
    block->size = 0;
    if (size != 0)
        move(block->bytes + size, (int16_t)-size);
}

void *app_borrow(uint16_t bytes)
{
    memory.lent = 0;
    if (bytes == 0 || bytes > memory_free())
        return NULL;
    memory.lent = bytes;
    return memset(memory.bytes + MEMORY_BYTES - bytes, 0, bytes);
}

void *app_borrowed(void) { return memory.lent ? memory.bytes + MEMORY_BYTES - memory.lent : NULL; }

void app_give_back(void) { memory.lent = 0; }
