/* CC2538: vector table, reset, the words that the boot ROM reads. */
#include <stdint.h>

#include "board.h"
#include "drivers/cc2538/registers.h"
#include "kernel/assert.h"

#define STACK_PAINT 0xC5C5C5C5UL

extern uint32_t _flash_of_data[], _start_of_data[], _end_of_initialised[], _start_of_zero[],
    _end_of_zero[], _end_of_data[], _top_of_stack[];

int main(void);
void reset_handler(void) __attribute__((noreturn));
void fault_handler(void) __attribute__((noreturn));
void unexpected_isr(void);
void systick_isr(void);
void sleep_timer_isr(void);
void gpio_a_isr(void);
void uart0_isr(void);
void rf_isr(void);

typedef void handler(void);

/* ARMv7-M, B1.5.2 and table 5-2. */
#define EXTERNAL(irq) [16 + (irq)]
__attribute__((section(".vectors"), used)) handler *const vectors[16 + IRQ_COUNT] = {
    [0] = (handler *)_top_of_stack,
    [1] = reset_handler,
    [2] = fault_handler,
    [3] = fault_handler,
    [4] = fault_handler,
    [5] = fault_handler,
    [6] = fault_handler,
    [15] = systick_isr,
    EXTERNAL(IRQ_GPIO_A) = gpio_a_isr,
    EXTERNAL(IRQ_UART0) = uart0_isr,
    EXTERNAL(IRQ_RF) = rf_isr,
    EXTERNAL(IRQ_SLEEP_TIMER) = sleep_timer_isr,
};

/* The customer configuration area at the end of the flash (8.6): boot loader by a low PA3, a valid
 * image, where it starts, no locks. */
__attribute__((section(".configuration"), used)) const uint32_t configuration[11] = {
    0xF3FFFFFF, 0,          (uint32_t)FLASH_BASE, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF,
    0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF,           0xFFFFFFFF, 0xFFFFFFFF,
};

/* Paints the RAM that data does not use, so that board_free_ram can see how deep the stack went. */
void reset_handler(void)
{
    __asm__ volatile("cpsid i");
    SCB_VTOR = (uint32_t)vectors;
    const uint32_t *from = _flash_of_data;
    for (uint32_t *to = _start_of_data; to < _end_of_initialised; to++)
        *to = *from++;
    for (uint32_t *to = _start_of_zero; to < _end_of_zero; to++)
        *to = 0;
    uint32_t *stack;
    __asm__ volatile("mov %0, sp" : "=r"(stack));
    for (uint32_t *to = _end_of_data; to < stack - 8; to++)
        *to = STACK_PAINT;
    (void)main();
    board_reboot();
}

void fault_handler(void) { invariant_broken(WIRE_INVARIANT_CPU_FAULT); }
