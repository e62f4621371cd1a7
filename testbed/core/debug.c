/* A debugger at a mote: where the mote stops, and that time stands still meanwhile. Breakpoints,
 * watchpoints and steps are here, the same for every CPU; a back-end only asks before each
 * instruction, and lets its registers and memory be seen. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define BREAKPOINTS 64
#define WATCHPOINTS 8
#define WATCHED_BYTES 64

struct watchpoint {
    uint32_t address, length;
    uint8_t bytes[WATCHED_BYTES];
};

struct debugger {
    bool stepping, begun; /* begun: the step's first instruction is under way */
    uint32_t from, to;    /* a step stays within [from, to) */
    uint32_t breakpoints[BREAKPOINTS], breakpoint_count;
    struct watchpoint watchpoints[WATCHPOINTS];
    uint32_t watchpoint_count;
    bool fault_told;
    int32_t reason;
    uint32_t address; /* of the stop that it has asked for */
};

/* ---- when to stop ---- */
static int stop(struct debugger *debugger, int32_t reason, uint32_t address)
{
    debugger->reason = reason;
    debugger->address = address;
    debugger->stepping = false;
    return 1;
}

/* NULL when nothing has changed since it was last asked. */
static const struct watchpoint *changed(struct mote *mote)
{
    struct debugger *debugger = mote->debugger;
    const struct watchpoint *first = NULL;
    for (uint32_t i = 0; i < debugger->watchpoint_count; i++) {
        struct watchpoint *watchpoint = &debugger->watchpoints[i];
        uint8_t bytes[WATCHED_BYTES];
        uint32_t length = mote->backend->debug->memory_read(mote->cpu, watchpoint->address, bytes,
                                                            watchpoint->length);
        if (!memcmp(bytes, watchpoint->bytes, length))
            continue;
        memcpy(watchpoint->bytes, bytes, length);
        if (!first)
            first = watchpoint;
    }
    return first;
}

int debug_instruction(void *m, uint32_t address)
{
    struct mote *mote = m;
    struct debugger *debugger = mote->debugger;
    const struct watchpoint *watchpoint = debugger->watchpoint_count ? changed(mote) : NULL;
    if (watchpoint)
        return stop(debugger, SKERRY_STOP_WATCHPOINT, watchpoint->address);
    if (debugger->stepping && !debugger->begun) {
        debugger->begun = true;
        return 0;
    }
    for (uint32_t i = 0; i < debugger->breakpoint_count; i++)
        if (debugger->breakpoints[i] == address)
            return stop(debugger, SKERRY_STOP_BREAKPOINT, 0);
    if (debugger->stepping && (address < debugger->from || address >= debugger->to))
        return stop(debugger, SKERRY_STOP_STEP, 0);
    return 0;
}

uint64_t debug_run(struct mote *mote, uint64_t until)
{
    const skerry_world *world = mote->world;
    /* The debugger may go while the mote is stopped. */
    while (mote->debugger) {
        struct debugger *debugger = mote->debugger;
        int stopped = 0;
        uint64_t next = mote->backend->debug->run(mote->cpu, until, &stopped);
        if (!stopped) {
            if (debugger->fault_told || !mote->backend->fault(mote->cpu)[0])
                return next;
            debugger->fault_told = true;
            stop(debugger, SKERRY_STOP_FAULT, 0);
        }
        world->stop_handler(world->stop_context, mote->index, debugger->reason, debugger->address);
    }
    return mote->backend->run(mote->cpu, until);
}

void debug_power_on(struct mote *mote)
{
    if (mote->debugger)
        mote->debugger->fault_told = false;
}

/* ---- what a debugger asks for ---- */
void skerry_debug_handler(skerry_world *world, skerry_stop_handler handler, void *context)
{
    world->stop_handler = handler;
    world->stop_context = context;
}

int skerry_debug_attach(skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (!mote->backend->debug)
        return world_fail("mote %u: back-end '%s' has no debugger", mote->node,
                          mote->backend->name);
    if (!world->stop_handler)
        return world_fail("mote %u: a debugger needs skerry_debug_handler() first", mote->node);
    if (mote->debugger)
        return world_fail("mote %u has a debugger already", mote->node);
    mote->debugger = calloc(1, sizeof *mote->debugger);
    if (!mote->debugger)
        return world_fail("out of memory");
    /* One that is attached to see why the CPU has stopped need not be told that it has. */
    mote->debugger->fault_told = mote->backend->fault(mote->cpu)[0];
    mote->backend->debug->attach(mote->cpu, 1);
    return 0;
}

/* NULL, with a line for skerry_error(): no such mote, or no debugger there. */
static struct mote *debugged(const skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    if (mote && !mote->debugger)
        world_fail("mote %u has no debugger", mote->node);
    return mote && mote->debugger ? mote : NULL;
}

int skerry_debug_detach(skerry_world *world, uint32_t index)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    mote->backend->debug->attach(mote->cpu, 0);
    free(mote->debugger);
    mote->debugger = NULL;
    return 0;
}

const char *skerry_debug_description(const skerry_world *world, uint32_t index)
{
    const struct mote *mote = debugged(world, index);
    if (!mote)
        return NULL;
    return mote->backend->debug->description ? mote->backend->debug->description : "";
}

/* Whoever was written to may have something to do at once. */
static void written(struct mote *mote)
{
    if (mote->alive)
        mote->next = mote->world->now;
}

int skerry_debug_register_read(skerry_world *world, uint32_t index, uint32_t number, uint8_t *value)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    uint32_t length = mote->backend->debug->register_read(mote->cpu, number, value);
    return length ? (int)length : world_fail("mote %u: no register %u", mote->node, number);
}

int skerry_debug_register_write(skerry_world *world, uint32_t index, uint32_t number,
                                const uint8_t *value, uint32_t length)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    if (mote->backend->debug->register_write(mote->cpu, number, value, length))
        return world_fail("mote %u: register %u does not take %u bytes", mote->node, number,
                          length);
    written(mote);
    return 0;
}

int skerry_debug_memory_read(skerry_world *world, uint32_t index, uint32_t address, uint8_t *data,
                             uint32_t length)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    uint32_t count = mote->backend->debug->memory_read(mote->cpu, address, data, length);
    return count || !length
               ? (int)count
               : world_fail("mote %u: nothing can be read at 0x%08x", mote->node, address);
}

int skerry_debug_memory_write(skerry_world *world, uint32_t index, uint32_t address,
                              const uint8_t *data, uint32_t length)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    uint32_t count = mote->backend->debug->memory_write(mote->cpu, address, data, length);
    if (!count && length)
        return world_fail("mote %u: nothing can be written at 0x%08x", mote->node, address);
    written(mote);
    return (int)count;
}

int skerry_debug_breakpoint(skerry_world *world, uint32_t index, uint32_t address, int set)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    struct debugger *debugger = mote->debugger;
    uint8_t instruction[2];
    uint32_t i = 0;
    while (i < debugger->breakpoint_count && debugger->breakpoints[i] != address)
        i++;
    if (!set) {
        if (i < debugger->breakpoint_count)
            debugger->breakpoints[i] = debugger->breakpoints[--debugger->breakpoint_count];
        return 0;
    }
    if (i < debugger->breakpoint_count)
        return 0;
    if (address & 1 || mote->backend->debug->memory_read(mote->cpu, address, instruction,
                                                         sizeof instruction) != sizeof instruction)
        return world_fail("mote %u: no instruction at 0x%08x", mote->node, address);
    if (i == BREAKPOINTS)
        return world_fail("mote %u: more than %d breakpoints", mote->node, BREAKPOINTS);
    debugger->breakpoints[debugger->breakpoint_count++] = address;
    return 0;
}

int skerry_debug_watchpoint(skerry_world *world, uint32_t index, uint32_t address, uint32_t length,
                            int set)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    struct debugger *debugger = mote->debugger;
    uint32_t i = 0;
    while (i < debugger->watchpoint_count && (debugger->watchpoints[i].address != address ||
                                              debugger->watchpoints[i].length != length))
        i++;
    if (!set) {
        if (i < debugger->watchpoint_count)
            debugger->watchpoints[i] = debugger->watchpoints[--debugger->watchpoint_count];
        return 0;
    }
    if (i < debugger->watchpoint_count)
        return 0;
    if (i == WATCHPOINTS)
        return world_fail("mote %u: more than %d watchpoints", mote->node, WATCHPOINTS);
    if (!length || length > WATCHED_BYTES)
        return world_fail("mote %u: a watchpoint of %u bytes: 1..%d are possible", mote->node,
                          length, WATCHED_BYTES);
    struct watchpoint *new = &debugger->watchpoints[i];
    *new = (struct watchpoint){.address = address, .length = length};
    if (mote->backend->debug->memory_read(mote->cpu, address, new->bytes, length) != length)
        return world_fail("mote %u: nothing can be read at 0x%08x..0x%08x", mote->node, address,
                          address + length - 1);
    debugger->watchpoint_count++;
    return 0;
}

int skerry_debug_step(skerry_world *world, uint32_t index, uint32_t from, uint32_t to)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    struct debugger *debugger = mote->debugger;
    debugger->stepping = true;
    debugger->begun = false;
    debugger->from = from;
    debugger->to = to;
    return 0;
}

int skerry_debug_continue(skerry_world *world, uint32_t index)
{
    struct mote *mote = debugged(world, index);
    if (!mote)
        return -1;
    mote->debugger->stepping = false;
    return 0;
}
