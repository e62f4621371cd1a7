/* Where packets go, and what events in one module mean for the others. */
#include "net/net.h"

#include <string.h>

#include "board.h"
#include "commands/command.h"
#include "drivers/settings.h"
#include "kernel/assert.h"
#include "kernel/calls.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/health/status.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/root/serial_link.h"
#include "net/routing/beacon_receive.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"
#include "net/schedule/control_window.h"
#include "net/schedule/schedule.h"
#include "net/schedule/slotframe.h"
#include "net/transport/dissemination.h"
#include "net/transport/queue.h"
#include "net/transport/transport_ops.h"
#include "net/transport/uplink.h"

/* Tokens of floods that motes begin; the gateway numbers its commands from below. */
#define SIGNAL_TOKENS 0x8000
/* A mote that is told to reboot waits for so long, as its acknowledgement travels first. */
#define REBOOT_DELAY CLOCK_MS(12000)

static struct {
    struct timer reboot;
    struct event restart; /* of the schedule: from the main loop, as it is often the schedule itself
                             that finds the parent gone */
} net = {.restart = {.handler = schedule_restart}};

bool net_asked(uint8_t type, const uint8_t *body, uint8_t length, bool unicast)
{
    switch (type) {
    case WIRE_PACKET_QUERY_INSTALL:
        if (length <= sizeof(struct wire_query_install))
            return false;
        dissemination_install((const struct wire_query_install *)body, length, unicast);
        break;
    case WIRE_PACKET_QUERY_STOP:
        if (length < sizeof(struct wire_query_stop) || length % sizeof(struct wire_stopped) != 0 ||
            length > WIRE_STOPS_MAXIMUM * sizeof(struct wire_stopped))
            return false;
        dissemination_stop((const struct wire_stopped *)body, length / sizeof(struct wire_stopped));
        break;
    case WIRE_PACKET_COMMAND:
        if (length < sizeof(struct wire_command))
            return false;
        dissemination_command((const struct wire_command *)body, length);
        break;
    default: return false;
    }
    control_window_send_soon();
    return true;
}

void net_packet(const struct radio_frame *frame, uint16_t source, bool unicast, uint8_t type,
                const uint8_t *body, uint8_t length)
{
    switch (type) {
    case WIRE_PACKET_BEACON:
        if (length < sizeof(struct wire_beacon))
            break;
        if (beacon_receive(frame, source, (const struct wire_beacon *)body, length))
            dissemination_heard(source, ((const struct wire_beacon *)body)->query_version);
        control_window_beacon_heard();
        control_window_send_soon();
        return;
    case WIRE_PACKET_BUNDLE:
        if (!unicast || length < sizeof(struct wire_bundle))
            break;
        /* In a session just begun, motes that have not heard of it still send rows of the one
         * before. */
        if (!uplink_of_session(((const struct wire_bundle *)body)->flags))
            return;
        tree_child_heard(source, frame->lqi);
        uplink_bundle(source, body, length);
        schedule_bundle(source, ((const struct wire_bundle *)body)->flags);
        if (tree_is_root()) {
            slot_table_traffic(length);
            serial_link_pump();
        }
        return;
    case WIRE_PACKET_JOIN:
        if (!unicast || length < sizeof(struct wire_join))
            break;
        /* The sender's session differs from ours: this mote beacons at once, so that one of both
         * can resynchronise. */
        if (((const struct wire_join *)body)->session != tree_session()) {
            control_window_beacon_now();
            return;
        }
        if (((const struct wire_join *)body)->level == WIRE_NO_LEVEL) {
            tree_sequence_requested(((const struct wire_join *)body)->root_sequence);
            schedule_heard(false);
            control_window_send_soon();
            return;
        }
        tree_child_heard(source, frame->lqi);
        tree_child_srts(source, (const struct wire_join *)body, length);
        schedule_heard(false);
        /* A child sends in the slot of its level, which follows from this mote's: it must know
         * that. */
        if (((const struct wire_join *)body)->level != tree_own_level() + 1)
            control_window_beacon_now();
        return;
    case WIRE_PACKET_QUERY_REQUEST:
        if (!unicast || length < sizeof(struct wire_query_request))
            break;
        dissemination_summary(source, (const struct wire_query_request *)body, length);
        schedule_heard(false);
        control_window_send_soon();
        return;
    case WIRE_PACKET_NAMESAKE:
        if (!namesake_told(source, unicast, body, length))
            break;
        schedule_heard(false);
        if (tree_is_root())
            serial_link_pump();
        return;
    case WIRE_PACKET_QUERY_INSTALL:
    case WIRE_PACKET_QUERY_STOP:
        if (tree_is_root())
            return; /* The root hears the echo of its own flood. */
        /* fall through */
    default:
        if (!net_asked(type, body, length, unicast))
            break;
        schedule_heard(false);
        return;
    }
    mac_counters.malformed++;
}

void net_repeated(uint16_t source, const uint8_t *body, uint8_t length)
{
    if (length >= sizeof(struct wire_bundle))
        schedule_bundle(source, ((const struct wire_bundle *)body)->flags);
}

static NOT_INLINED uint8_t execute(const struct wire_command *command, uint8_t arguments)
{
    int32_t values[2];
    struct wire_settings changed = *settings();
    switch (command->op) {
    case WIRE_COMMAND_PING: return WIRE_COMMAND_STATUS_DONE;
    case WIRE_COMMAND_SET_POSITION:
        if (arguments != sizeof values)
            return WIRE_COMMAND_STATUS_BAD_ARGUMENT;
        memcpy(values, command->arguments, sizeof values);
        changed.x = values[0];
        changed.y = values[1];
        settings_keep(&changed);
        return WIRE_COMMAND_STATUS_DONE;
    case WIRE_COMMAND_REBOOT:
        timer_start(&net.reboot, clock_now() + REBOOT_DELAY, kernel_restart);
        return WIRE_COMMAND_STATUS_DONE;
    case WIRE_COMMAND_RUN:
        if (arguments != 1 + sizeof *values)
            return WIRE_COMMAND_STATUS_BAD_ARGUMENT;
        memcpy(values, command->arguments + 1, sizeof *values);
        switch (command_run(command->arguments[0], *values)) {
        case COMMAND_DONE: return WIRE_COMMAND_STATUS_DONE;
        case COMMAND_UNKNOWN: return WIRE_COMMAND_STATUS_UNKNOWN_OP;
        default: return WIRE_COMMAND_STATUS_BAD_ARGUMENT;
        }
    default: return WIRE_COMMAND_STATUS_UNKNOWN_OP;
    }
}

bool net_signal(const struct wire_event *event)
{
    if (!dissemination_signal_room())
        return false;
    uint8_t bytes[sizeof(struct wire_command) + sizeof *event];
    struct wire_command *command = (struct wire_command *)bytes;
    *command = (struct wire_command){
        .target = WIRE_BROADCAST, .token = random_bits() | SIGNAL_TOKENS, .op = WIRE_COMMAND_EVENT};
    memcpy(command->arguments, event, sizeof *event);
    dissemination_command(command, sizeof bytes);
    return true;
}

void net_execute(const struct wire_command *command, uint8_t arguments)
{
    if (command->target != settings()->nodeid && command->target != WIRE_BROADCAST)
        return;
    if (command->op == WIRE_COMMAND_EVENT) {
        if (arguments != sizeof(struct wire_event))
            return;
        app_event((const struct wire_event *)command->arguments);
        if (!tree_is_root())
            return;
        queue_push(WIRE_PACKET_EVENT, command->arguments, sizeof(struct wire_event));
        serial_link_pump();
        return;
    }
    struct wire_command_ack answer = {
        .node = settings()->nodeid, .token = command->token, .status = execute(command, arguments)};
    queue_push(WIRE_PACKET_COMMAND_ACK, &answer, sizeof answer);
    if (command->op == WIRE_COMMAND_PING || command->op == WIRE_COMMAND_SET_POSITION)
        status_report();
    if (tree_is_root())
        serial_link_pump();
}

/* ---- what routing asks of the layers above it ---- */
void routing_request_beacon(void) { control_window_beacon_now(); }

void routing_send_soon(void) { control_window_send_soon(); }

void routing_send_join(uint16_t parent, bool again) { dissemination_join(parent, again); }

void routing_repeat_join(void) { dissemination_join_again(); }

void routing_request_sequence_number(uint16_t neighbour, uint8_t after)
{
    dissemination_request_sequence_number(neighbour, after);
}

void routing_request_queries(void) { dissemination_want(); }

void routing_report_namesake(const struct wire_namesake *record)
{
    queue_push(WIRE_PACKET_NAMESAKE, record, sizeof *record);
}

bool routing_may_switch(bool rows_twice)
{
    return !uplink_doubtful() || (rows_twice && !uplink_partials());
}

uint16_t routing_query_version(void) { return dissemination_version(); }

bool routing_network_slow(void) { return slotframe_is_slow(); }

void routing_session_begins(bool again)
{
    control_window_session(again);
    dissemination_forget();
    uplink_forget();
}

void routing_joined(void)
{
    app_time_changed();
    status_report();
    event_post(&net.restart);
}

void routing_left(void)
{
    status_log(2, "parent lost");
    event_post(&net.restart);
}

void routing_parent_changed(void) { status_report(); }

void routing_clock_jumped(void) { event_post(&net.restart); }

void routing_renew_session(uint16_t other)
{
    settings_renew(other);
    kernel_restart();
}

void net_init(void)
{
    random_seed(settings()->nodeid, settings()->boots);
    mac_init();
    tree_init();
    if (tree_is_root()) {
        clocksync_start_root();
        status_report();
        serial_link_init();
    }
    schedule_init();
}
