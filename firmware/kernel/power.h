/* How deeply the CPU may sleep when idle. */
#ifndef SKERRY_KERNEL_POWER_H
#define SKERRY_KERNEL_POWER_H

#include <stdbool.h>

/* Who needs the CPU's clock to run while idle; one bit each. */
enum power_user {
    POWER_RADIO = 1 << 0, /* input capture of frame times */
    POWER_UART = 1 << 1,
    POWER_TWI = 1 << 2,
    POWER_ADC = 1 << 3,
};

/* While any user is set the CPU idles; else it stops all clocks but the crystal's. Interrupt-safe.
 */
void power_hold(enum power_user user);
void power_release(enum power_user user);
bool power_deep_allowed(void);

#endif
