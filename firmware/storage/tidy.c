#include "storage/tidy.h"

#include "kernel/timer.h"
#include "storage/log.h"

/* What log_tidy takes at most, and a little more. */
#define QUIET CLOCK_MS(34)
/* No part of a round, so that it meets another moment of each. */
#define AGAIN CLOCK_MS(53)

static struct timer timer;

static void try(void)
{
    if (timer_none_within(QUIET) && tidy_allowed(log_is_full()))
        log_tidy();
    if (log_untidy())
        tidy_later();
}

void tidy_later(void)
{
    if (!timer.running)
        timer_after(&timer, AGAIN, try);
}
