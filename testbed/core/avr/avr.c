/* CPU back-end for AVR motes: an ATmega1281 by libsimavr, wired as an IRIS mote.
 *
 * Copyright (c) 2026 the skerry authors. This file is MIT, but the library it is built into links
 * libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_adc.h>
#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>

#include "avr.h"

#define FREQUENCY 8000000U
#define CRYSTAL 32768U
#define NS_PER_CYCLE 125.0
/* Data-space addresses (2549Q, register summary). */
#define SMCR 0x53
#define SPSR 0x4D
#define SPIF 0x80
#define SPDR 0x4E
#define SPI_CYCLES 16
/* How long simavr goes from one instruction to the next at most without looking for timers and
 * interrupts; it does so before, when one may be due. Its default, after each instruction, does the
 * same and takes half as long again. */
#define RUN_CYCLES 1000
#define TWBR 0xB8
#define TWSR 0xB9
#define TWDR 0xBB
#define TWCR 0xBC
#define TCCR2A 0xB0
#define OCR2A 0xB3
#define ASSR 0xB6
enum { TWINT = 0x80, TWEA = 0x40, TWSTA = 0x20, TWSTO = 0x10 };

static uint64_t to_ns(const skerry_cpu *cpu, uint64_t cycle)
{
    return cpu->base_ns + (uint64_t)((double)(cycle - cpu->base_cycle) * cpu->ns_per_cycle);
}
static uint64_t now_ns(const skerry_cpu *cpu) { return to_ns(cpu, cpu->avr->cycle); }
static uint64_t to_cycle(const skerry_cpu *cpu, uint64_t ns)
{
    return ns <= cpu->base_ns
               ? cpu->base_cycle
               : cpu->base_cycle + (uint64_t)ceil((double)(ns - cpu->base_ns) / cpu->ns_per_cycle);
}

/* ---- simavr's callbacks ---- */
static skerry_cpu *owner(avr_t *avr) { return avr->custom.data; }

static enum skerry_cpu_state sleep_state(const avr_t *avr)
{
    uint8_t mode = avr->data[SMCR] >> 1 & 7;
    return mode == 0 || mode == 1 ? SKERRY_CPU_IDLE : SKERRY_CPU_SAVE;
}

static void on_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
    owner(avr)->slept[sleep_state(avr)] += cycles + 1;
}

static void on_reset(avr_t *avr)
{
    skerry_cpu *cpu = owner(avr);
    if (cpu->core_reset)
        cpu->core_reset(avr);
    avr->run_cycle_limit = RUN_CYCLES;
    cpu->latched = 0;
    if (cpu->powered)
        cpu->resets++;
}

static void on_pin(struct avr_irq_t *irq, uint32_t value, void *parameter)
{
    static const int map[] = {['S'] = SKERRY_PIN_RADIO_SELECT, ['T'] = SKERRY_PIN_RADIO_SLEEP,
                              ['R'] = SKERRY_PIN_RADIO_RESET,  ['A'] = SKERRY_PIN_ACCEL_POWER,
                              ['r'] = SKERRY_PIN_RED,          ['g'] = SKERRY_PIN_GREEN,
                              ['y'] = SKERRY_PIN_YELLOW,       ['P'] = SKERRY_PIN_ACTUATOR};
    skerry_cpu *cpu = owner(((avr_t **)parameter)[0]);
    (void)irq;
    uint8_t role = (uint8_t)((uintptr_t *)parameter)[1];
    int level = (int)value & 1;
    /* LEDs are on at low. */
    cpu->host.pin(cpu->host.mote, now_ns(cpu), map[role],
                  role == 'r' || role == 'g' || role == 'y' ? !level : level);
}

/* Cycles that an instruction takes beyond those that simavr counts: they may reach a timer, so that
 * it has to look after this one. */
static void pass(avr_t *avr, uint32_t cycles)
{
    avr->cycle += cycles;
    avr->run_cycle_count = 1;
}

/* simavr gives every SPI byte 100 us, whatever the clock; the data register is served here instead.
 * The CPU polls for the end of the byte, so its cycles are added at once: 8 bits at half the CPU's
 * clock. */
static void on_spi(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *parameter)
{
    skerry_cpu *cpu = parameter;
    pass(avr, SPI_CYCLES);
    avr->data[address] = cpu->host.spi(cpu->host.mote, now_ns(cpu), value);
    avr->data[SPSR] |= SPIF;
}

static uint8_t on_spi_read(struct avr_t *avr, avr_io_addr_t address, void *parameter)
{
    (void)parameter;
    avr->data[SPSR] &= (uint8_t)~SPIF;
    return avr->data[address];
}

static void on_uart(struct avr_irq_t *irq, uint32_t value, void *parameter)
{
    skerry_cpu *cpu = parameter;
    (void)irq;
    cpu->host.uart(cpu->host.mote, now_ns(cpu), (uint8_t)value);
}

/* simavr's receive buffer is full, or has room again. */
static void on_xon(struct avr_irq_t *irq, uint32_t value, void *parameter)
{
    (void)irq;
    (void)value;
    ((skerry_cpu *)parameter)->uart_full = false;
}
static void on_xoff(struct avr_irq_t *irq, uint32_t value, void *parameter)
{
    (void)irq;
    (void)value;
    ((skerry_cpu *)parameter)->uart_full = true;
}

/* Before a conversion; `value` says of what. */
static void on_adc(struct avr_irq_t *irq, uint32_t value, void *parameter)
{
    skerry_cpu *cpu = parameter;
    (void)irq;
    union {
        uint32_t value;
        avr_adc_mux_t mux;
    } selected = {.value = value};
    /* A band gap of 0 V is converted to 0, as is any against a reference that is far above it. */
    bool fails = cpu->supply_unknown && selected.mux.kind == ADC_MUX_REF;
    cpu->avr->avcc = fails ? UINT32_MAX : cpu->millivolts;
    /* on ADC1 and ADC2 */
    static const enum skerry_input inputs[] = {SKERRY_INPUT_ACCEL_X, SKERRY_INPUT_ACCEL_Y};
    for (int i = 0; i < 2; i++) {
        uint32_t millivolts = (cpu->host.adc(cpu->host.mote, now_ns(cpu), inputs[i]) + 500) / 1000;
        avr_raise_irq(avr_io_getirq(cpu->avr, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_ADC1 + i), millivolts);
    }
}

/* simavr's two-wire master reports a data byte's status for the address; the control register is
 * served here instead. Master only, polled: each step's bits are added to the cycles at once
 * (2549Q, 23.5). */
static void on_twcr(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *parameter)
{
    skerry_cpu *cpu = parameter;
    uint64_t now = now_ns(cpu);
    avr->data[address] = value & (uint8_t)~TWSTO;
    if (!(value & TWINT))
        return;
    uint8_t status;
    pass(avr, 9U * (16U + 2U * avr->data[TWBR]));
    if (value & TWSTO) {
        cpu->host.twi_stop(cpu->host.mote, now);
        cpu->twi_phase = TWI_CLOSED;
        avr->data[address] &= (uint8_t)~TWINT;
        avr->data[TWSR] = (avr->data[TWSR] & 3) | 0xF8;
        return;
    }
    if (value & TWSTA) {
        status = cpu->twi_phase == TWI_CLOSED ? 0x08 : 0x10;
        cpu->twi_phase = TWI_ADDRESS;
    } else if (cpu->twi_phase == TWI_ADDRESS) {
        int read = avr->data[TWDR] & 1;
        int acknowledged = cpu->host.twi_start(cpu->host.mote, now, avr->data[TWDR] >> 1, read);
        status = (uint8_t)((read ? 0x40 : 0x18) + (acknowledged ? 0 : 8));
        cpu->twi_phase = read ? TWI_READING : TWI_WRITING;
    } else if (cpu->twi_phase == TWI_WRITING) {
        status = cpu->host.twi_write(cpu->host.mote, now, avr->data[TWDR]) ? 0x28 : 0x30;
    } else {
        avr->data[TWDR] = cpu->host.twi_read(cpu->host.mote, now);
        status = value & TWEA ? 0x50 : 0x58;
    }
    avr->data[TWSR] = (avr->data[TWSR] & 3) | status;
}

/* Registers of the asynchronous timer take over what is written at the second edge of the crystal
 * after it, and say in ASSR that they have not yet (2549Q, p. 186). simavr has them take over at
 * once. The CPU polls for it before it sleeps, so its cycles are added at once; both clocks drift
 * together, so that edges are a matter of cycles. */
static void on_asynchronous(struct avr_t *avr, avr_io_addr_t address, uint8_t value,
                            void *parameter)
{
    (void)address;
    (void)value;
    uint64_t edges = avr->cycle * CRYSTAL / FREQUENCY;
    ((skerry_cpu *)parameter)->latched = (edges + 2) * FREQUENCY / CRYSTAL + 1;
}

static uint8_t on_assr_read(struct avr_t *avr, avr_io_addr_t address, void *parameter)
{
    const skerry_cpu *cpu = parameter;
    if (avr->cycle < cpu->latched)
        pass(avr, (uint32_t)(cpu->latched - avr->cycle));
    return avr->data[address];
}

/* Again with the next cycle until it is cancelled: a CPU that falls asleep in the very cycle of the
 * limit would else sleep on to the next timer, past the limit, and hear of nothing that happens in
 * between. */
static avr_cycle_count_t on_limit(avr_t *avr, avr_cycle_count_t when, void *parameter)
{
    (void)avr;
    (void)parameter;
    return when + 1;
}

/* As simavr's own, but for who executes instructions. */
static void step(avr_t *avr)
{
    avr_flashaddr_t next = avr->pc;
    if (avr->state == cpu_Running)
        next = execute(owner(avr));
    avr_cycle_count_t sleep = avr_cycle_timer_process(avr);
    avr->pc = next;
    if (avr->state == cpu_Sleeping) {
        if (!avr->sreg[S_I]) {
            avr->state = cpu_Done;
            return;
        }
        avr->sleep(avr, sleep);
        avr->cycle += 1 + sleep;
    }
    if ((avr->state == cpu_Running || avr->state == cpu_Sleeping) && avr->interrupt_state)
        avr_service_interrupts(avr);
}

static void quiet(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    (void)level;
    (void)format;
    (void)arguments;
}

/* ---- life ---- */
static void wire(skerry_cpu *cpu)
{
    /* One (avr, role) pair a pin; they live as long as the avr_t. */
    static const struct {
        char port;
        int bit;
        char role;
    } pins[] = {{'B', 0, 'S'}, {'B', 7, 'T'}, {'A', 6, 'R'}, {'C', 0, 'A'},
                {'A', 0, 'r'}, {'A', 1, 'g'}, {'A', 2, 'y'}, {'C', 1, 'P'}};
    enum { PINS = sizeof pins / sizeof *pins };
    uintptr_t (*pairs)[2] = calloc(PINS, sizeof *pairs);
    if (!pairs)
        abort();
    for (int i = 0; i < PINS; i++) {
        pairs[i][0] = (uintptr_t)cpu->avr;
        pairs[i][1] = (uintptr_t)pins[i].role;
        avr_irq_register_notify(
            avr_io_getirq(cpu->avr, AVR_IOCTL_IOPORT_GETIRQ(pins[i].port), pins[i].bit), on_pin,
            pairs[i]);
    }
    avr_io_addr_t spdr = AVR_DATA_TO_IO(SPDR);
    cpu->avr->io[spdr].w.c = on_spi;
    cpu->avr->io[spdr].w.param = cpu;
    cpu->avr->io[spdr].r.c = on_spi_read;
    avr_irq_register_notify(avr_io_getirq(cpu->avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT),
                            on_uart, cpu);
    avr_irq_register_notify(avr_io_getirq(cpu->avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON),
                            on_xon, cpu);
    avr_irq_register_notify(avr_io_getirq(cpu->avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF),
                            on_xoff, cpu);
    cpu->uart_full = false;
    avr_irq_register_notify(avr_io_getirq(cpu->avr, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_OUT_TRIGGER),
                            on_adc, cpu);
    avr_io_addr_t twcr = AVR_DATA_TO_IO(TWCR), twdr = AVR_DATA_TO_IO(TWDR);
    cpu->avr->io[twcr].w.c = on_twcr;
    cpu->avr->io[twcr].w.param = cpu;
    cpu->avr->io[twdr].w.c = NULL;
    cpu->avr->io[twdr].r.c = NULL;
    /* Beside simavr's own. */
    avr_register_io_write(cpu->avr, TCCR2A, on_asynchronous, cpu);
    avr_register_io_write(cpu->avr, OCR2A, on_asynchronous, cpu);
    avr_register_io_read(cpu->avr, ASSR, on_assr_read, cpu);
    uint32_t flags = 0;
    avr_ioctl(cpu->avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(cpu->avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
}

void eeprom_save(skerry_cpu *cpu)
{
    avr_eeprom_desc_t all = {.ee = cpu->eeprom, .offset = 0, .size = EEPROM_BYTES};
    if (cpu->avr)
        avr_ioctl(cpu->avr, AVR_IOCTL_EEPROM_GET, &all);
}

static void add_times(skerry_cpu *cpu, uint64_t times[SKERRY_CPU_STATES])
{
    uint64_t idle = cpu->slept[SKERRY_CPU_IDLE], save = cpu->slept[SKERRY_CPU_SAVE];
    if (!cpu->avr)
        return;
    uint64_t active = cpu->avr->cycle > idle + save ? cpu->avr->cycle - idle - save : 0;
    times[SKERRY_CPU_ACTIVE] += (uint64_t)((double)active * NS_PER_CYCLE);
    times[SKERRY_CPU_IDLE] += (uint64_t)((double)idle * NS_PER_CYCLE);
    times[SKERRY_CPU_SAVE] += (uint64_t)((double)save * NS_PER_CYCLE);
}

static void discard(skerry_cpu *cpu)
{
    if (!cpu->avr)
        return;
    eeprom_save(cpu);
    add_times(cpu, cpu->times);
    avr_terminate(cpu->avr);
    free(cpu->avr);
    cpu->avr = NULL;
}

static void set_supply(skerry_cpu *cpu, uint32_t millivolts)
{
    cpu->supply_unknown = millivolts == 0;
    if (millivolts != 0)
        cpu->millivolts = millivolts;
    if (cpu->avr)
        cpu->avr->vcc = cpu->avr->avcc = cpu->avr->aref = cpu->millivolts;
}

static void power_on(skerry_cpu *cpu, uint64_t now)
{
    discard(cpu);
    cpu->powered = false;
    memset(cpu->slept, 0, sizeof cpu->slept);
    cpu->fault[0] = 0;
    avr_t *avr = cpu->avr = avr_make_mcu_by_name("atmega1281");
    if (!avr) {
        snprintf(cpu->fault, sizeof cpu->fault, "libsimavr does not know the atmega1281");
        return;
    }
    avr_init(avr);
    avr->custom.data = cpu;
    avr->frequency = FREQUENCY;
    avr->log = 0;
    avr->sleep = on_sleep;
    avr->gdb_port = 0;
    cpu->core_reset = avr->reset;
    avr->reset = on_reset;
    avr->run_cycle_limit = RUN_CYCLES;
    avr->run = step;
    avr_loadcode(avr, (uint8_t *)cpu->image->flash, cpu->image->length, 0);
    avr->codeend = avr->flashend;
    avr_eeprom_desc_t all = {.ee = cpu->eeprom, .offset = 0, .size = EEPROM_BYTES};
    avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &all);
    set_supply(cpu, cpu->supply_unknown ? 0 : cpu->millivolts);
    cpu->base_ns = now;
    cpu->base_cycle = 0;
    wire(cpu);
    cpu->powered = true;
}

static skerry_cpu *create(const skerry_host *host, const char *elf, char *error)
{
    avr_global_logger_set(quiet);
    skerry_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) {
        snprintf(error, 256, "out of memory");
        return NULL;
    }
    cpu->host = *host;
    cpu->ns_per_cycle = NS_PER_CYCLE;
    memset(cpu->eeprom, 0xFF, sizeof cpu->eeprom);
    cpu->image = image_load(elf, error);
    if (!cpu->image) {
        free(cpu);
        return NULL;
    }
    return cpu;
}

static void cpu_free(skerry_cpu *cpu)
{
    discard(cpu);
    free(cpu->own);
    free(cpu);
}

/* `stopped` is NULL without a debugger: a test at compile time. */
static inline __attribute__((always_inline)) uint64_t advance(skerry_cpu *cpu, uint64_t until,
                                                              int *stopped)
{
    avr_t *avr = cpu->avr;
    uint64_t limit = to_cycle(cpu, until);
    if (cpu->fault[0] || !avr)
        return UINT64_MAX;
    if (avr->cycle >= limit)
        return to_ns(cpu, avr->cycle + 1);
    avr_cycle_timer_register(avr, limit - avr->cycle, on_limit, NULL);
    while (avr->cycle < limit) {
        if (stopped && avr->state == cpu_Running) {
            if (cpu->host.instruction(cpu->host.mote, avr->pc)) {
                *stopped = 1;
                break;
            }
            avr->run_cycle_count = 1; /* one instruction */
        }
        avr_run(avr);
        if (avr->state == cpu_Crashed || avr->state == cpu_Done) {
            snprintf(cpu->fault, sizeof cpu->fault, "CPU %s at 0x%05x",
                     avr->state == cpu_Done ? "slept for ever" : "crashed", avr->pc);
            return UINT64_MAX;
        }
    }
    avr_cycle_timer_cancel(avr, on_limit, NULL);
    if (avr->state != cpu_Sleeping)
        return to_ns(cpu, avr->cycle + 1);
    return avr->cycle_timers.timer ? to_ns(cpu, avr->cycle_timers.timer->when) : UINT64_MAX;
}

static uint64_t run(skerry_cpu *cpu, uint64_t until) { return advance(cpu, until, NULL); }
uint64_t avr_debug_run(skerry_cpu *cpu, uint64_t until, int *stopped)
{
    return advance(cpu, until, stopped);
}

static void radio_interrupt(skerry_cpu *cpu, int level)
{
    if (!cpu->avr)
        return;
    avr_raise_irq(avr_io_getirq(cpu->avr, AVR_IOCTL_IOPORT_GETIRQ('D'), 4), (uint32_t)level);
    avr_raise_irq(avr_io_getirq(cpu->avr, AVR_IOCTL_TIMER_GETIRQ('1'), TIMER_IRQ_IN_ICP),
                  (uint32_t)level);
}

/* As an external level, too: with each write to the port, simavr lets pins that are pulled up go
 * back to 1, and the radio's chip select is on the same port. */
static void button(skerry_cpu *cpu, int down)
{
    if (!cpu->avr)
        return;
    avr_ioport_external_t level = {.name = 'B', .mask = 1 << 5, .value = down ? 0 : 1 << 5};
    avr_ioctl(cpu->avr, AVR_IOCTL_IOPORT_SET_EXTERNAL('B'), &level);
    avr_raise_irq(avr_io_getirq(cpu->avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 5), !down);
}

static int uart_receive(skerry_cpu *cpu, uint8_t byte)
{
    if (!cpu->avr)
        return 1;
    if (cpu->uart_full)
        return 0;
    avr_raise_irq(avr_io_getirq(cpu->avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT), byte);
    return 1;
}

/* CPU and crystal drift together: only the crystal's error shows. */
static void set_clock(skerry_cpu *cpu, double ppm)
{
    if (cpu->avr) {
        cpu->base_ns = now_ns(cpu);
        cpu->base_cycle = cpu->avr->cycle;
    }
    cpu->ns_per_cycle = NS_PER_CYCLE / (1.0 + ppm * 1e-6);
}

static int eeprom_write(skerry_cpu *cpu, const uint8_t *data, uint32_t length)
{
    if (length > EEPROM_BYTES)
        return -1;
    memset(cpu->eeprom, 0xFF, sizeof cpu->eeprom);
    memcpy(cpu->eeprom, data, length);
    avr_eeprom_desc_t all = {.ee = cpu->eeprom, .offset = 0, .size = EEPROM_BYTES};
    if (cpu->avr)
        avr_ioctl(cpu->avr, AVR_IOCTL_EEPROM_SET, &all);
    return 0;
}

static uint32_t eeprom_read(const skerry_cpu *cpu, uint8_t *data, uint32_t capacity)
{
    eeprom_save((skerry_cpu *)cpu);
    uint32_t length = capacity < EEPROM_BYTES ? capacity : EEPROM_BYTES;
    memcpy(data, cpu->eeprom, length);
    return length;
}

static void state_times(const skerry_cpu *cpu, uint64_t now, uint64_t times[SKERRY_CPU_STATES])
{
    memcpy(times, cpu->times, sizeof cpu->times);
    add_times((skerry_cpu *)cpu, times);
    if (cpu->avr && cpu->avr->state == cpu_Sleeping && now > now_ns(cpu))
        times[sleep_state(cpu->avr)] += now - now_ns(cpu);
}

static const char *get_fault(const skerry_cpu *cpu) { return cpu->fault; }
static uint64_t get_resets(const skerry_cpu *cpu) { return cpu->resets; }
static uint64_t memory(const skerry_cpu *cpu)
{
    /* Its image is all motes', but for one that was written to. */
    return sizeof *cpu + (cpu->own ? sizeof *cpu->own : 0) +
           (cpu->avr ? sizeof *cpu->avr + FLASH_BYTES + cpu->avr->ramend + EEPROM_BYTES : 0);
}

const skerry_backend *skerry_backend_get(void)
{
    /* ATmega1281 at 8 MHz, 3 V (2549Q, figures 32-1, 32-6 and 32-10). */
    static const skerry_backend backend = {SKERRY_BACKEND_ABI,
                                           "avr",
                                           SKERRY_RADIO_RF230,
                                           {6.2, 2.0, 0.009},
                                           create,
                                           cpu_free,
                                           power_on,
                                           run,
                                           radio_interrupt,
                                           uart_receive,
                                           button,
                                           set_supply,
                                           set_clock,
                                           eeprom_write,
                                           eeprom_read,
                                           state_times,
                                           get_fault,
                                           get_resets,
                                           memory,
                                           &avr_debug,
                                           NULL,
                                           NULL,
                                           NULL,
                                           NULL};
    return &backend;
}
