/* A program gives the handlers it needs by their names; the others hang. */
#include "prelude.h"

void hard_fault(void) __attribute__((weak, alias("hang")));
void systick(void) __attribute__((weak, alias("hang")));
void irq_a(void) __attribute__((weak, alias("hang")));
void irq_b(void) __attribute__((weak, alias("hang")));
void sleep_timer(void) __attribute__((weak, alias("hang")));
void hang(void)
{
    for (;;) {}
}

typedef void handler(void);
__attribute__((section(".vectors"), used)) handler *const vectors[16 + IRQ_COUNT] = {
    [0] = (handler *)0x20008000,
    [1] = start,
    [3] = hard_fault,
    [15] = systick,
    [16 + IRQ_A] = irq_a,
    [16 + IRQ_B] = irq_b,
    [16 + IRQ_SLEEP_TIMER] = sleep_timer,
};
