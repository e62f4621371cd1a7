#include "drivers/radio.h"

#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "kernel/clock.h"
#include "kernel/event.h"

uint8_t host_sent[125], host_sent_length;
uint32_t host_sent_count;
bool host_acknowledges = true;

static ticks_t last_start;
static bool radio_listens, accepts = true, sending, acknowledged_frame;

static void outcome(void)
{
    sending = false;
    radio_sent(acknowledged_frame && !host_acknowledges ? RADIO_NO_ACK : RADIO_SENT);
}
static struct event outcome_event = {.handler = outcome};

bool radio_init(uint16_t pan, uint16_t address, uint8_t channel)
{
    return (void)pan, (void)address, (void)channel, true;
}
void radio_on(void) { radio_listens = true; }
void radio_off(void) { radio_listens = false; }
bool radio_is_on(void) { return radio_listens; }
ticks_t radio_last_start(void) { return last_start; }
void radio_accept_unicast(bool accept) { accepts = accept; }
void radio_channel(uint8_t channel) { (void)channel; }
void radio_snoop(bool snoop) { (void)snoop; }
uint32_t radio_on_time(void) { return 0; }
void radio_set_power(int8_t dbm) { (void)dbm; }
uint16_t radio_malformed(void) { return 0; }

bool radio_send(const uint8_t *psdu, uint8_t length, uint8_t stamp)
{
    if (sending || length > sizeof host_sent)
        return false;
    memcpy(host_sent, psdu, length);
    if (stamp != RADIO_NO_STAMP)
        radio_stamp(host_sent + stamp, clock_now() + 6);
    host_sent_length = length;
    host_sent_count++;
    sending = true;
    acknowledged_frame = psdu[0] & 0x20;
    event_post(&outcome_event);
    return true;
}

void host_receive(const uint8_t *psdu, uint8_t length, uint8_t lqi)
{
    if (!radio_listens)
        return;
    last_start = clock_now();
    /* An exact copy on the heap, so that a read past its end is caught. */
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        abort();
    memcpy(copy, psdu, length);
    struct radio_frame frame = {
        .psdu = copy, .length = length, .lqi = lqi, .rssi = -70, .sfd = clock_now()};
    bool broadcast = length >= 7 && copy[5] == 0xFF && copy[6] == 0xFF;
    if (accepts || broadcast)
        radio_received(&frame);
    free(copy);
}
