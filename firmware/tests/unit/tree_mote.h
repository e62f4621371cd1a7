/* A mote whose tree is under test, and beacons that it hears. Of other modules, five are replaced:
 * settings, the clock, the MAC, the application, and what routing asks of the layers above it. */
#ifndef UNIT_TREE_MOTE_H
#define UNIT_TREE_MOTE_H

#include "above_routing.h"

#include "drivers/settings.h"
#include "kernel/clock.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/ageing.h"
#include "net/routing/beacon_due.h"
#include "net/routing/beacon_send.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/parent_choice.h"
#include "net/routing/parent_loss.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"

enum { ME = 9 };

/* ---- settings and the clock ---- */
static struct wire_settings own = {.magic = WIRE_SETTINGS_MAGIC, .nodeid = ME};
static ticks_t now;

const struct wire_settings *settings(void) { return &own; }
ticks_t clock_now(void) { return now; }

/* ---- the MAC ---- */
struct mac_counters mac_counters;
static int namesakes; /* frames that tell of one */

void *mac_begin(struct mac_frame *frame, uint16_t destination, uint8_t type)
{
    (void)destination;
    namesakes += type == WIRE_PACKET_NAMESAKE;
    return frame->bytes + sizeof(struct wire_mac_header) + sizeof(struct wire_header);
}
void mac_finish(struct mac_frame *frame, uint8_t body)
{
    (void)frame;
    (void)body;
}
bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done)
{
    (void)frame;
    (void)tries;
    (void)done;
    return true;
}
bool mac_busy(void) { return false; }

/* For windows(). */
static int other_beacon(void)
{
    hear(2, 1, ROOT, 16, 255);
    return 0;
}

static void windows(int count, int (*each)(void))
{
    for (int i = 0; i < count; i++) {
        if (each)
            (void)each();
        routing_age();
    }
}

#endif
