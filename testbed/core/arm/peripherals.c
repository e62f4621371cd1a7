/* The CC2538's peripherals that the firmware uses (SWRU319C), but the RF core, which is the core's.
 * An access outside them is reported once. */
#include <math.h>
#include <string.h>

#include "arm.h"

#define RADIO 0x40088000U
#define UART0 0x4000C000U
#define SYS_CTRL 0x400D2000U
#define FLASH_CTRL 0x400D3000U
#define SLEEP_TIMER 0x400D5040U
#define ADC 0x400D7000U
#define GPIO_A 0x400D9000U
#define GPIO_END 0x400DD000U
/* CLOCK_CTRL after a reset: both clocks from the RC oscillators, 16 MHz. */
#define CLOCK_RESET 0x01010001U

/* Registers that only keep what is written: clock gates, wake-up enable, pads, the analogue bias.
 */
static const uint32_t plain[] = {
    0x400D2028, 0x400D202C, 0x400D2094, 0x400D20A8, 0x400D20AC, 0x400D6004, 0x400D4100, 0x400D4000,
    0x400D4004, 0x400D4008, 0x400D400C, 0x400D4010, 0x400D4014, 0x400D4018, 0x400D401C, 0x400D4080,
    0x400D4084, 0x400D4088, 0x400D408C, 0x400D4090, 0x400D4094, 0x400D4098, 0x400D409C, 0x400D9404,
    0x400D940C, 0x400D9700, 0x400D9710, 0x400D9718, 0x400D9420, 0x400DA420, 0x400DB420, 0x400DC420,
};
#define PLAIN (sizeof plain / sizeof *plain)
_Static_assert(PLAIN <= sizeof((skerry_cpu *)0)->plain / sizeof(uint32_t),
               "room for the plain registers");

static uint32_t *plain_at(skerry_cpu *cpu, uint32_t address)
{
    for (unsigned i = 0; i < PLAIN; i++)
        if (plain[i] == address)
            return &cpu->plain[i];
    return NULL;
}

void peripherals_reset(skerry_cpu *cpu)
{
    uint64_t now = cpu_now(cpu);
    memset(&cpu->uart, 0, sizeof cpu->uart);
    memset(cpu->plain, 0, sizeof cpu->plain);
    memset(cpu->gpio, 0, sizeof cpu->gpio);
    cpu->button_watched = false;
    cpu->timer = (struct sleep_timer){.due = NEVER};
    cpu->crystal_ns = now;
    cpu->crystal_ticks = 0;
    cpu->clock_control = CLOCK_RESET;
    cpu->power_mode = 0;
    cpu->crystal_stable = now;
    cpu->flash_control = 4;
    cpu->flash_address = 0;
    cpu->adc_result = 0;
    cpu->adc_done = NEVER;
    cpu->uart.control = 0x300;
    cpu->host.pin(cpu->host.mote, now, SKERRY_PIN_SENSOR_POWER, 0);
}

/* ---- sleep timer (chapter 12) ---- */
uint64_t sleep_timer_ticks(const skerry_cpu *cpu, uint64_t now)
{
    return cpu->crystal_ticks + (uint64_t)((double)(now - cpu->crystal_ns) / cpu->tick_ns);
}

/* The beginning of the step that a time lies in. */
static uint64_t stepped(const skerry_cpu *cpu, uint64_t time)
{
    return cpu->timer_step_ns ? time - time % cpu->timer_step_ns : time;
}

/* The time that the timer shows: never one before its crystal started. */
static uint64_t shown(const skerry_cpu *cpu)
{
    uint64_t time = stepped(cpu, cpu_now(cpu));
    return time > cpu->crystal_ns ? time : cpu->crystal_ns;
}

/* The compare value lies ahead; what equals the count comes round again after 36 hours. */
void sleep_timer_schedule(skerry_cpu *cpu)
{
    uint64_t ticks = sleep_timer_ticks(cpu, shown(cpu));
    uint64_t ahead = (uint32_t)(cpu->timer.compare - (uint32_t)ticks);
    if (!ahead)
        ahead = 1ULL << 32;
    cpu->timer.due = cpu->crystal_ns +
                     (uint64_t)ceil((double)(ticks + ahead - cpu->crystal_ticks) * cpu->tick_ns);
    /* Rounding may make that a nanosecond early: the count would not be there yet, and the
     * interrupt would come for ever at one and the same time. */
    while (sleep_timer_ticks(cpu, cpu->timer.due) < ticks + ahead)
        cpu->timer.due++;
    if (cpu->timer_step_ns)
        cpu->timer.due = stepped(cpu, cpu->timer.due + cpu->timer_step_ns - 1);
}

static uint32_t sleep_timer_read(skerry_cpu *cpu, uint32_t byte)
{
    if (byte == 0)
        cpu->timer.latched = (uint32_t)sleep_timer_ticks(cpu, shown(cpu));
    return cpu->timer.latched >> 8 * byte & 0xFF;
}

static void sleep_timer_write(skerry_cpu *cpu, uint32_t byte, uint32_t value)
{
    cpu->timer.written = (cpu->timer.written & ~(0xFFU << 8 * byte)) | (value & 0xFF) << 8 * byte;
    if (byte)
        return;
    cpu->timer.compare = cpu->timer.written;
    sleep_timer_schedule(cpu);
}

/* ---- UART0, a PL011 without its FIFO (chapter 18) ---- */
enum {
    UART_DR = 0x00,
    UART_FR = 0x18,
    UART_IBRD = 0x24,
    UART_FBRD = 0x28,
    UART_LCRH = 0x2C,
    UART_CTL = 0x30,
    UART_IM = 0x38,
    UART_RIS = 0x3C,
    UART_MIS = 0x40,
    UART_ICR = 0x44,
    UART_CC = 0xFC8
};
enum { RXIS = 1 << 4, TXIS = 1 << 5, UARTEN = 1, TXE = 0x100, RXE = 0x200, FEN = 1 << 4 };

static uint64_t byte_ns(const skerry_cpu *cpu)
{
    uint64_t divisor = (uint64_t)cpu->uart.integer * 64 + cpu->uart.fraction;
    return divisor ? 10 * 16 * divisor * 125 / 4 / 64 : 260417;
}

static void uart_line(skerry_cpu *cpu)
{
    nvic_line(cpu, IRQ_UART0, cpu->uart.raw & cpu->uart.mask);
}

static void uart_send(skerry_cpu *cpu, uint8_t byte)
{
    struct uart *uart = &cpu->uart;
    if ((uart->control & (UARTEN | TXE)) != (UARTEN | TXE) || uart->holds)
        return;
    uart->raw &= ~(uint32_t)TXIS;
    uart->holding = byte;
    if (uart->sending)
        uart->holds = true;
    else {
        uart->sending = true;
        uart->sent_at = cpu_now(cpu) + byte_ns(cpu);
        uart->raw |= TXIS;
        cpu->host.uart(cpu->host.mote, uart->sent_at, byte);
    }
    uart_line(cpu);
}

static void uart_sent(skerry_cpu *cpu)
{
    struct uart *uart = &cpu->uart;
    uart->sending = uart->holds;
    if (uart->holds) {
        uart->holds = false;
        uart->sent_at += byte_ns(cpu);
        uart->raw |= TXIS;
        cpu->host.uart(cpu->host.mote, uart->sent_at, uart->holding);
    }
    uart_line(cpu);
}

bool uart_receive(skerry_cpu *cpu, uint8_t byte)
{
    struct uart *uart = &cpu->uart;
    /* Not listening, or without a clock: the byte is lost. */
    if ((uart->control & (UARTEN | RXE)) != (UARTEN | RXE) || (cpu->sleeping && cpu->deep))
        return true;
    if (uart->full)
        return false;
    uart->received = byte;
    uart->full = true;
    uart->raw |= RXIS;
    uart_line(cpu);
    return true;
}

static uint32_t uart_read(skerry_cpu *cpu, uint32_t offset)
{
    struct uart *uart = &cpu->uart;
    switch (offset) {
    case UART_DR:
        uart->full = false;
        uart->raw &= ~(uint32_t)RXIS;
        uart_line(cpu);
        return uart->received;
    case UART_FR:
        return (uint32_t)(uart->full ? 1U << 6 : 1U << 4) | (uart->holds ? 1U << 5 : 1U << 7) |
               (uart->sending ? 1U << 3 : 0);
    case UART_IBRD: return uart->integer;
    case UART_FBRD: return uart->fraction;
    case UART_LCRH: return uart->line_control;
    case UART_CTL: return uart->control;
    case UART_IM: return uart->mask;
    case UART_RIS: return uart->raw;
    case UART_MIS: return uart->raw & uart->mask;
    case UART_CC: return uart->clock;
    default: cpu_report(cpu, UART0 + offset, "read"); return 0;
    }
}

static void uart_write(skerry_cpu *cpu, uint32_t offset, uint32_t value)
{
    struct uart *uart = &cpu->uart;
    switch (offset) {
    case UART_DR: uart_send(cpu, (uint8_t)value); break;
    case UART_IBRD: uart->integer = value & 0xFFFF; break;
    case UART_FBRD: uart->fraction = value & 0x3F; break;
    case UART_LCRH:
        if (value & FEN)
            cpu_report(cpu, UART0 + offset, "set to use the FIFO, which the model lacks: written");
        uart->line_control = value & 0xFF;
        break;
    case UART_CTL: uart->control = value; break;
    case UART_IM:
        uart->mask = value & 0x7FF;
        uart_line(cpu);
        break;
    case UART_ICR:
        uart->raw &= ~value;
        if (uart->full)
            uart->raw |= RXIS;
        uart_line(cpu);
        break;
    case UART_CC: uart->clock = value & 15; break;
    default: cpu_report(cpu, UART0 + offset, "written");
    }
}

/* ---- clocks and power (chapter 7) ---- */
enum { CLOCK_CTRL = 0x00, CLOCK_STA = 0x04, PMCTL = 0x58 };
#define OSC_RC (1U << 16)
/* SWRS096D: start-up time of the 32 MHz crystal. */
#define CRYSTAL_NS 300000U

static bool on_crystal(const skerry_cpu *cpu)
{
    return !(cpu->clock_control & OSC_RC) && cpu_now(cpu) >= cpu->crystal_stable;
}

static uint32_t clock_read(skerry_cpu *cpu, uint32_t offset)
{
    switch (offset) {
    case CLOCK_CTRL: return cpu->clock_control;
    case CLOCK_STA: return (cpu->clock_control & ~OSC_RC) | (on_crystal(cpu) ? 0 : OSC_RC);
    case PMCTL: return cpu->power_mode;
    default: cpu_report(cpu, SYS_CTRL + offset, "read"); return 0;
    }
}

uint64_t peripherals_busy_until(const skerry_cpu *cpu, uint32_t address, uint32_t bits)
{
    return address == SYS_CTRL + CLOCK_STA && bits == OSC_RC && !(cpu->clock_control & OSC_RC)
               ? cpu->crystal_stable
               : 0;
}

static void clock_write(skerry_cpu *cpu, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case CLOCK_CTRL:
        if (cpu->clock_control & OSC_RC && !(value & OSC_RC))
            cpu->crystal_stable = cpu_now(cpu) + CRYSTAL_NS;
        cpu->clock_control = value;
        break;
    case PMCTL: cpu->power_mode = value & 3; break;
    default: cpu_report(cpu, SYS_CTRL + offset, "written");
    }
}

/* ---- flash controller (chapter 8) ---- */
enum { FCTL = 0x08, FADDR = 0x0C, FWDATA = 0x10, FCTL_ERASE = 1, FCTL_WRITE = 2 };
/* SWRS096D: 20 ms to erase a page, 20 us to write a word. */
#define ERASE_NS 20000000U
#define WRITE_NS 20000U

/* xorshift32. */
static uint32_t flash_draw(skerry_cpu *cpu)
{
    cpu->flash_noise ^= cpu->flash_noise << 13;
    cpu->flash_noise ^= cpu->flash_noise >> 17;
    return cpu->flash_noise ^= cpu->flash_noise << 5;
}

/* Whether power goes in the midst of what is done to flash now. */
static bool flash_cut(skerry_cpu *cpu)
{
    if (cpu->flash_steps < 0 || cpu->flash_steps-- > 0)
        return false;
    cpu->power_lost = true;
    return true;
}

/* Each bit of a page that power leaves behind is erased or not, in a part that is drawn. */
static void flash_erase(skerry_cpu *cpu, uint32_t page)
{
    uint32_t *words = (uint32_t *)(void *)(cpu->flash + page * FLASH_PAGE);
    cpu->erasures[page]++;
    cpu->code_changed |= page * FLASH_PAGE < cpu->image->size;
    if (!flash_cut(cpu)) {
        memset(words, 0xFF, FLASH_PAGE);
        cpu_stall(cpu, ERASE_NS);
        return;
    }
    uint32_t dense = flash_draw(cpu) % 2;
    for (uint32_t word = 0; word < FLASH_PAGE / 4; word++) {
        uint32_t bits = flash_draw(cpu), more = flash_draw(cpu);
        words[word] |= dense ? bits | more : bits & more;
    }
}

/* A word may be written up to eight times between two erasures (8.3.2); this firmware writes it
 * once, and a second time is a fault. */
static void flash_program(skerry_cpu *cpu, uint32_t at, uint32_t value)
{
    uint32_t word;
    memcpy(&word, cpu->flash + at, sizeof word);
    if (word != UINT32_MAX) {
        cpu_fault(cpu, "flash: 0x%08x is written, and holds 0x%08x: it was not erased",
                  FLASH_BASE + at, word);
        return;
    }
    cpu->code_changed |= at < cpu->image->size;
    word = flash_cut(cpu) ? value | flash_draw(cpu) : value;
    memcpy(cpu->flash + at, &word, sizeof word);
    cpu_stall(cpu, WRITE_NS);
}

static void flash_write(skerry_cpu *cpu, uint32_t offset, uint32_t value)
{
    uint32_t at = (cpu->flash_address & 0x1FFFF) * 4;
    if (cpu->power_lost)
        return;
    switch (offset) {
    case FADDR: cpu->flash_address = value; break;
    case FCTL:
        if (value & FCTL_ERASE)
            flash_erase(cpu, at / FLASH_PAGE);
        cpu->flash_control = value & ~(uint32_t)FCTL_ERASE;
        break;
    case FWDATA:
        if (cpu->flash_control & FCTL_WRITE)
            flash_program(cpu, at, value);
        else
            cpu_report(cpu, FLASH_CTRL + offset, "without FCTL.WRITE: written");
        break;
    default: cpu_report(cpu, FLASH_CTRL + offset, "written");
    }
}

/* ---- ADC (chapter 15): decimation 512, 13 bits and sign, left aligned in 16 ---- */
enum { ADCCON1 = 0x00, ADCCON3 = 0x08, ADCL = 0x0C, ADCH = 0x10 };
#define CONVERSION_NS 132000U
#define REFERENCE_UV 1190000.0
#define FULL_SCALE 8192.0

static double input_uv(skerry_cpu *cpu, uint32_t channel)
{
    static const struct {
        uint32_t channel;
        enum skerry_input input;
    } inputs[] = {
        {2, SKERRY_INPUT_TEMPERATURE}, {4, SKERRY_INPUT_HUMIDITY}, {5, SKERRY_INPUT_LIGHT},
        {6, SKERRY_INPUT_ACCEL_X},     {7, SKERRY_INPUT_ACCEL_Y},
    };
    if (channel == 15)
        return cpu->supply_unknown ? 0 : cpu->millivolts * 1000.0 / 3.0;
    for (unsigned i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i].channel == channel)
            return cpu->host.adc(cpu->host.mote, cpu_now(cpu), inputs[i].input);
    return 0;
}

static void adc_start(skerry_cpu *cpu, uint32_t control)
{
    double reference = control >> 6 ? cpu->millivolts * 1000.0 : REFERENCE_UV;
    double counts =
        fmin(FULL_SCALE - 1, floor(input_uv(cpu, control & 15) / reference * FULL_SCALE + 0.5));
    cpu->adc_result = (uint32_t)counts << 2;
    cpu->adc_done = cpu_now(cpu) + CONVERSION_NS;
}

static uint32_t adc_read(skerry_cpu *cpu, uint32_t offset)
{
    switch (offset) {
    case ADCCON1: return 0x33 | (cpu_now(cpu) >= cpu->adc_done ? 0x80 : 0);
    case ADCL: return cpu->adc_result & 0xFF;
    case ADCH: cpu->adc_done = NEVER; return cpu->adc_result >> 8;
    default: cpu_report(cpu, ADC + offset, "read"); return 0;
    }
}

/* ---- GPIO (chapter 9): data masked by the address, direction; the button on PA3, pulled up,
 * interrupts at low level ---- */
#define BUTTON 0x08U
#define GPIO_IE 0x410U

static void button_line(skerry_cpu *cpu)
{
    nvic_line(cpu, IRQ_GPIO_A, cpu->button_down && cpu->button_watched);
}

void peripherals_button(skerry_cpu *cpu, bool down)
{
    cpu->button_down = down;
    button_line(cpu);
}

static void gpio_write(skerry_cpu *cpu, uint32_t address, uint32_t value)
{
    uint32_t port = (address - GPIO_A) >> 12, offset = address & 0xFFF;
    uint8_t *data = &cpu->gpio[port][0];
    if (offset == 0x400) {
        cpu->gpio[port][1] = (uint8_t)value;
        return;
    }
    if (address == GPIO_A + GPIO_IE) {
        cpu->button_watched = value & BUTTON;
        button_line(cpu);
        return;
    }
    if (offset > 0x3FC) {
        cpu_report(cpu, address, "written");
        return;
    }
    uint8_t before = *data, mask = (uint8_t)(offset >> 2);
    *data = (uint8_t)((*data & ~mask) | (value & mask));
    static const struct {
        uint8_t bit;
        enum skerry_pin pin;
    } pins[] = {
        {0, SKERRY_PIN_SENSOR_POWER}, {1, SKERRY_PIN_ACTUATOR}, {4, SKERRY_PIN_RED},
        {6, SKERRY_PIN_YELLOW},       {7, SKERRY_PIN_GREEN},
    };
    for (unsigned i = 0; port == 2 && i < sizeof pins / sizeof *pins; i++)
        if ((before ^ *data) >> pins[i].bit & 1)
            cpu->host.pin(cpu->host.mote, cpu_now(cpu), pins[i].pin, *data >> pins[i].bit & 1);
}

static uint32_t gpio_read(skerry_cpu *cpu, uint32_t address)
{
    uint32_t port = (address - GPIO_A) >> 12, offset = address & 0xFFF;
    if (offset == 0x400)
        return cpu->gpio[port][1];
    if (offset > 0x3FC) {
        cpu_report(cpu, address, "read");
        return 0;
    }
    if (port == 0 && cpu->button_down)
        return cpu->gpio[port][0] & offset >> 2 & ~(uint32_t)BUTTON;
    if (port == 0)
        return (cpu->gpio[port][0] | BUTTON) & offset >> 2;
    return cpu->gpio[port][0] & offset >> 2;
}

/* ---- the bus ---- */
static void radio_answer(skerry_cpu *cpu, enum skerry_access access, uint32_t address,
                         const char *how)
{
    if (access == SKERRY_ACCESS_UNKNOWN)
        cpu_report(cpu, address, how);
    if (access == SKERRY_ACCESS_WRONG)
        cpu_fault(cpu,
                  "radio register 0x%08x %s against its rules, in the block at 0x%08x: flags are "
                  "cleared by 0 after a read that was not 0, FIFOs "
                  "hold 128 bytes and are not read empty",
                  address, how, cpu->block);
}

/* Those that do not: data of the UART and the radio; the radio's flags, of which the model notes
 * that they were read, and its state, which counts who asked for the channel; the lowest byte of
 * the sleep timer, the upper one of the ADC, the control of SysTick. */
bool peripherals_keep_when_read(uint32_t address)
{
    static const uint32_t changing[] = {UART0 + UART_DR, RADIO + 0x64C, RADIO + 0x828,
                                        RADIO + 0x830,   RADIO + 0x834, SLEEP_TIMER,
                                        ADC + ADCH,      0xE000E010U};
    for (unsigned i = 0; i < sizeof changing / sizeof *changing; i++)
        if (address == changing[i])
            return false;
    return true;
}

uint32_t peripherals_read(skerry_cpu *cpu, uint32_t address)
{
    const uint32_t *kept = plain_at(cpu, address);
    if (kept)
        return *kept;
    if (address >= RADIO && address < RADIO + 0x1000) {
        uint32_t value;
        radio_answer(cpu,
                     cpu->host.radio_read(cpu->host.mote, cpu_now(cpu), address - RADIO, &value),
                     address, "read");
        return value;
    }
    if (address >= SLEEP_TIMER && address < SLEEP_TIMER + 16)
        return sleep_timer_read(cpu, (address - SLEEP_TIMER) / 4);
    if (address == SLEEP_TIMER + 16)
        return 1; /* STLOAD: ready */
    if (address >= GPIO_A && address < GPIO_END)
        return gpio_read(cpu, address);
    switch (address & ~0xFFFU) {
    case UART0: return uart_read(cpu, address - UART0);
    case SYS_CTRL: return clock_read(cpu, address - SYS_CTRL);
    case ADC: return adc_read(cpu, address - ADC);
    case FLASH_CTRL:
        if (address == FLASH_CTRL + FCTL)
            return cpu->flash_control;
        break;
    default: break;
    }
    cpu_report(cpu, address, "read");
    return 0;
}

void peripherals_write(skerry_cpu *cpu, uint32_t address, uint32_t value)
{
    uint32_t *kept = plain_at(cpu, address);
    if (kept) {
        *kept = value;
        return;
    }
    if (address >= RADIO && address < RADIO + 0x1000) {
        radio_answer(cpu,
                     cpu->host.radio_write(cpu->host.mote, cpu_now(cpu), address - RADIO, value),
                     address, "written");
        return;
    }
    if (address >= SLEEP_TIMER && address < SLEEP_TIMER + 16) {
        sleep_timer_write(cpu, (address - SLEEP_TIMER) / 4, value);
        return;
    }
    if (address >= GPIO_A && address < GPIO_END) {
        gpio_write(cpu, address, value);
        return;
    }
    switch (address & ~0xFFFU) {
    case UART0: uart_write(cpu, address - UART0, value); return;
    case SYS_CTRL: clock_write(cpu, address - SYS_CTRL, value); return;
    case FLASH_CTRL: flash_write(cpu, address - FLASH_CTRL, value); return;
    case ADC:
        if (address == ADC + ADCCON3) {
            adc_start(cpu, value);
            return;
        }
        break;
    default: break;
    }
    cpu_report(cpu, address, "written");
}

uint64_t peripherals_due(const skerry_cpu *cpu)
{
    uint64_t due = cpu->timer.due;
    if (cpu->uart.sending && cpu->uart.sent_at < due)
        due = cpu->uart.sent_at;
    return due;
}

void peripherals_run(skerry_cpu *cpu, uint64_t now)
{
    if (now >= cpu->timer.due) {
        nvic_pend(cpu, EXCEPTION_IRQ + IRQ_SLEEP_TIMER);
        sleep_timer_schedule(cpu);
    }
    while (cpu->uart.sending && now >= cpu->uart.sent_at)
        uart_sent(cpu);
}
