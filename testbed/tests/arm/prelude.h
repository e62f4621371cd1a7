/* For small programs on the emulated CC2538: interrupts by name, bytes to the UART, nothing of the
 * firmware but its register names. */
#include <stdint.h>

#include "drivers/cc2538/registers.h"

#define PEND(irq) (REGISTER(0xE000E200 + 4 * ((irq) / 32)) = 1UL << (irq) % 32)
#define ENABLE(irq) (NVIC_ISER((irq) / 32) = 1UL << (irq) % 32)
#define PRIORITY(irq, value)                                                                       \
    (REGISTER(0xE000E400 + ((irq) & ~3)) =                                                         \
         (REGISTER(0xE000E400 + ((irq) & ~3)) & ~(0xFFUL << 8 * ((irq) & 3))) |                    \
         (uint32_t)(value) << 8 * ((irq) & 3))
#define INTERRUPTS_OFF() __asm__ volatile("cpsid i" ::: "memory")
#define INTERRUPTS_ON() __asm__ volatile("cpsie i" ::: "memory")
#define WFI() __asm__ volatile("wfi" ::: "memory")

void start(void);
void hard_fault(void);
void systick(void);
void irq_a(void);
void irq_b(void);
void sleep_timer(void);
enum { IRQ_A = 40, IRQ_B = 41 };

static inline void say(uint8_t byte)
{
    UART0_IBRD = 1;
    UART0_CTL = CTL_ENABLE;
    while (UART0_FR & FR_TXFF) {}
    UART0_DR = byte;
}

static inline void say_number(uint32_t value)
{
    for (int i = 0; i < 4; i++)
        say((uint8_t)(value >> 8 * i));
}

static inline uint32_t ticks(void)
{
    uint32_t now = SMWDTHROSC_ST0;
    return now | SMWDTHROSC_ST1 << 8 | SMWDTHROSC_ST2 << 16 | SMWDTHROSC_ST3 << 24;
}
