#include "net/schedule/session.h"

#include <stdint.h>

#include "kernel/clock.h"

/* A mote that begins a session stays awake for so long, s; longer where there was one before:
 * neighbours that still live in that beacon by another clock, in a slow network each 48 s, on both
 * channels by turns. */
#define AWAKE_SECONDS 13
#define AWAKE_AGAIN_SECONDS 100
static struct {
    uint32_t began;        /* uptime, s */
    uint8_t awake_seconds; /* while it is so young everybody is awake; 0: it is older */
} session;

void session_begins(bool again)
{
    session.awake_seconds = again ? AWAKE_AGAIN_SECONDS : AWAKE_SECONDS;
    session.began = clock_uptime();
}

bool session_is_young(void)
{
    if (clock_uptime() - session.began >= session.awake_seconds)
        session.awake_seconds = 0;
    return session.awake_seconds > 0;
}
