/* CC2538: clocks, pins, the sleep timer, sleep. Chapters are those of the user's guide (SWRU319C).
 */
#include "board.h"

#include "drivers/cc2538/registers.h"
#include "kernel/assert.h"
#include "kernel/button.h"
#include "kernel/clock.h"

/* A compare value nearer than this may be missed (12.2). */
#define ALARM_MINIMUM 5
/* Polls before a clock that does not come is no longer waited for: over 1 ms. */
#define PATIENCE 10000
/* The RC oscillator runs within 10 us (data sheet SWRS096D). */
#define RC_PATIENCE 100
/* SysTick at 32 MHz wraps after 0.52 s; so many wraps awake without a turn of the main loop are a
 * hang. */
#define HANG_WRAPS 4
#define STACK_PAINT 0xC5C5C5C5UL
/* Of the sleep timer's crystal, over which noise is gathered: 31 ms. */
#define NOISE_PERIODS 1024
#define LED_RED 0x10UL
#define LED_YELLOW 0x40UL
#define LED_GREEN 0x80UL
#define SENSOR_POWER 0x01UL
#define ACTUATOR 0x02UL
#define BUTTON 0x08UL /* PA3 */
/* Survives a reset, not a loss of power. */
#define RESET_BY_FIRMWARE 0x7E5E7B1DUL
static uint32_t reset_mark __attribute__((section(".noinit")));

static volatile bool alarm_reached;
static uint32_t alarm_due;
static volatile bool alarm_armed; /* the compare for it is still to come */
static volatile uint8_t wraps;
static uint8_t reset_cause;
static uint32_t uptime_seconds, uptime_mark;

extern uint32_t _end_of_data[], _top_of_stack[];

void sleep_timer_isr(void);
void systick_isr(void);
void gpio_a_isr(void);

ticks_t clock_now(void)
{
    board_interrupts state = board_interrupts_off();
    uint32_t now = SMWDTHROSC_ST0;
    now |= SMWDTHROSC_ST1 << 8;
    now |= SMWDTHROSC_ST2 << 16;
    now |= SMWDTHROSC_ST3 << 24;
    board_interrupts_restore(state);
    return now;
}

uint32_t clock_uptime(void)
{
    ticks_t now = clock_now();
    uint32_t passed = (now - uptime_mark) / CLOCK_TICKS_PER_SECOND;
    uptime_seconds += passed;
    uptime_mark += passed * CLOCK_TICKS_PER_SECOND;
    return uptime_seconds;
}

void board_clock_wait(void)
{
    for (uint32_t i = 0; i < PATIENCE && SYS_CTRL_CLOCK_STA & CLOCK_STA_RC; i++) {}
}

void board_init(void)
{
    reset_cause = reset_mark == RESET_BY_FIRMWARE ? BOARD_RESET_BY_FIRMWARE : 1 << 0;
    reset_mark = 0;
    SYS_CTRL_CLOCK_CTRL = CLOCK_CRYSTAL;
    IOC_PA3_OVER = IOC_PULL_UP;
    GPIO_IS(GPIO_A) = BUTTON;
    GPIO_IEV(GPIO_A) = 0;
    GPIO_P_EDGE_CTRL(GPIO_A) = BUTTON;
    GPIO_PI_IEN(GPIO_A) = BUTTON;
    NVIC_ISER(IRQ_GPIO_A / 32) = 1UL << IRQ_GPIO_A % 32;
    board_button_watch(true);
    SYS_CTRL_IWE = IWE_SLEEP_TIMER | IWE_PORT_A;
    GPIO_DIR(GPIO_C) = LED_RED | LED_YELLOW | LED_GREEN | SENSOR_POWER | ACTUATOR;
    GPIO_DATA(GPIO_C, LED_RED | LED_YELLOW | LED_GREEN | SENSOR_POWER | ACTUATOR) = 0;
    board_clock_wait();
    SYST_RVR = 0xFFFFFF;
    SYST_CVR = 0;
    SYST_CSR = 7;
    NVIC_ISER(IRQ_SLEEP_TIMER / 32) = 1UL << IRQ_SLEEP_TIMER % 32;
    uptime_mark = clock_now();
    __asm__ volatile("cpsie i" ::: "memory");
}

uint8_t board_reset_cause(void) { return reset_cause; }

/* FNV-1a over how far the 32 MHz oscillator has come at each tick of the other crystal: both are
 * off by some ppm, each chip's in its own way, and neither stands in step with the other. */
uint32_t board_noise(void)
{
    uint32_t noise = 2166136261UL;
    for (uint32_t period = 0; period < NOISE_PERIODS; period++) {
        for (ticks_t tick = clock_now(); tick == clock_now();) {}
        noise = (noise ^ SYST_CVR) * 16777619UL;
    }
    return noise;
}

/* The lower half of the IEEE address; the upper one begins with TI's 00:12:4B. Where it is erased,
 * or there is none, the chip has no number. */
uint32_t board_factory(void)
{
    uint32_t low = IEEE_ADDRESS_A >> 8 == 0x00124B ? IEEE_ADDRESS_B : IEEE_ADDRESS_A;
    return low == UINT32_MAX ? 0 : low;
}

void board_reboot(void)
{
    reset_mark = RESET_BY_FIRMWARE;
    __asm__ volatile("dsb" ::: "memory");
    SCB_AIRCR = AIRCR_RESET;
    for (;;) {}
}

/* After power mode 2 the count may be read a tick late (12.3): what is nearly due counts as
 * reached, the main loop waits for the rest. */
void sleep_timer_isr(void)
{
    alarm_armed = false;
    if (clock_reached(clock_now() + ALARM_MINIMUM, alarm_due))
        alarm_reached = true;
}

/* The chip's watchdog cannot be stopped and would wake a sleeping mote each second; this one runs
 * only while the CPU does. */
void systick_isr(void)
{
    if (++wraps >= HANG_WRAPS)
        invariant_broken(WIRE_INVARIANT_MAIN_LOOP);
}

void board_watchdog(void) { wraps = 0; }

void board_alarm(uint32_t due)
{
    uint32_t now = clock_now();
    alarm_reached = clock_reached(now, due);
    if (alarm_reached || (alarm_armed && due == alarm_due))
        return;
    alarm_due = due;
    alarm_armed = true;
    if (due - now < ALARM_MINIMUM)
        due = now + ALARM_MINIMUM;
    for (uint32_t i = 0; i < PATIENCE && !(SMWDTHROSC_STLOAD & STLOAD_READY); i++) {}
    SMWDTHROSC_ST3 = due >> 24;
    SMWDTHROSC_ST2 = due >> 16 & 0xFF;
    SMWDTHROSC_ST1 = due >> 8 & 0xFF;
    SMWDTHROSC_ST0 = due & 0xFF;
}

/* The compare interrupt cannot be switched off by itself; without an alarm it finds nothing
 * reached. */
void board_alarm_off(void) { alarm_reached = false; }

bool board_alarm_reached(void) { return alarm_reached; }

/* In power mode 2 everything stops but the crystal of the sleep timer, and only the upper half of
 * the RAM, where all data is, keeps what it holds. The chip must enter it on the RC oscillator and
 * wakes on it (7.1.2). The instruction is aligned and followed by one that does nothing (errata
 * SWRZ045, flash after deep sleep). */
void board_sleep(bool deep)
{
    SYST_CSR = 0;
    if (deep) {
        SYS_CTRL_CLOCK_CTRL = CLOCK_RC;
        for (uint32_t i = 0; i < RC_PATIENCE && !(SYS_CTRL_CLOCK_STA & CLOCK_STA_RC); i++) {}
        SYS_CTRL_PMCTL = POWER_MODE_2;
        SCB_SCR = SCR_SLEEPDEEP;
    }
    __asm__ volatile("dsb\n.p2align 2\nwfi\nnop" ::: "memory");
    if (deep) {
        SCB_SCR = 0;
        SYS_CTRL_PMCTL = POWER_MODE_0;
        SYS_CTRL_CLOCK_CTRL = CLOCK_CRYSTAL;
    }
    SYST_CVR = 0;
    SYST_CSR = 7;
    /* What has woken it is served at the barrier. */
    __asm__ volatile("cpsie i\nisb\ncpsid i" ::: "memory");
}

board_interrupts board_interrupts_off(void)
{
    uint32_t state;
    __asm__ volatile("mrs %0, primask\ncpsid i" : "=r"(state)::"memory");
    return state;
}

void board_interrupts_restore(board_interrupts state)
{
    __asm__ volatile("msr primask, %0" ::"r"(state) : "memory");
}

/* By level (9.2.4), and by edge in power mode 2 (9.2.5), where the port has no clock. */
void gpio_a_isr(void)
{
    GPIO_IRQ_DETECT_ACK(GPIO_A) = BUTTON;
    button_interrupt();
}

void board_button_watch(bool on) { GPIO_IE(GPIO_A) = on ? BUTTON : 0; }

bool board_button_down(void) { return !(GPIO_DATA(GPIO_A, BUTTON) & BUTTON); }

void board_actuator(bool on) { GPIO_DATA(GPIO_C, ACTUATOR) = on ? ACTUATOR : 0; }

void board_leds(uint8_t mask)
{
    GPIO_DATA(GPIO_C, LED_RED | LED_YELLOW | LED_GREEN) =
        (mask & 1 ? LED_RED : 0) | (mask & 2 ? LED_GREEN : 0) | (mask & 4 ? LED_YELLOW : 0);
}

uint16_t board_free_ram(void)
{
    const uint32_t *at = _end_of_data;
    while (at < _top_of_stack && *at == STACK_PAINT)
        at++;
    return (uint16_t)((const uint8_t *)at - (const uint8_t *)_end_of_data);
}
