/* What is on the air besides the motes: sources that come and go on a channel, so strong at each
 * mote as the caller says. */
#include <math.h>
#include <stdlib.h>

#include "core.h"

#define CHANNEL_MINIMUM 11
#define CHANNEL_MAXIMUM 26

void interference_free(skerry_world *world)
{
    for (uint32_t i = 0; i < world->source_count; i++) {
        free(world->sources[i]->mw);
        free(world->sources[i]);
    }
    free(world->sources);
}

/* ns of [from, to] in which the source sends. Motes run up to a quantum apart and a frame is judged
 * at its end: the last changes are kept. */
static uint64_t time_on(struct source *source, uint64_t from, uint64_t to)
{
    if (from < source->config.begin_ns)
        from = source->config.begin_ns;
    if (to > source->config.end_ns)
        to = source->config.end_ns;
    if (from >= to)
        return 0;
    if (source->config.off_s <= 0)
        return to - from;
    while (source->chain.until <= to) {
        source->changes[source->change_count++ % SOURCE_CHANGES] = source->chain.until;
        chain_step(&source->chain);
    }
    bool on = source->chain.on;
    uint64_t sum = 0;
    for (uint32_t back = 0; back < SOURCE_CHANGES && back < source->change_count && to > from;
         back++) {
        uint64_t change = source->changes[(source->change_count - 1 - back) % SOURCE_CHANGES];
        if (change < to) {
            if (on)
                sum += to - (change > from ? change : from);
            to = change > from ? change : from;
        }
        on = !on;
    }
    return sum + (on && to > from ? to - from : 0);
}

double interference_mw(skerry_world *world, uint32_t mote, int channel, uint64_t from, uint64_t to)
{
    double sum = 0;
    for (uint32_t i = 0; i < world->source_count; i++) {
        struct source *source = world->sources[i];
        if (source->config.channel != channel || mote >= source->mote_count ||
            source->mw[mote] == 0.0)
            continue;
        sum += source->mw[mote] * (double)time_on(source, from, to) / (double)(to - from);
    }
    return sum;
}

int skerry_interference_add(skerry_world *world, const skerry_interference_config *config)
{
    if (config->channel < CHANNEL_MINIMUM || config->channel > CHANNEL_MAXIMUM)
        return world_fail("interference on channel %d: %d..%d exist", config->channel,
                          CHANNEL_MINIMUM, CHANNEL_MAXIMUM);
    if (!(config->on_s > 0) || !(config->off_s >= 0))
        return world_fail("interference: on_s is to be more than 0, off_s 0 or more");
    struct source **sources = realloc(world->sources, (world->source_count + 1) * sizeof *sources);
    if (sources)
        world->sources = sources;
    struct source *source = calloc(1, sizeof *source);
    if (!sources || !source) {
        free(source);
        return world_fail("out of memory");
    }
    source->config = *config;
    if (config->off_s > 0)
        chain_begin(&source->chain, config->on_s, config->off_s, config->seed);
    world->sources[world->source_count] = source;
    return (int)world->source_count++;
}

int skerry_interference_level(skerry_world *world, uint32_t number, uint32_t mote, double dbm)
{
    if (!world_mote(world, mote))
        return -1;
    if (number >= world->source_count)
        return world_fail("interference %u: the world has %u sources", number, world->source_count);
    struct source *source = world->sources[number];
    if (mote >= source->mote_count) {
        double *mw = realloc(source->mw, (mote + 1) * sizeof *mw);
        if (!mw)
            return world_fail("out of memory");
        for (uint32_t i = source->mote_count; i <= mote; i++)
            mw[i] = 0.0;
        source->mw = mw;
        source->mote_count = mote + 1;
    }
    source->mw[mote] = dbm <= SILENCE_DBM ? 0.0 : pow(10.0, dbm / 10.0);
    return 0;
}
