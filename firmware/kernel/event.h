/* Events: how interrupt handlers hand work to the main loop. */
#ifndef SKERRY_KERNEL_EVENT_H
#define SKERRY_KERNEL_EVENT_H

#include <stdbool.h>

typedef void event_handler(void);

/* Static storage of its poster: `static struct event e = {.handler = f};`. */
struct event {
    event_handler *handler;
    struct event *next;
    bool pending;
};

/* Runs the handler once from the main loop, in order of posting; posting a pending event changes
 * nothing. Safe in interrupt handlers. */
void event_post(struct event *event);

#endif
