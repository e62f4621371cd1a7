/* The button pin: pulled low, it calls once, however it bounces and however long it is held.
 * Nothing runs while it is let alone. */
#ifndef SKERRY_KERNEL_BUTTON_H
#define SKERRY_KERNEL_BUTTON_H

/* From the board's interrupt handler: the pin is low. */
void button_interrupt(void);

/* From the main loop. Implemented by query/events/events. */
void button_pressed(void);

#endif
