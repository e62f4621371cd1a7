/* The Cortex-M3: libunicorn runs its instructions, this file its exceptions, its sleep and its
 * time. The traps on the way:
 *
 * - libunicorn knows no exceptions: the eight words are stacked and unstacked here; a return is an
 * interrupt hook with number 8.
 * - Stopping inside a peripheral's callback would run the store again: what has to stop the CPU
 * stops it in the hook of the next block.
 * - A block in whose hook it is stopped has not run and does not count; stopping at the first block
 * of a run would never get on.
 * - WFI looks like an ordinary end of the run. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"

#define ENTRY_CYCLES 12U
#define RETURN_CYCLES 12U
#define TAIL_CYCLES 6U
#define INTERRUPT_EXCEPTION_RETURN 8U
#define INTERRUPT_SVC 2U
#define INTERRUPT_BKPT 7U
#define XPSR_THUMB (1U << 24)
#define XPSR_ALIGNED (1U << 9)
#define XPSR_IT 0x0600FC00U
#define XPSR_EXCEPTION 0x1FFU
#define RETURN_TO_THREAD 0xFFFFFFF9U
#define RETURN_TO_HANDLER 0xFFFFFFF1U
#define OPCODE_WFI 0xBF30U

static const int frame_registers[] = {UC_ARM_REG_R0, UC_ARM_REG_R1,  UC_ARM_REG_R2,
                                      UC_ARM_REG_R3, UC_ARM_REG_R12, UC_ARM_REG_LR};
#define FRAME_REGISTERS 6

/* ---- time ---- */
uint64_t cpu_now(const skerry_cpu *cpu) { return cpu->base_ns + cpu->instructions * 125 / 3; }

/* Cycles are three quarters of an instruction's time each. */
static void spend_cycles(skerry_cpu *cpu, uint32_t cycles) { cpu->instructions += cycles * 3 / 4; }

static enum skerry_cpu_state state_of(const skerry_cpu *cpu)
{
    return !cpu->sleeping ? SKERRY_CPU_ACTIVE : cpu->deep ? SKERRY_CPU_SAVE : SKERRY_CPU_IDLE;
}

static void settle(skerry_cpu *cpu, uint64_t now)
{
    cpu->total[state_of(cpu)] += now - cpu->base_ns;
    cpu->base_ns = now;
    cpu->instructions = 0;
}

void cpu_stall(skerry_cpu *cpu, uint64_t ns) { cpu->instructions += ns * 3 / 125; }

/* ---- faults and messages ---- */
void cpu_fault(skerry_cpu *cpu, const char *format, ...)
{
    if (cpu->fault[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cpu->fault, sizeof cpu->fault, format, arguments);
    va_end(arguments);
    cpu->host.message(cpu->host.mote, cpu_now(cpu), cpu->fault);
}

void cpu_report(skerry_cpu *cpu, uint32_t address, const char *what)
{
    if (cpu->probing) {
        cpu->unknown = true;
        return;
    }
    for (uint32_t i = 0; i < cpu->reported_count; i++)
        if (cpu->reported[i] == address)
            return;
    if (cpu->reported_count < REPORTED)
        cpu->reported[cpu->reported_count++] = address;
    char text[160];
    snprintf(text, sizeof text, "register 0x%08x is not in the model, %s in the block at 0x%08x",
             address, what, cpu->block);
    cpu->host.message(cpu->host.mote, cpu_now(cpu), text);
}

/* ---- registers ---- */
static uint32_t reg_read(skerry_cpu *cpu, int reg)
{
    uint32_t value = 0;
    uc_reg_read(cpu->engine, reg, &value);
    return value;
}

static void reg_write(skerry_cpu *cpu, int reg, uint32_t value)
{
    uc_reg_write(cpu->engine, reg, &value);
}

static bool interrupts_on(skerry_cpu *cpu)
{
    return !(reg_read(cpu, UC_ARM_REG_PRIMASK) & 1) || cpu->nvic.pending[EXCEPTION_HARD_FAULT];
}

/* ---- exceptions (ARMv7-M, B1.5.6 and B1.5.8) ---- */
static uint32_t vector(skerry_cpu *cpu, int exception)
{
    uint32_t target = 0;
    uc_mem_read(cpu->engine, cpu->nvic.vtor + 4U * (uint32_t)exception, &target, sizeof target);
    if (!(target & 1))
        cpu_fault(cpu, "exception %d has no handler: its vector is 0x%08x", exception, target);
    return target;
}

static void branch(skerry_cpu *cpu, int exception)
{
    reg_write(cpu, UC_ARM_REG_LR, cpu->nvic.depth ? RETURN_TO_HANDLER : RETURN_TO_THREAD);
    nvic_enter(cpu, exception);
    reg_write(cpu, UC_ARM_REG_XPSR, XPSR_THUMB | (uint32_t)exception);
    reg_write(cpu, UC_ARM_REG_PC, vector(cpu, exception));
}

static void enter(skerry_cpu *cpu, int exception)
{
    if (cpu->nvic.depth == NESTING) {
        cpu_fault(cpu, "locked up: exceptions nest deeper than %d", NESTING);
        return;
    }
    uint32_t frame[8], sp = reg_read(cpu, UC_ARM_REG_SP), xpsr = reg_read(cpu, UC_ARM_REG_XPSR);
    for (int i = 0; i < FRAME_REGISTERS; i++)
        frame[i] = reg_read(cpu, frame_registers[i]);
    frame[6] = reg_read(cpu, UC_ARM_REG_PC) & ~1U;
    frame[7] = (xpsr & ~XPSR_ALIGNED) | XPSR_THUMB | (sp & 4 ? XPSR_ALIGNED : 0);
    sp = (sp & ~7U) - sizeof frame;
    if (uc_mem_write(cpu->engine, sp, frame, sizeof frame)) {
        cpu_fault(cpu, "stack overflow: exception %d finds the stack pointer at 0x%08x", exception,
                  sp);
        return;
    }
    reg_write(cpu, UC_ARM_REG_SP, sp);
    branch(cpu, exception);
    spend_cycles(cpu, ENTRY_CYCLES);
}

/* Back to what was interrupted, or on to an exception that waits: the frame stays where it is then.
 */
static void leave(skerry_cpu *cpu)
{
    uint32_t frame[8], sp = reg_read(cpu, UC_ARM_REG_SP);
    if (!cpu->nvic.depth) {
        cpu_fault(cpu, "exception return outside an exception, at 0x%08x", cpu->block);
        return;
    }
    nvic_leave(cpu);
    int next = interrupts_on(cpu) ? nvic_next(cpu) : 0;
    if (next) {
        branch(cpu, next);
        spend_cycles(cpu, TAIL_CYCLES);
        return;
    }
    if (uc_mem_read(cpu->engine, sp, frame, sizeof frame)) {
        cpu_fault(cpu, "exception return with the stack pointer at 0x%08x", sp);
        return;
    }
    for (int i = 0; i < FRAME_REGISTERS; i++)
        reg_write(cpu, frame_registers[i], frame[i]);
    reg_write(cpu, UC_ARM_REG_SP, sp + (uint32_t)sizeof frame + (frame[7] & XPSR_ALIGNED ? 4 : 0));
    reg_write(cpu, UC_ARM_REG_XPSR, frame[7] & ~XPSR_ALIGNED);
    reg_write(cpu, UC_ARM_REG_PC, frame[6] | 1);
    spend_cycles(cpu, RETURN_CYCLES);
}

/* ---- hooks ---- */
static void on_block(uc_engine *engine, uint64_t address, uint32_t size, void *parameter)
{
    skerry_cpu *cpu = parameter;
    if (cpu->first_block) {
        cpu->first_block = false;
        if (cpu->halted) { /* the rest of a block, which has been counted whole */
            cpu->halted = false;
            return;
        }
    } else if (cpu->instructions >= cpu->limit || cpu->reset_wanted || cpu->power_lost ||
               cpu->fault[0] || (cpu->nvic.pending_count && interrupts_on(cpu) && nvic_next(cpu))) {
        cpu->stopped = true;
        /* Where there is a hook at each instruction, the one of the block's first stops: libunicorn
         * does not keep the program counter here then. */
        if (cpu->instruction_hook)
            cpu->block_ended = true;
        else
            uc_emu_stop(engine);
        return;
    }
    cpu->block = (uint32_t)address;
    uint32_t found = image_block(cpu, (uint32_t)address, size);
    if (found & BLOCK_WAITS && !cpu->instruction_hook)
        wait_passes(cpu, (uint32_t)address);
    cpu->instructions += found & BLOCK_INSTRUCTIONS;
}

static void on_interrupt(uc_engine *engine, uint32_t number, void *parameter)
{
    skerry_cpu *cpu = parameter;
    uc_emu_stop(engine);
    if (number == INTERRUPT_EXCEPTION_RETURN) {
        leave(cpu);
        /* As that sets the program counter, libunicorn goes on there: the next WFI of this run is
         * one to sleep at. */
        cpu->stopped = cpu->fault[0];
        return;
    }
    cpu->stopped = true;
    if (number == INTERRUPT_SVC || number == INTERRUPT_BKPT)
        nvic_pend(cpu, EXCEPTION_HARD_FAULT);
    else
        cpu_fault(cpu, "CPU exception %u in the block at 0x%08x", number, cpu->block);
}

static uint64_t on_read(uc_engine *engine, uint64_t offset, unsigned size, void *parameter)
{
    skerry_cpu *cpu = parameter;
    uint32_t address = PERIPHERALS_BASE + (uint32_t)offset;
    (void)engine;
    if (size == 4 && !(address & 3))
        return peripherals_read(cpu, address);
    cpu_report(cpu, address, "read by other than a word");
    return 0;
}

static void on_write(uc_engine *engine, uint64_t offset, unsigned size, uint64_t value,
                     void *parameter)
{
    skerry_cpu *cpu = parameter;
    uint32_t address = PERIPHERALS_BASE + (uint32_t)offset;
    (void)engine;
    if (size == 4 && !(address & 3))
        peripherals_write(cpu, address, (uint32_t)value);
    else
        cpu_report(cpu, address, "written by other than a word");
}

static uint64_t on_system_read(uc_engine *engine, uint64_t offset, unsigned size, void *parameter)
{
    (void)engine;
    (void)size;
    return nvic_read(parameter, SYSTEM_BASE + (uint32_t)offset);
}

static void on_system_write(uc_engine *engine, uint64_t offset, unsigned size, uint64_t value,
                            void *parameter)
{
    (void)engine;
    (void)size;
    nvic_write(parameter, SYSTEM_BASE + (uint32_t)offset, (uint32_t)value);
}

/* ---- life ---- */
static void reset(skerry_cpu *cpu)
{
    uint32_t start[2] = {0, 0};
    uint64_t now = cpu_now(cpu);
    cpu->reset_wanted = cpu->sleeping = cpu->deep = false;
    cpu->reported_count = 0;
    nvic_reset(cpu);
    peripherals_reset(cpu);
    cpu->host.pin(cpu->host.mote, now, SKERRY_PIN_RADIO_RESET, 0);
    for (int i = 0; i < FRAME_REGISTERS; i++)
        reg_write(cpu, frame_registers[i], 0);
    memcpy(start, cpu->flash, sizeof start);
    reg_write(cpu, UC_ARM_REG_XPSR, XPSR_THUMB);
    reg_write(cpu, UC_ARM_REG_PRIMASK, 0);
    reg_write(cpu, UC_ARM_REG_SP, start[0]);
    reg_write(cpu, UC_ARM_REG_PC, start[1]);
    if (!(start[1] & 1))
        cpu_fault(cpu, "the reset vector is 0x%08x: no Thumb code there", start[1]);
}

static void power_on(skerry_cpu *cpu, uint64_t now)
{
    if (cpu->powered)
        settle(cpu, cpu_now(cpu));
    cpu->base_ns = now;
    cpu->instructions = 0;
    cpu->fault[0] = 0;
    cpu->powered = true;
    cpu->halted = cpu->power_lost = cpu->power_told = false;
    memset(cpu->ram, 0, sizeof cpu->ram);
    reset(cpu);
}

/* A bus or instruction error becomes a hard fault; one more while in it locks the CPU up (B1.5.15).
 */
static void hard_fault(skerry_cpu *cpu, uc_err error)
{
    uint32_t pc = reg_read(cpu, UC_ARM_REG_PC);
    char text[160];
    snprintf(text, sizeof text, "hard fault: %s, at or soon before 0x%08x", uc_strerror(error), pc);
    for (int i = 0; i < cpu->nvic.depth; i++)
        if (cpu->nvic.active[i] == EXCEPTION_HARD_FAULT) {
            cpu_fault(cpu, "locked up in a %s", text);
            return;
        }
    cpu->host.message(cpu->host.mote, cpu_now(cpu), text);
    nvic_pend(cpu, EXCEPTION_HARD_FAULT);
}

static void execute(skerry_cpu *cpu)
{
    cpu->first_block = true;
    cpu->stopped = false;
    uint32_t pc = reg_read(cpu, UC_ARM_REG_PC);
    uc_err error = uc_emu_start(cpu->engine, pc | 1, 0xFFFFFFFEU, 0, 0);
    if (error) {
        hard_fault(cpu, error);
        return;
    }
    if (cpu->stopped)
        return;
    uint16_t opcode = 0;
    pc = reg_read(cpu, UC_ARM_REG_PC) & ~1U;
    uc_mem_read(cpu->engine, pc - 2, &opcode, sizeof opcode);
    if (opcode != OPCODE_WFI)
        return;
    settle(cpu, cpu_now(cpu));
    cpu->sleeping = true;
    cpu->deep = cpu->nvic.scr & 4 && cpu->power_mode >= 1;
}

/* WFI ends with an interrupt that would be taken if PRIMASK were not set (B1.5.19). */
void cpu_wake(skerry_cpu *cpu)
{
    settle(cpu, cpu_now(cpu));
    cpu->sleeping = cpu->deep = false;
}

static uint64_t next_due(const skerry_cpu *cpu)
{
    uint64_t due = peripherals_due(cpu),
             systick = cpu->sleeping && cpu->deep ? NEVER : nvic_systick_due(cpu);
    return due < systick ? due : systick;
}

static void doze(skerry_cpu *cpu, uint64_t until)
{
    uint64_t due = next_due(cpu);
    if (due < until)
        until = due;
    if (until > cpu->base_ns)
        settle(cpu, until);
}

uint64_t cpu_debug_run(skerry_cpu *cpu, uint64_t until, int *stopped)
{
    /* From where a debugger has stopped it, to where it would have been without: the limit stands,
     * and nothing comes in between. */
    if (cpu->halted)
        execute(cpu);
    while (!cpu->halted && !cpu->fault[0] && !cpu->power_lost && cpu_now(cpu) < until) {
        uint64_t now = cpu_now(cpu), due = next_due(cpu);
        if (now >= due) {
            peripherals_run(cpu, now);
            if (!cpu->deep && now >= nvic_systick_due(cpu))
                nvic_systick(cpu);
            continue;
        }
        if (cpu->reset_wanted) {
            cpu->resets++;
            settle(cpu, now);
            reset(cpu);
        }
        int next = nvic_next(cpu);
        if (cpu->sleeping) {
            if (!next) {
                doze(cpu, until);
                continue;
            }
            cpu_wake(cpu);
        }
        if (next && interrupts_on(cpu) && !(reg_read(cpu, UC_ARM_REG_XPSR) & XPSR_IT)) {
            enter(cpu, next);
            continue;
        }
        cpu->limit = ((due < until ? due : until) - cpu->base_ns) * 3 / 125 + 1;
        execute(cpu);
    }
    *stopped = cpu->halted;
    if (cpu->fault[0] || cpu->power_lost)
        return NEVER;
    if (!cpu->sleeping || nvic_next(cpu))
        return cpu_now(cpu);
    return next_due(cpu);
}

static uint64_t run(skerry_cpu *cpu, uint64_t until)
{
    int stopped;
    return cpu_debug_run(cpu, until, &stopped);
}

static int engine_open(skerry_cpu *cpu)
{
    return uc_open(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS, &cpu->engine) ||
           uc_ctl_set_cpu_model(cpu->engine, UC_CPU_ARM_CORTEX_M3) ||
           uc_mem_map_ptr(cpu->engine, FLASH_BASE, FLASH_BYTES, UC_PROT_READ | UC_PROT_EXEC,
                          cpu->flash) ||
           /* The information page, in a page of the emulator's: reads 0, as no address is known. */
           uc_mem_map(cpu->engine, INFORMATION_BASE, 0x1000, UC_PROT_READ) ||
           uc_mem_map_ptr(cpu->engine, RAM_BASE, RAM_BYTES, UC_PROT_ALL, cpu->ram) ||
           uc_mmio_map(cpu->engine, PERIPHERALS_BASE, PERIPHERALS_BYTES, on_read, cpu, on_write,
                       cpu) ||
           uc_mmio_map(cpu->engine, SYSTEM_BASE, SYSTEM_BYTES, on_system_read, cpu, on_system_write,
                       cpu) ||
           uc_hook_add(cpu->engine, &cpu->hooks[0], UC_HOOK_BLOCK, (void *)on_block, cpu, 1, 0) ||
           uc_hook_add(cpu->engine, &cpu->hooks[1], UC_HOOK_INTR, (void *)on_interrupt, cpu, 1, 0);
}

static void cpu_free(skerry_cpu *cpu)
{
    if (cpu->engine)
        uc_close(cpu->engine);
    free(cpu->flash);
    free(cpu);
}

static skerry_cpu *create(const skerry_host *host, const char *elf, char *error)
{
    const struct image *image = image_load(elf, error);
    if (!image)
        return NULL;
    skerry_cpu *cpu = NULL;
    if (posix_memalign((void **)&cpu, 4096, sizeof *cpu)) {
        snprintf(error, 256, "out of memory");
        return NULL;
    }
    memset(cpu, 0, sizeof *cpu);
    cpu->host = *host;
    cpu->image = image;
    cpu->tick_ns = 1e9 / 32768;
    cpu->flash_steps = -1;
    if (posix_memalign((void **)&cpu->flash, 4096, FLASH_BYTES) || engine_open(cpu)) {
        snprintf(error, 256, "libunicorn gives no Cortex-M3");
        cpu_free(cpu);
        return NULL;
    }
    memcpy(cpu->flash, image->flash, FLASH_BYTES);
    return cpu;
}

static void radio_interrupt(skerry_cpu *cpu, int level) { nvic_line(cpu, IRQ_RF, level); }
static int receive(skerry_cpu *cpu, uint8_t byte) { return uart_receive(cpu, byte); }
static void button(skerry_cpu *cpu, int down) { peripherals_button(cpu, down); }
static void supply(skerry_cpu *cpu, uint32_t millivolts)
{
    cpu->supply_unknown = millivolts == 0;
    if (millivolts != 0)
        cpu->millivolts = millivolts;
}

/* Only the 32 kHz crystal errs; the CPU's speed shows in nothing else. */
static void set_clock(skerry_cpu *cpu, double ppm)
{
    uint64_t now = cpu_now(cpu);
    if (cpu->powered) {
        /* From the last tick on: the part of one that has passed since is not lost, however often
         * this is called. */
        uint64_t ticks = sleep_timer_ticks(cpu, now);
        cpu->crystal_ns += (uint64_t)((double)(ticks - cpu->crystal_ticks) * cpu->tick_ns);
        cpu->crystal_ticks = ticks;
    }
    cpu->tick_ns = 1e9 / 32768 / (1.0 + ppm * 1e-6);
    if (cpu->timer.due != NEVER && cpu->powered)
        sleep_timer_schedule(cpu);
}

static void timer_step(skerry_cpu *cpu, uint64_t ns)
{
    cpu->timer_step_ns = ns;
    if (cpu->timer.due != NEVER && cpu->powered)
        sleep_timer_schedule(cpu);
}

static int settings_write(skerry_cpu *cpu, const uint8_t *data, uint32_t length)
{
    if (length > FLASH_PAGE)
        return -1;
    /* Its two pages; the other one lies before it. */
    cpu->code_changed |= cpu->image->size > SETTINGS_BASE - FLASH_PAGE;
    memset(cpu->flash + SETTINGS_BASE - FLASH_PAGE, 0xFF, (size_t)2 * FLASH_PAGE);
    memcpy(cpu->flash + SETTINGS_BASE, data, length);
    return 0;
}

static uint32_t settings_read(const skerry_cpu *cpu, uint8_t *data, uint32_t capacity)
{
    /* From the first one on: the one that lies before it. */
    uint32_t length = capacity < 2 * FLASH_PAGE ? capacity : 2 * FLASH_PAGE,
             first = length < FLASH_PAGE ? length : FLASH_PAGE;
    memcpy(data, cpu->flash + SETTINGS_BASE, first);
    memcpy(data + first, cpu->flash + SETTINGS_BASE - FLASH_PAGE, length - first);
    return length;
}

static uint32_t wear(const skerry_cpu *cpu, uint32_t *erasures, uint32_t capacity)
{
    uint32_t pages = capacity < FLASH_PAGES ? capacity : FLASH_PAGES;
    memcpy(erasures, cpu->erasures, pages * sizeof *erasures);
    return pages;
}

static void cut(skerry_cpu *cpu, uint32_t after, uint32_t seed)
{
    cpu->flash_steps = after;
    cpu->flash_noise = seed * 2 + 1;
}

static int power_lost(skerry_cpu *cpu)
{
    bool news = cpu->power_lost && !cpu->power_told;
    cpu->power_told = cpu->power_lost;
    return news;
}

static void state_times(const skerry_cpu *cpu, uint64_t now, uint64_t times[SKERRY_CPU_STATES])
{
    memcpy(times, cpu->total, sizeof cpu->total);
    if (!cpu->powered)
        return;
    if (now < cpu_now(cpu) || !cpu->sleeping)
        now = cpu_now(cpu);
    times[state_of(cpu)] += now - cpu->base_ns;
}

static const char *get_fault(const skerry_cpu *cpu) { return cpu->fault; }
static uint64_t get_resets(const skerry_cpu *cpu) { return cpu->resets; }
/* What libunicorn holds for itself is not in it: bench/testbed/speed.py measures the process. */
static uint64_t memory(const skerry_cpu *cpu) { return sizeof *cpu + FLASH_BYTES; }

const skerry_backend *skerry_backend_get(void)
{
    /* SWRS096D: 13 mA at 32 MHz; idle with the crystal running, less the 17 mA of the receiver, 7
     * mA; power mode 2 1.3 uA. */
    static const skerry_backend backend = {SKERRY_BACKEND_ABI,
                                           "arm",
                                           SKERRY_RADIO_CC2538,
                                           {13.0, 7.0, 0.0013},
                                           create,
                                           cpu_free,
                                           power_on,
                                           run,
                                           radio_interrupt,
                                           receive,
                                           button,
                                           supply,
                                           set_clock,
                                           settings_write,
                                           settings_read,
                                           state_times,
                                           get_fault,
                                           get_resets,
                                           memory,
                                           &arm_debug,
                                           timer_step,
                                           wear,
                                           cut,
                                           power_lost};
    return &backend;
}
