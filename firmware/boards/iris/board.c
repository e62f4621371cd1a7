/* IRIS: clocks, pins, the crystal timer, sleep. Pages are those of the ATmega1281 data sheet
 * (2549Q). */
#include "board.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/delay_basic.h>

#include "drivers/rf230/pins.h"
#include "kernel/button.h"
#include "kernel/clock.h"

/* Timer 2 counts the crystal asynchronously, prescaler 1 (p. 184); its overflow carries into the
 * tick count's upper 24 bits. It comes 128 times a second, asleep or awake: of a mote that mostly
 * sleeps it and the way back to sleep took 44 % of the cycles in words and variables, hence bytes
 * and flags. */
union high {
    uint32_t ticks;
    uint8_t byte[4];
};
static volatile union high clock_high;
static uint32_t uptime_seconds;
static uint32_t uptime_mark;
/* The alarm: waits for the overflow period `alarm_high`, then for the count `alarm_low` in it. */
static volatile union high alarm_high;
static volatile uint8_t alarm_low;
/* Bits of a general purpose I/O register: each is set, cleared and tested by one instruction. */
#define FLAGS GPIOR0
#define SLEEPING _BV(0)
#define ALARM_WAITS _BV(1)
#define ALARM_REACHED _BV(2)
static uint8_t reset_cause;

extern uint8_t __heap_start[];
/* Ticks within which a compare value may be missed while it travels to the asynchronous timer (p.
 * 186). */
#define ALARM_MINIMUM 3
#define STACK_PAINT 0xC5
/* Re-entering power-save within one crystal period of waking, 30.5 us, would not wake again (p.
 * 187). The data sheet's way to be sure, a write to the asynchronous timer that has reached it,
 * takes two periods after an overflow, 128 times a second and awake. So many cycles and the hundred
 * from the interrupt to here take 38 us, and 34 with a clock that is 10 % fast, as the RC
 * oscillator's may be. */
#define AWAKE_CYCLES 200
/* Of the crystal, over which noise is gathered: 31 ms. */
#define NOISE_PERIODS 1024

/* Paints the RAM that data does not use, before main, so that board_free_ram can see how deep the
 * stack went. */
__asm__(".section .init3, \"ax\", @progbits\n"
        "ldi r30, lo8(__heap_start)\n ldi r31, hi8(__heap_start)\n ldi r24, 0xC5\n ldi r25, "
        "hi8(__stack)\n"
        "1: st Z+, r24\n cpi r30, lo8(__stack)\n cpc r31, r25\n brlo 1b\n"
        ".text\n");

/* The compare interrupt is enabled only in the overflow period in which the alarm falls due. The
 * watchdog is fed here as well, while the main loop sleeps by its own wish; a main loop that hangs
 * is not asleep. */
ISR(TIMER2_OVF_vect)
{
    if (++clock_high.byte[1] == 0 && ++clock_high.byte[2] == 0)
        ++clock_high.byte[3];
    if (FLAGS & SLEEPING)
        wdt_reset();
    if (!(FLAGS & ALARM_WAITS) || clock_high.byte[1] != alarm_high.byte[1])
        return;
    if (clock_high.byte[2] != alarm_high.byte[2] || clock_high.byte[3] != alarm_high.byte[3])
        return;
    if (alarm_low < ALARM_MINIMUM) {
        FLAGS &= (uint8_t)~ALARM_WAITS;
        FLAGS |= ALARM_REACHED; /* a little early: the main loop waits for the rest */
    } else {
        OCR2A = alarm_low;
        TIFR2 = _BV(OCF2A);
        TIMSK2 = _BV(TOIE2) | _BV(OCIE2A);
    }
}

ISR(TIMER2_COMPA_vect)
{
    TIMSK2 = _BV(TOIE2);
    FLAGS &= (uint8_t)~ALARM_WAITS;
    FLAGS |= ALARM_REACHED;
}

ticks_t clock_now(void)
{
    uint8_t sreg = SREG;
    cli();
    uint8_t low = TCNT2;
    uint32_t high = clock_high.ticks;
    /* An overflow not yet served: the count has wrapped, or wrapped after it was read. */
    if (TIFR2 & _BV(TOV2)) {
        low = TCNT2;
        high += 256;
    }
    SREG = sreg;
    return high + low;
}

uint32_t clock_uptime(void)
{
    ticks_t now = clock_now();
    uint32_t passed = (now - uptime_mark) / CLOCK_TICKS_PER_SECOND;
    uptime_seconds += passed;
    uptime_mark += passed * CLOCK_TICKS_PER_SECOND;
    return uptime_seconds;
}

void board_init(void)
{
    reset_cause = MCUSR;
    MCUSR = 0;
    wdt_enable(WDTO_2S);
    DDRA = _BV(PA0) | _BV(PA1) | _BV(PA2);
    PORTA = _BV(PA0) | _BV(PA1) | _BV(PA2); /* LEDs are on at low */
    DDRC = _BV(PC0) | _BV(PC1);             /* PW0: accelerometer, PW1: actuator */
    PORTB |= _BV(PB5);                      /* pulled up */
    board_button_watch(true);
    rf230_pins_init();
    ASSR = _BV(AS2);
    TCNT2 = 0;
    TCCR2A = 0;
    TCCR2B = _BV(CS20);
    while (ASSR & (_BV(TCN2UB) | _BV(TCR2AUB) | _BV(TCR2BUB))) {}
    TIFR2 = _BV(TOV2) | _BV(OCF2A);
    TIMSK2 = _BV(TOIE2);
    sei();
}

uint8_t board_reset_cause(void) { return reset_cause; }

void board_reboot(void)
{
    cli();
    wdt_enable(WDTO_15MS);
    for (;;) {}
}

/* The RC oscillator against the crystal: it is off by up to 10 %, each chip's in its own way, and
 * its jitter adds up over the periods. FNV-1a over what is counted in each. */
uint32_t board_noise(void)
{
    uint32_t noise = 2166136261UL;
    for (uint16_t period = 0; period < NOISE_PERIODS; period++) {
        uint8_t passes = 0;
        for (uint8_t tick = TCNT2; tick == TCNT2;)
            passes++;
        noise = (noise ^ passes) * 16777619UL;
    }
    return noise;
}

/* The signature row has no serial number. */
uint32_t board_factory(void) { return 0; }

void board_alarm(uint32_t due)
{
    /* Emulators drop a pending overflow when the compare flag is cleared: none may fall between
     * here and there. */
    while (TCNT2 == 255) {}
    if (TIFR2 & _BV(TOV2)) {
        TIFR2 = _BV(TOV2);
        clock_high.ticks += 256;
    }
    uint32_t now = clock_now();
    board_alarm_off();
    if ((int32_t)(due - now) <= 0) {
        FLAGS |= ALARM_REACHED;
        return;
    }
    FLAGS |= ALARM_WAITS;
    if (due - now < ALARM_MINIMUM)
        due = now + ALARM_MINIMUM;
    alarm_low = (uint8_t)due;
    alarm_high.ticks = due;
    if (((due ^ now) & ~255UL) == 0) {
        OCR2A = alarm_low;
        TIFR2 = _BV(OCF2A);
        TIMSK2 = _BV(TOIE2) | _BV(OCIE2A);
    }
}

void board_alarm_off(void)
{
    TIMSK2 = _BV(TOIE2);
    FLAGS &= (uint8_t)~(ALARM_WAITS | ALARM_REACHED);
}

bool board_alarm_reached(void) { return FLAGS & ALARM_REACHED; }

void board_sleep(bool deep)
{
    if (deep) {
        while (ASSR & _BV(OCR2AUB)) {} /* a compare value on its way would not wake (p. 187) */
        _delay_loop_2(AWAKE_CYCLES / 4);
    }
    FLAGS |= SLEEPING;
    SMCR = deep ? SLEEP_MODE_PWR_SAVE | _BV(SE) : SLEEP_MODE_IDLE | _BV(SE);
    sei();
    sleep_cpu();
    /* What has woken it is served by now; with simavr, where it was pending before, only after one
     * more instruction. */
    SMCR = 0;
    cli();
    FLAGS &= (uint8_t)~SLEEPING;
}

/* PWM1A of the connector, PB5: a change of the pin ends a deep sleep, where the edges of INT4 to
 * INT7 do not (p. 110). */
ISR(PCINT0_vect)
{
    if (board_button_down())
        button_interrupt();
}

void board_button_watch(bool on)
{
    PCMSK0 = on ? _BV(PCINT5) : 0;
    PCICR = _BV(PCIE0);
}

bool board_button_down(void) { return !(PINB & _BV(PB5)); }

void board_actuator(bool on) { PORTC = (uint8_t)((PORTC & ~_BV(PC1)) | (on ? _BV(PC1) : 0)); }

void board_leds(uint8_t mask) { PORTA = (uint8_t)((PORTA & ~7) | (~mask & 7)); }

uint16_t board_free_ram(void)
{
    const uint8_t *at = __heap_start;
    while (at < (const uint8_t *)RAMEND && *at == STACK_PAINT)
        at++;
    return (uint16_t)(at - __heap_start);
}

void board_watchdog(void) { wdt_reset(); }
