#include "net/routing/namesake.h"

#include <string.h>

#include "drivers/settings.h"
#include "net/mac/frames.h"
#include "net/routing/routing_ops.h"

#define TRIES 3

static struct {
    uint8_t quiet; /* control windows in which it is not told again */
} namesake;

static void sent(enum radio_outcome outcome) { (void)outcome; }

void namesake_heard(uint16_t source)
{
    const struct wire_settings *own = settings();
    if (namesake.quiet || mac_busy())
        return;
    struct wire_namesake *body = mac_begin(
        &control_frame, source == own->nodeid ? WIRE_BROADCAST : source, WIRE_PACKET_NAMESAKE);
    *body = (struct wire_namesake){.node = own->nodeid, .factory = own->factory};
    mac_finish(&control_frame, sizeof *body);
    if (mac_send(&control_frame, TRIES, sent))
        namesake.quiet = NAMESAKE_WINDOWS;
}

bool namesake_told(uint16_t source, bool unicast, const uint8_t *body, uint8_t length)
{
    struct wire_namesake record;
    if (length != sizeof record)
        return false;
    memcpy(&record, body, sizeof record);
    if (source == settings()->nodeid)
        record.other = settings()->factory;
    else if (!unicast)
        return true; /* it is not for others */
    routing_report_namesake(&record);
    return true;
}

void namesake_age(void)
{
    if (namesake.quiet)
        namesake.quiet--;
}
