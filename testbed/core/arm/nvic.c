/* NVIC, SysTick and system control of the Cortex-M3 (ARMv7-M, ARM DDI 0403: B1.5 and B3). */
#include <string.h>

#include "arm.h"

/* Offsets from 0xE000E000. */
enum {
    SYST_CSR = 0x010,
    SYST_RVR = 0x014,
    SYST_CVR = 0x018,
    ISER = 0x100,
    ICER = 0x180,
    ISPR = 0x200,
    ICPR = 0x280,
    IPR = 0x400,
    CPUID = 0xD00,
    VTOR = 0xD08,
    AIRCR = 0xD0C,
    SCR = 0xD10,
    SHPR3 = 0xD20
};
#define AIRCR_KEY 0x05FA0000U
#define AIRCR_SYSRESETREQ 4U
/* The CC2538 has three priority bits, the upper ones. */
#define PRIORITY_MASK 0xE0U
#define THREAD_PRIORITY 256

static void recount(skerry_cpu *cpu)
{
    cpu->nvic.pending_count = 0;
    for (int i = 0; i < EXCEPTIONS; i++)
        cpu->nvic.pending_count += cpu->nvic.pending[i] && cpu->nvic.enabled[i];
}

void nvic_reset(skerry_cpu *cpu)
{
    memset(&cpu->nvic, 0, sizeof cpu->nvic);
    for (int i = 0; i < EXCEPTION_IRQ; i++)
        cpu->nvic.enabled[i] = true;
    cpu->nvic.vtor = FLASH_BASE;
}

static int priority(const skerry_cpu *cpu, int exception)
{
    return exception == EXCEPTION_HARD_FAULT ? -1 : cpu->nvic.priority[exception];
}

void nvic_pend(skerry_cpu *cpu, int exception)
{
    struct nvic *nvic = &cpu->nvic;
    if (nvic->pending[exception])
        return;
    nvic->pending[exception] = true;
    nvic->pending_count += nvic->enabled[exception];
}

void nvic_line(skerry_cpu *cpu, int irq, bool level)
{
    bool rises = level && !cpu->nvic.line[EXCEPTION_IRQ + irq];
    cpu->nvic.line[EXCEPTION_IRQ + irq] = level;
    if (rises)
        nvic_pend(cpu, EXCEPTION_IRQ + irq);
}

int nvic_next(const skerry_cpu *cpu)
{
    const struct nvic *nvic = &cpu->nvic;
    if (!nvic->pending_count)
        return 0;
    int best = 0, best_priority =
                      nvic->depth ? priority(cpu, nvic->active[nvic->depth - 1]) : THREAD_PRIORITY;
    for (int i = 1; i < EXCEPTIONS; i++)
        if (nvic->pending[i] && nvic->enabled[i] && priority(cpu, i) < best_priority) {
            best = i;
            best_priority = priority(cpu, i);
        }
    return best;
}

void nvic_enter(skerry_cpu *cpu, int exception)
{
    struct nvic *nvic = &cpu->nvic;
    nvic->pending[exception] = false;
    nvic->pending_count--;
    nvic->active[nvic->depth++] = (uint16_t)exception;
}

/* A line that is still high pends again (B3.4.1). */
void nvic_leave(skerry_cpu *cpu)
{
    struct nvic *nvic = &cpu->nvic;
    int exception = nvic->active[--nvic->depth];
    if (nvic->line[exception])
        nvic_pend(cpu, exception);
}

/* ---- SysTick: counts CPU cycles of 31.25 ns ---- */
static uint64_t period_ns(const skerry_cpu *cpu)
{
    return ((uint64_t)cpu->nvic.systick_reload + 1) * 125 / 4;
}

uint64_t nvic_systick_due(const skerry_cpu *cpu)
{
    const struct nvic *nvic = &cpu->nvic;
    return nvic->systick_control & 1 && nvic->systick_reload ? nvic->systick_from + period_ns(cpu)
                                                             : NEVER;
}

void nvic_systick(skerry_cpu *cpu)
{
    cpu->nvic.systick_from += period_ns(cpu);
    cpu->nvic.systick_control |= 1U << 16;
    if (cpu->nvic.systick_control & 2)
        nvic_pend(cpu, EXCEPTION_SYSTICK);
}

/* ---- registers ---- */
static uint32_t bits_read(const bool *flags, uint32_t word)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 32 && word * 32 + i < IRQ_COUNT; i++)
        value |= (uint32_t)flags[EXCEPTION_IRQ + word * 32 + i] << i;
    return value;
}

static void bits_write(skerry_cpu *cpu, bool *flags, uint32_t word, uint32_t value, bool to)
{
    for (uint32_t i = 0; i < 32 && word * 32 + i < IRQ_COUNT; i++)
        if (value >> i & 1)
            flags[EXCEPTION_IRQ + word * 32 + i] = to;
    recount(cpu);
}

uint32_t nvic_read(skerry_cpu *cpu, uint32_t address)
{
    struct nvic *nvic = &cpu->nvic;
    uint32_t offset = address - 0xE000E000U;
    if (offset >= ISER && offset < ISER + 0x18)
        return bits_read(nvic->enabled, (offset - ISER) / 4);
    if (offset >= ICER && offset < ICER + 0x18)
        return bits_read(nvic->enabled, (offset - ICER) / 4);
    if (offset >= ISPR && offset < ISPR + 0x18)
        return bits_read(nvic->pending, (offset - ISPR) / 4);
    if (offset >= IPR && offset + 4 <= IPR + IRQ_COUNT + 1) {
        uint32_t value = 0;
        for (uint32_t i = 0; i < 4 && offset - IPR + i < IRQ_COUNT; i++)
            value |= (uint32_t)nvic->priority[EXCEPTION_IRQ + offset - IPR + i] << 8 * i;
        return value;
    }
    switch (offset) {
    case SYST_CSR: {
        uint32_t value = nvic->systick_control;
        nvic->systick_control &= ~(1U << 16);
        return value;
    }
    case SYST_RVR: return nvic->systick_reload;
    case SYST_CVR:
        return nvic->systick_control & 1
                   ? (uint32_t)((nvic_systick_due(cpu) - cpu_now(cpu)) * 4 / 125) & 0xFFFFFF
                   : 0;
    case CPUID: return 0x412FC230;
    case VTOR: return nvic->vtor;
    case SCR: return nvic->scr;
    case SHPR3: return (uint32_t)nvic->priority[EXCEPTION_SYSTICK] << 24;
    default: cpu_report(cpu, address, "read"); return 0;
    }
}

void nvic_write(skerry_cpu *cpu, uint32_t address, uint32_t value)
{
    struct nvic *nvic = &cpu->nvic;
    uint32_t offset = address - 0xE000E000U;
    if (offset >= ISER && offset < ISER + 0x18) {
        bits_write(cpu, nvic->enabled, (offset - ISER) / 4, value, true);
        return;
    }
    if (offset >= ICER && offset < ICER + 0x18) {
        bits_write(cpu, nvic->enabled, (offset - ICER) / 4, value, false);
        return;
    }
    if (offset >= ISPR && offset < ISPR + 0x18) {
        bits_write(cpu, nvic->pending, (offset - ISPR) / 4, value, true);
        return;
    }
    if (offset >= ICPR && offset < ICPR + 0x18) {
        bits_write(cpu, nvic->pending, (offset - ICPR) / 4, value, false);
        return;
    }
    if (offset >= IPR && offset + 4 <= IPR + IRQ_COUNT + 1) {
        for (uint32_t i = 0; i < 4 && offset - IPR + i < IRQ_COUNT; i++)
            nvic->priority[EXCEPTION_IRQ + offset - IPR + i] =
                (uint8_t)(value >> 8 * i & PRIORITY_MASK);
        return;
    }
    switch (offset) {
    case SYST_CSR:
        if (value & 1 && !(nvic->systick_control & 1))
            nvic->systick_from = cpu_now(cpu);
        nvic->systick_control = value & 7;
        break;
    case SYST_RVR: nvic->systick_reload = value & 0xFFFFFF; break;
    case SYST_CVR:
        nvic->systick_from = cpu_now(cpu);
        nvic->systick_control &= ~(1U << 16);
        break;
    case VTOR: nvic->vtor = value & 0x3FFFFF80; break;
    case AIRCR:
        if ((value & 0xFFFF0000U) == AIRCR_KEY && value & AIRCR_SYSRESETREQ)
            cpu->reset_wanted = true;
        break;
    case SCR: nvic->scr = value & 0x16; break;
    case SHPR3: nvic->priority[EXCEPTION_SYSTICK] = (uint8_t)(value >> 24 & PRIORITY_MASK); break;
    default: cpu_report(cpu, address, "written");
    }
}
