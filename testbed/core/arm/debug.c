/* What a debugger sees of the CC2538: registers and memory as arm-gdb numbers them, and where its
 * CPU is halted.
 *
 * A hook at each instruction halts it, which libunicorn takes to wherever else it stops, too: the
 * translated blocks, at whose ends time is kept and interrupts are taken, stay as they are without
 * a debugger. The rest of a block that was halted within runs as the first of the next run, and has
 * been counted. */
#include <string.h>

#include "arm.h"

enum {
    REGISTER_SP = 13,
    REGISTER_PC = 15,
    REGISTER_XPSR,
    REGISTER_MSP,
    REGISTER_PSP,
    REGISTER_PRIMASK,
    REGISTERS
};
#define REGISTER_BYTES 4
#define XPSR_RESET (1U << 24)

static const int registers[REGISTERS] = {
    UC_ARM_REG_R0,  UC_ARM_REG_R1,   UC_ARM_REG_R2,  UC_ARM_REG_R3,  UC_ARM_REG_R4,
    UC_ARM_REG_R5,  UC_ARM_REG_R6,   UC_ARM_REG_R7,  UC_ARM_REG_R8,  UC_ARM_REG_R9,
    UC_ARM_REG_R10, UC_ARM_REG_R11,  UC_ARM_REG_R12, UC_ARM_REG_SP,  UC_ARM_REG_LR,
    UC_ARM_REG_PC,  UC_ARM_REG_XPSR, UC_ARM_REG_MSP, UC_ARM_REG_PSP, UC_ARM_REG_PRIMASK,
};

/* In the order of their numbers (GDB's manual, G.5.3): with the M-profile it knows exception frames
 * by the values that they return to. */
static const char description[] = "<?xml version='1.0'?><!DOCTYPE target SYSTEM 'gdb-target.dtd'>"
                                  "<target version='1.0'><architecture>arm</architecture>"
                                  "<feature name='org.gnu.gdb.arm.m-profile'>"
                                  "<reg name='r0' bitsize='32'/>"
                                  "<reg name='r1' bitsize='32'/>"
                                  "<reg name='r2' bitsize='32'/>"
                                  "<reg name='r3' bitsize='32'/>"
                                  "<reg name='r4' bitsize='32'/>"
                                  "<reg name='r5' bitsize='32'/>"
                                  "<reg name='r6' bitsize='32'/>"
                                  "<reg name='r7' bitsize='32'/>"
                                  "<reg name='r8' bitsize='32'/>"
                                  "<reg name='r9' bitsize='32'/>"
                                  "<reg name='r10' bitsize='32'/>"
                                  "<reg name='r11' bitsize='32'/>"
                                  "<reg name='r12' bitsize='32'/>"
                                  "<reg name='sp' bitsize='32' type='data_ptr'/>"
                                  "<reg name='lr' bitsize='32'/>"
                                  "<reg name='pc' bitsize='32' type='code_ptr'/>"
                                  "<reg name='xpsr' bitsize='32'/>"
                                  "</feature><feature name='org.gnu.gdb.arm.m-system'>"
                                  "<reg name='msp' bitsize='32' type='data_ptr'/>"
                                  "<reg name='psp' bitsize='32' type='data_ptr'/>"
                                  "<reg name='primask' bitsize='8'/>"
                                  "</feature></target>";

static uint32_t width(uint32_t number)
{
    return number >= REGISTERS ? 0 : number == REGISTER_PRIMASK ? 1 : REGISTER_BYTES;
}

static uint32_t register_read(skerry_cpu *cpu, uint32_t number, uint8_t *bytes)
{
    uint32_t value = 0;
    if (!width(number))
        return 0;
    if (cpu->powered)
        uc_reg_read(cpu->engine, registers[number], &value);
    else if (number == REGISTER_SP || number == REGISTER_MSP)
        memcpy(&value, cpu->flash, sizeof value);
    else if (number == REGISTER_PC) {
        memcpy(&value, cpu->flash + sizeof value, sizeof value);
        value &= ~1U;
    } else if (number == REGISTER_XPSR)
        value = XPSR_RESET;
    memcpy(bytes, &value, width(number));
    return width(number);
}

static int register_write(skerry_cpu *cpu, uint32_t number, const uint8_t *bytes, uint32_t length)
{
    uint32_t value = 0;
    if (!cpu->powered || !length || length != width(number))
        return -1;
    memcpy(&value, bytes, length);
    if (number == REGISTER_PC) {
        value |= 1;
        /* It goes on elsewhere, in a block that has not been counted, and sleeps no more: to be
         * halted wakes a Cortex-M as well. */
        cpu->halted = false;
        if (cpu->sleeping)
            cpu_wake(cpu);
    }
    uc_reg_write(cpu->engine, registers[number], &value);
    return 0;
}

/* ---- memory ---- */
static uint32_t within(uint32_t address, uint32_t from, uint32_t size, uint32_t length)
{
    if (address < from || address - from >= size)
        return 0;
    uint32_t left = size - (address - from);
    return length < left ? length : left;
}

static bool in_peripherals(uint32_t address)
{
    return within(address, PERIPHERALS_BASE, PERIPHERALS_BYTES, 1) ||
           within(address, SYSTEM_BASE, SYSTEM_BYTES, 1);
}

/* Registers are words: up to the first that is not in the model, or not to be read. */
static uint32_t registers_read(skerry_cpu *cpu, uint32_t address, uint8_t *data, uint32_t length)
{
    uint32_t count = 0;
    cpu->probing = true;
    while (count < length && cpu->powered && in_peripherals(address + count) &&
           peripherals_keep_when_read((address + count) & ~3U)) {
        uint32_t at = (address + count) & ~3U, skipped = address + count - at,
                 part = 4 - skipped < length - count ? 4 - skipped : length - count;
        cpu->unknown = false;
        uint32_t value = at >= SYSTEM_BASE ? nvic_read(cpu, at) : peripherals_read(cpu, at);
        if (cpu->unknown)
            break;
        memcpy(data + count, (uint8_t *)&value + skipped, part);
        count += part;
    }
    cpu->probing = false;
    return count;
}

static uint32_t memory_read(skerry_cpu *cpu, uint32_t address, uint8_t *data, uint32_t length)
{
    uint32_t count;
    if ((count = within(address, FLASH_BASE, FLASH_BYTES, length)))
        memcpy(data, cpu->flash + (address - FLASH_BASE), count);
    else if ((count = within(address, RAM_BASE, RAM_BYTES, length)))
        memcpy(data, cpu->ram + (address - RAM_BASE), count);
    else
        count = registers_read(cpu, address, data, length);
    return count;
}

static uint32_t memory_write(skerry_cpu *cpu, uint32_t address, const uint8_t *data,
                             uint32_t length)
{
    uint32_t count, value;
    if (!cpu->powered)
        return 0;
    if ((count = within(address, FLASH_BASE, FLASH_BYTES, length)) ||
        (count = within(address, RAM_BASE, RAM_BYTES, length))) {
        cpu->code_changed |= address < RAM_BASE;
        /* By libunicorn: it may have translated what is there. */
        return uc_mem_write(cpu->engine, address, data, count) ? 0 : count;
    }
    if (!in_peripherals(address) || address & 3 || length != sizeof value)
        return 0;
    memcpy(&value, data, sizeof value);
    cpu->probing = true;
    cpu->unknown = false;
    if (address >= SYSTEM_BASE)
        nvic_write(cpu, address, value);
    else
        peripherals_write(cpu, address, value);
    cpu->probing = false;
    return cpu->unknown ? 0 : length;
}

/* ---- halting ---- */
/* Bytes of the IT block that the instruction begins, without itself; 0 when it begins none
 * (ARMv7-M, A7.7.38). */
static uint32_t it_bytes(skerry_cpu *cpu, uint32_t address)
{
    uint8_t code[2];
    uint32_t bytes = 0;
    if (memory_read(cpu, address, code, sizeof code) != sizeof code || code[1] != 0xBF ||
        !(code[0] & 15))
        return 0;
    for (int left = 4 - __builtin_ctz(code[0] & 15); left; left--) {
        uint8_t next[2] = {0, 0};
        memory_read(cpu, address + 2 + bytes, next, sizeof next);
        bytes += instruction_bytes((uint16_t)(next[0] | next[1] << 8));
    }
    return bytes;
}

/* libunicorn cannot stop within an IT block: it counts as one instruction. */
static void on_instruction(uc_engine *engine, uint64_t at, uint32_t size, void *parameter)
{
    skerry_cpu *cpu = parameter;
    uint32_t address = (uint32_t)at, it;
    (void)size;
    if (cpu->block_ended) {
        cpu->block_ended = false;
        uc_emu_stop(engine);
        return;
    }
    if (address < cpu->it_end && address > cpu->it_begin)
        return;
    if (cpu->host.instruction(cpu->host.mote, address)) {
        cpu->halted = cpu->stopped = true;
        uc_emu_stop(engine);
    } else if ((it = it_bytes(cpu, address))) {
        cpu->it_begin = address;
        cpu->it_end = address + 2 + it;
    }
}

/* What was translated without the hook, or with it, is translated anew. */
static void attach(skerry_cpu *cpu, int attached)
{
    cpu->it_begin = cpu->it_end = 0;
    if (attached) {
        uc_hook_add(cpu->engine, &cpu->instruction_hook, UC_HOOK_CODE, (void *)on_instruction, cpu,
                    1, 0);
    } else {
        uc_hook_del(cpu->engine, cpu->instruction_hook);
        cpu->instruction_hook = 0;
    }
    uc_ctl(cpu->engine, UC_CTL_WRITE(UC_CTL_TB_FLUSH, 0));
}

const skerry_debug arm_debug = {description,    attach,      cpu_debug_run, register_read,
                                register_write, memory_read, memory_write};
