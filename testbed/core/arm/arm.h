/* Inside the ARM back-end: a CC2538 around libunicorn's Cortex-M3.
 *
 * Time: 3 instructions in 4 cycles of the 32 MHz clock, 24 MIPS (what Renode's platform takes as
 * well), exact to a translated block: a peripheral sees the end of the block that reads it.
 * Exceptions cost what the Cortex-M3 takes (ARM DDI 0337, 5.5): 12 cycles to enter, 12 to return, 6
 * between two that follow each other.
 *
 * Copyright (c) 2026 the skerry authors. These files are MIT, but the library they are built into
 * links libunicorn and is therefore GPL-2 as a whole: docs/licences.md. */
#ifndef ARM_H
#define ARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <unicorn/unicorn.h>

#include "skerry_backend.h"

#define NEVER UINT64_MAX
#define FLASH_BASE 0x00200000U
#define FLASH_BYTES (512U * 1024U)
#define RAM_BASE 0x20000000U
#define RAM_BYTES (32U * 1024U)
#define PERIPHERALS_BASE 0x40000000U
#define PERIPHERALS_BYTES 0x00100000U
#define SYSTEM_BASE 0xE0000000U
#define SYSTEM_BYTES 0x00100000U
#define INFORMATION_BASE 0x00280000U
/* Where settings stand in for EEPROM: the two pages before the last;
 * firmware/drivers/cc2538/settings.c. */
#define SETTINGS_BASE 0x0007F000U
#define FLASH_PAGE 2048U
#define FLASH_PAGES (FLASH_BYTES / FLASH_PAGE)

/* Exception numbers; interrupts follow from 16 on. */
enum { EXCEPTION_HARD_FAULT = 3, EXCEPTION_SYSTICK = 15, EXCEPTION_IRQ = 16 };
enum {
    IRQ_GPIO_A = 0,
    IRQ_UART0 = 5,
    IRQ_RF = 141,
    IRQ_SLEEP_TIMER = 145,
    IRQ_COUNT = 163,
    EXCEPTIONS = EXCEPTION_IRQ + IRQ_COUNT
};
/* Nested at most: each preempts by a higher priority, of which the chip has eight, and two faults.
 */
#define NESTING 10
#define REPORTED 32

struct nvic {
    bool enabled[EXCEPTIONS], pending[EXCEPTIONS], line[EXCEPTIONS];
    uint8_t priority[EXCEPTIONS];
    uint16_t active[NESTING];
    uint8_t depth;
    uint16_t pending_count; /* of enabled and pending ones */
    uint32_t vtor, scr;
    uint32_t systick_control, systick_reload;
    uint64_t systick_from; /* time at which it was last loaded */
};

struct sleep_timer {
    uint32_t latched, written, compare;
    uint64_t due;
};
struct uart {
    uint32_t control, line_control, integer, fraction, mask, raw, clock;
    uint8_t received;
    bool full;
    bool sending;
    uint8_t holding;
    bool holds;
    uint64_t sent_at;
};

struct skerry_cpu {
    skerry_host host;
    uc_engine *engine;
    uc_hook hooks[4];
    uint8_t *flash, ram[RAM_BYTES];
    const struct image *image;
    /* Time: base plus the instructions since, three in 125 ns. */
    uint64_t base_ns, instructions, limit;
    /* tick crystal_ticks of the sleep timer happens at crystal_ns */
    uint64_t crystal_ns;
    uint64_t crystal_ticks;
    double tick_ns;
    uint64_t timer_step_ns; /* in which the sleep timer goes on; 0: with each tick */
    bool powered, sleeping, deep, first_block, stopped, reset_wanted;
    bool halted; /* by a debugger, within a block whose time has been counted */
    uint32_t block;
    uint64_t total[SKERRY_CPU_STATES];
    uint64_t resets;
    uint32_t millivolts;
    bool supply_unknown; /* its measurement fails */
    struct nvic nvic;
    struct sleep_timer timer;
    struct uart uart;
    uint32_t clock_control, power_mode;
    uint64_t crystal_stable;
    uint32_t flash_control, flash_address;
    uint32_t erasures[FLASH_PAGES];
    int64_t flash_steps; /* words and pages until power goes; below 0: never */
    uint32_t flash_noise;
    bool code_changed; /* its flash is not the image's any more where that is */
    bool power_lost;   /* and nobody has given it back */
    bool power_told;   /* the core knows */
    bool button_down, button_watched;
    uint32_t plain[64]; /* registers that only keep what is written */
    uint8_t gpio[4][2]; /* data and direction of ports A..D */
    uint32_t adc_result;
    uint64_t adc_done;
    uint32_t reported[REPORTED];
    uint32_t reported_count;
    char fault[128];
    /* A debugger's own: */
    uc_hook instruction_hook;  /* 0: none attached */
    bool block_ended;          /* the block before was the run's last */
    uint32_t it_begin, it_end; /* the IT block that is under way */
    bool probing, unknown;     /* it reads or writes a register; the model has no such */
};

/* ---- image.c: one per file, shared by all motes that run it ---- */
struct image {
    char *path;
    uint8_t *flash;
    uint32_t size;
    /* By halfword, image_block() of the block that begins there. Motes that run the image may be
     * in several threads. */
    _Atomic uint32_t *blocks;
    struct image *next;
};
/* NULL with a line in `error` (256 bytes). */
const struct image *image_load(const char *path, char *error);
/* Of a block of code: in BLOCK_INSTRUCTIONS how many these are, and whether it BLOCK_WAITS; its
 * size, in multiples of BLOCK_SIZE, where that is kept. */
enum { BLOCK_INSTRUCTIONS = 0xFFFF, BLOCK_WAITS = 1 << 16, BLOCK_SIZE = 1 << 17 };
uint32_t image_block(const struct skerry_cpu *cpu, uint32_t address, uint32_t size);
/* Bytes of the instruction that begins with this halfword: Thumb instructions are one or two
 * halfwords long (ARMv7-M, A5.1). */
static inline uint32_t instruction_bytes(uint16_t halfword)
{
    return (halfword & 0xE000) == 0xE000 && (halfword & 0x1800) ? 4 : 2;
}

/* ---- cpu.c ---- */
uint64_t cpu_now(const skerry_cpu *cpu);
/* Passes while the CPU stalls. */
void cpu_stall(skerry_cpu *cpu, uint64_t ns);
/* Stops for good; the first reason stands. */
void cpu_fault(skerry_cpu *cpu, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Something the model lacks, told once for each address. */
void cpu_report(skerry_cpu *cpu, uint32_t address, const char *what);
/* Ends the CPU's sleep now. */
void cpu_wake(skerry_cpu *cpu);
/* As the back-end's run(), to where a debugger stops it. */
uint64_t cpu_debug_run(skerry_cpu *cpu, uint64_t until, int *stopped);

/* ---- debug.c ---- */
extern const skerry_debug arm_debug;

/* ---- waits.c ---- */
#define WAIT_BYTES 10U
/* Whether a loop that waits for a bit of a register begins with this code. */
bool wait_begins(const uint8_t *code);
/* The CPU is at the beginning of one: rounds pass that find the bit set. */
void wait_passes(skerry_cpu *cpu, uint32_t address);

/* ---- nvic.c: NVIC, SysTick, system control ---- */
void nvic_reset(skerry_cpu *cpu);
uint32_t nvic_read(skerry_cpu *cpu, uint32_t address);
void nvic_write(skerry_cpu *cpu, uint32_t address, uint32_t value);
void nvic_pend(skerry_cpu *cpu, int exception);
/* Level of an interrupt line. */
void nvic_line(skerry_cpu *cpu, int irq, bool level);
/* Exception that would be taken now with interrupts on, 0 for none. */
int nvic_next(const skerry_cpu *cpu);
/* It is taken: pending no more, active now. */
void nvic_enter(skerry_cpu *cpu, int exception);
/* The active one is done. */
void nvic_leave(skerry_cpu *cpu);
/* When SysTick next reaches 0, NEVER when it does not run. */
uint64_t nvic_systick_due(const skerry_cpu *cpu);
void nvic_systick(skerry_cpu *cpu);

/* ---- peripherals.c ---- */
void peripherals_reset(skerry_cpu *cpu);
uint32_t peripherals_read(skerry_cpu *cpu, uint32_t address);
void peripherals_write(skerry_cpu *cpu, uint32_t address, uint32_t value);
/* Whether a register, of NVIC and SysTick too, stays as it is when it is read. */
bool peripherals_keep_when_read(uint32_t address);
/* Until when these bits of a register are known to be read as set; now or earlier: they may be
 * clear. */
uint64_t peripherals_busy_until(const skerry_cpu *cpu, uint32_t address, uint32_t bits);
/* When one of them next has something to do, and doing what is due. */
uint64_t peripherals_due(const skerry_cpu *cpu);
/* The button is pressed or let go. */
void peripherals_button(skerry_cpu *cpu, bool down);
void peripherals_run(skerry_cpu *cpu, uint64_t now);
bool uart_receive(skerry_cpu *cpu, uint8_t byte);
/* Ticks of the sleep timer at a time. */
uint64_t sleep_timer_ticks(const skerry_cpu *cpu, uint64_t now);
void sleep_timer_schedule(skerry_cpu *cpu);

#endif
