/* A loop that waits for the 32 MHz crystal goes round a thousand times each time a mote wakes,
 * which took a third of the emulation. Rounds of which is known what they do pass at once: all but
 * the last ones, which leave behind what all of them would have. */
#include <string.h>

#include "arm.h"

/* Thumb (ARMv7-M, A5.2), as compilers have it for a bounded wait:
 *   LDR Rt, [Rn, #offset]; LSLS Rt, Rt, #n; BPL out; SUBS Rc, #1; BNE back to the LDR */
enum { LDR, LSLS, BPL, SUBS, BNE, HALFWORDS };
#define ROUND 5U /* instructions */
#define BNE_BACK 0xD1FAU

struct wait {
    uint32_t t, n, offset, c, shift;
};

static bool decoded(const uint8_t *code, struct wait *wait)
{
    uint16_t at[HALFWORDS];
    memcpy(at, code, sizeof at);
    wait->t = at[LDR] & 7;
    wait->n = at[LDR] >> 3 & 7;
    wait->offset = (at[LDR] >> 6 & 31) * 4U;
    wait->shift = at[LSLS] >> 6 & 31;
    wait->c = at[SUBS] >> 8 & 7;
    return at[LDR] >> 11 == 0x6800 >> 11 && at[LSLS] >> 11 == 0 &&
           (at[LSLS] & 63) == (wait->t << 3 | wait->t) && at[BPL] >> 8 == 0xD5 &&
           (at[SUBS] & 0xF8FF) == 0x3801 && at[BNE] == BNE_BACK && wait->c != wait->t &&
           wait->c != wait->n && wait->t != wait->n;
}

bool wait_begins(const uint8_t *code)
{
    struct wait wait;
    return decoded(code, &wait);
}

void wait_passes(skerry_cpu *cpu, uint32_t address)
{
    struct wait wait;
    uint32_t base = 0, count = 0;
    if (!decoded(cpu->flash + (address - FLASH_BASE), &wait))
        return;
    uc_reg_read(cpu->engine, UC_ARM_REG_R0 + (int)wait.n, &base);
    uint64_t until = peripherals_busy_until(cpu, base + wait.offset, 1U << (31 - wait.shift));
    if (until > cpu->base_ns + cpu->limit * 125 / 3)
        until = cpu->base_ns + cpu->limit * 125 / 3;
    uint64_t now = cpu_now(cpu), end = (until - cpu->base_ns) * 3 / 125;
    /* One more round passes in earnest, and the limit is not reached: instructions of each are
     * counted with its first. */
    if (until <= now || end < cpu->instructions + 3 * ROUND)
        return;
    uint64_t rounds = (end - cpu->instructions) / ROUND - 2;
    uc_reg_read(cpu->engine, UC_ARM_REG_R0 + (int)wait.c, &count);
    if (count < 2)
        return;
    if (rounds > count - 2)
        rounds = count - 2;
    count -= (uint32_t)rounds;
    uc_reg_write(cpu->engine, UC_ARM_REG_R0 + (int)wait.c, &count);
    cpu->instructions += rounds * ROUND;
}
