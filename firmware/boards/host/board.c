#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "drivers/radio.h"
#include "drivers/sensor.h"
#include "drivers/serial.h"
#include "drivers/settings_start.h"
#include "kernel/clock.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

uint8_t host_sent[125], host_sent_length;
uint32_t host_sent_count;
uint8_t host_written[256];
uint16_t host_written_length;
bool host_acknowledges = true;

static uint64_t clock_ticks;
#define now ((ticks_t)clock_ticks)
static struct wire_settings current;
static ticks_t last_start;
static bool radio_listens, accepts = true, sending, acknowledged_frame;
static uint8_t line[256], line_in, line_out;

/* ---- board ---- */
void board_init(void) {}
uint8_t board_reset_cause(void) { return 1; }
uint32_t board_noise(void) { return 0; }
uint32_t board_factory(void) { return 0x1EAF; }
void board_reboot(void) { exit(3); }
void board_sleep(bool deep) { (void)deep; }
void board_alarm(uint32_t due) { (void)due; }
void board_alarm_off(void) {}
bool board_alarm_reached(void) { return true; }
board_interrupts board_interrupts_off(void) { return 0; }
void board_interrupts_restore(board_interrupts state) { (void)state; }
void board_leds(uint8_t mask) { (void)mask; }
void board_actuator(bool on) { (void)on; }
void board_button_watch(bool on) { (void)on; }
bool board_button_down(void) { return false; }
uint16_t board_free_ram(void) { return 4000; }
void board_watchdog(void) {}
ticks_t clock_now(void) { return now; }
uint32_t clock_uptime(void) { return (uint32_t)(clock_ticks / CLOCK_TICKS_PER_SECOND); }

void host_run(uint32_t ticks, uint32_t step)
{
    for (uint32_t passed = 0; passed < ticks; passed += step) {
        clock_ticks += step;
        for (uint16_t i = 0; kernel_step(); i++)
            if (i == 10000)
                abort(); /* the mote would never sleep again */
    }
}

/* ---- settings ---- */
void host_settings(const struct wire_settings *settings) { current = *settings; }
const struct wire_settings *settings_load(void) { return &current; }
const struct wire_settings *settings(void) { return &current; }
void settings_keep(const struct wire_settings *changed) { current = *changed; }
void settings_renew(uint16_t other) { settings_pass(&current, other); }

/* ---- radio ---- */
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
        radio_stamp(host_sent + stamp, now + 6);
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
    last_start = now;
    /* An exact copy on the heap, so that a read past its end is caught. */
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        abort();
    memcpy(copy, psdu, length);
    struct radio_frame frame = {
        .psdu = copy, .length = length, .lqi = lqi, .rssi = -70, .sfd = now};
    bool broadcast = length >= 7 && copy[5] == 0xFF && copy[6] == 0xFF;
    if (accepts || broadcast)
        radio_received(&frame);
    free(copy);
}

/* ---- serial line ---- */
void serial_init(void) {}
uint8_t serial_room(void) { return 63; }
bool serial_write(uint8_t byte)
{
    /* nobody has read it */
    if (host_written_length == sizeof host_written)
        host_written_length = 0;
    host_written[host_written_length++] = byte;
    return true;
}
int16_t serial_read(void) { return line_out == line_in ? -1 : line[line_out++]; }
static struct event ready = {.handler = serial_ready};
void host_serial(const uint8_t *bytes, uint16_t length)
{
    for (uint16_t i = 0; i < length; i++) {
        if ((uint8_t)(line_in + 1) == line_out)
            break;
        line[line_in++] = bytes[i];
    }
    event_post(&ready);
}

/* ---- sensors: each attribute is worth ten times its number ---- */
static struct event done = {.handler = sensor_done};
uint32_t sensor_available(void) { return 0x3F0; }
bool sensor_acquire(uint32_t mask)
{
    (void)mask;
    if (done.pending)
        return false;
    event_post(&done);
    return true;
}
void sensor_hold(uint32_t mask) { (void)mask; }
bool sensor_read(uint32_t mask) { return mask != UINT32_MAX; }
bool sensor_value(uint8_t attribute, int32_t *value)
{
    *value = attribute * 10;
    return attribute >= 4 && attribute <= 9;
}
