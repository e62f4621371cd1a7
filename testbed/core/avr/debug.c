/* What a debugger sees of the ATmega1281: registers and memory as avr-gdb numbers them.
 *
 * simavr has a GDB server of its own (sim_gdb.c), which does not fit here: it takes the place of
 * the run and sleep functions, sleeps in real time, asks its socket before each instruction, and
 * stops by letting avr_run() return without a cycle having passed, so that all motes of the
 * lock-step would wait for one that never gets to the end of its quantum, and nobody be left to
 * serve a second debugger or Ctrl-C. It listens on all interfaces, and its connection ends with the
 * avr_t, at each power cycle. */
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/sim_core.h>

#include "avr.h"

enum { REGISTER_SREG = 32, REGISTER_SP, REGISTER_PC, REGISTERS };
/* Where avr-gdb has what is not flash. */
#define DATA_BASE 0x800000U
#define EEPROM_BASE 0x810000U
#define IO_FIRST 32
/* The last register of the ATmega1281 (2549Q, 8.3). */
#define IO_LAST 0x1FF

static const uint8_t widths[] = {[REGISTER_SREG] = 1, [REGISTER_SP] = 2, [REGISTER_PC] = 4};

/* ---- registers ---- */
static uint8_t sreg(const avr_t *avr)
{
    uint8_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint8_t)(avr->sreg[i] << i);
    return value;
}

static uint32_t width(uint32_t number)
{
    return number < REGISTER_SREG ? 1 : number < REGISTERS ? widths[number] : 0;
}

static uint32_t register_read(skerry_cpu *cpu, uint32_t number, uint8_t *bytes)
{
    const avr_t *avr = cpu->avr;
    uint32_t value = 0;
    if (!avr)
        value = number == REGISTER_SP ? DATA_BYTES - 1 : 0;
    else if (number < REGISTER_SREG)
        value = avr->data[number];
    else if (number == REGISTER_SREG)
        value = sreg(avr);
    else if (number == REGISTER_SP)
        value = avr->data[R_SPL] | (uint32_t)avr->data[R_SPH] << 8;
    else if (number == REGISTER_PC)
        value = avr->pc;
    for (uint32_t i = 0; i < width(number); i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    return width(number);
}

static int register_write(skerry_cpu *cpu, uint32_t number, const uint8_t *bytes, uint32_t length)
{
    avr_t *avr = cpu->avr;
    if (!avr || !length || length != width(number))
        return -1;
    if (number < REGISTER_SREG)
        avr->data[number] = bytes[0];
    else if (number == REGISTER_SREG) {
        avr->data[R_SREG] = bytes[0];
        SET_SREG_FROM(avr, bytes[0]);
    } else if (number == REGISTER_SP) {
        avr->data[R_SPL] = bytes[0];
        avr->data[R_SPH] = bytes[1];
    } else {
        avr->pc = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
        /* Whoever is sent elsewhere sleeps no more: the on-chip debugger wakes the CPU as well. */
        if (avr->state == cpu_Sleeping)
            avr->state = cpu_Running;
    }
    return 0;
}

/* ---- memory: flash, data space with registers, EEPROM ---- */
/* Bytes from `address` on that lie in [from, from + size), at most `length`. */
static uint32_t within(uint32_t address, uint32_t from, uint32_t size, uint32_t length)
{
    if (address < from || address - from >= size)
        return 0;
    uint32_t left = size - (address - from);
    return length < left ? length : left;
}

static uint32_t memory_read(skerry_cpu *cpu, uint32_t address, uint8_t *data, uint32_t length)
{
    const avr_t *avr = cpu->avr;
    uint32_t count;
    if ((count = within(address, 0, FLASH_BYTES, length)))
        memcpy(data, (avr ? avr->flash : cpu->image->flash) + address, count);
    else if ((count = within(address, DATA_BASE, DATA_BYTES, length))) {
        if (!avr)
            return memset(data, 0, count), count;
        /* As it was written or read last: no register changes because a debugger looks at it. */
        memcpy(data, avr->data + (address - DATA_BASE), count);
        if (address <= DATA_BASE + R_SREG && address + count > DATA_BASE + R_SREG)
            data[DATA_BASE + R_SREG - address] = sreg(avr);
    } else if ((count = within(address, EEPROM_BASE, EEPROM_BYTES, length))) {
        eeprom_save(cpu);
        memcpy(data, cpu->eeprom + (address - EEPROM_BASE), count);
    }
    return count;
}

/* What the program's own write would do. */
static void data_write(avr_t *avr, uint16_t address, uint8_t value)
{
    avr_io_addr_t io = AVR_DATA_TO_IO(address);
    if (address == R_SREG)
        SET_SREG_FROM(avr, value);
    if (address < IO_FIRST || address > IO_LAST || !avr->io[io].w.c)
        avr->data[address] = value;
    else
        avr->io[io].w.c(avr, address, value, avr->io[io].w.param);
}

static uint32_t memory_write(skerry_cpu *cpu, uint32_t address, const uint8_t *data,
                             uint32_t length)
{
    avr_t *avr = cpu->avr;
    uint32_t count;
    if (!avr)
        return 0;
    if ((count = within(address, 0, FLASH_BYTES, length))) {
        /* In the image as well, which the next power-on loads. */
        memcpy(avr->flash + address, data, count);
        image_write(cpu, address, data, count);
    } else if ((count = within(address, DATA_BASE, DATA_BYTES, length))) {
        for (uint32_t i = 0; i < count; i++)
            data_write(avr, (uint16_t)(address - DATA_BASE + i), data[i]);
    } else if ((count = within(address, EEPROM_BASE, EEPROM_BYTES, length))) {
        avr_eeprom_desc_t part = {
            .ee = (uint8_t *)data, .offset = (uint16_t)(address - EEPROM_BASE), .size = count};
        avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &part);
    }
    return count;
}

static void attach(skerry_cpu *cpu, int attached)
{
    (void)cpu;
    (void)attached;
}

const skerry_debug avr_debug = {NULL,           attach,      avr_debug_run, register_read,
                                register_write, memory_read, memory_write};
