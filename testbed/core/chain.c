/* Two states in turn, each for an exponentially distributed time: a continuous-time Gilbert-Elliott
 * chain (Gilbert 1960, Elliott 1963). The moments of change follow from the seed alone, whenever
 * and however often somebody asks. */
#include <math.h>

#include "core.h"

#define SECOND_NS 1e9

static uint64_t sojourn(struct chain *chain)
{
    return 1 + (uint64_t)(-log(1.0 - random_unit(&chain->random)) * chain->mean_ns[chain->on]);
}

void chain_begin(struct chain *chain, double on_s, double off_s, uint64_t seed)
{
    *chain = (struct chain){.mean_ns = {off_s * SECOND_NS, on_s * SECOND_NS}, .random = seed};
    /* In equilibrium from the start: memoryless, so that the rest of the first stay is as long as a
     * whole one. */
    chain->on = random_unit(&chain->random) * (on_s + off_s) < on_s;
    chain->until = sojourn(chain);
}

void chain_step(struct chain *chain)
{
    chain->on = !chain->on;
    chain->until += sojourn(chain);
}

bool chain_at(struct chain *chain, uint64_t now)
{
    while (chain->until <= now)
        chain_step(chain);
    return chain->on;
}
