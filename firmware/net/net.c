/* Where packets go, and what events in one module mean for the others. */
#include "net/net.h"

#include <string.h>

#include "board.h"
#include "commands/command.h"
#include "drivers/settings.h"
#include "kernel/assert.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/calls.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/content/content.h"
#include "net/health/status.h"
#include "net/mac/clocksync.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/root/serial_link.h"
#include "net/routing/beacon_receive.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/positions.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"
#include "net/schedule/control_window.h"
#include "net/schedule/schedule.h"
#include "net/schedule/slotframe.h"
#include "net/transport/carried.h"
#include "net/transport/command_flood.h"
#include "net/transport/dissemination.h"
#include "net/transport/join_packet.h"
#include "net/transport/leading.h"
#include "net/transport/queue.h"
#include "net/transport/trails.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"
#include "net/transport/uplink.h"
#include "net/transport/way_table.h"

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
        command_flood_take((const struct wire_command *)body, length);
        break;
    default: return false;
    }
    control_window_send_soon();
    return true;
}

static bool way_packet(uint16_t source, uint8_t type, const uint8_t *body, uint8_t length)
{
    switch (type) {
    case WIRE_PACKET_WAY_OPEN: return ways_open_heard(source, body, length);
    case WIRE_PACKET_WAY_STATE: return ways_state_heard(source, body, length);
    case WIRE_PACKET_POSITION: return leading_position_heard(source, body, length);
    default:
        if (!trails_heard(source, body, length))
            return false;
        ways_trail_laid(((const struct wire_trail *)body)->destination);
        return true;
    }
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
    case WIRE_PACKET_WAY_OPEN:
    case WIRE_PACKET_WAY_STATE:
    case WIRE_PACKET_TRAIL:
    case WIRE_PACKET_POSITION:
        if ((!unicast && type != WIRE_PACKET_POSITION) || !way_packet(source, type, body, length))
            break;
        schedule_heard(false);
        control_window_send_soon();
        return;
    case WIRE_PACKET_CONTENT:
    case WIRE_PACKET_SEARCH:
        if (!(type == WIRE_PACKET_CONTENT ? content_heard(source, body, length)
                                          : search_heard(source, body, length)))
            break;
        schedule_heard(false);
        control_window_send_soon();
        return;
    case WIRE_PACKET_CARRIED:
        if (!unicast || !carried_heard(source, body, length))
            break;
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

/* Sends a PING to the mote that the command names. What becomes of it is told by whom it comes to,
 * or here. */
static void ping(uint16_t token, uint16_t to, uint16_t seconds, const struct way_route *route)
{
    struct net_time now = time_at(clock_now());
    struct wire_ping record = {
        .carries = WIRE_CARRIES_PING, .token = token, .seconds = now.seconds, .ticks = now.ticks};
    enum carried_outcome outcome =
        carried_send(to, route, &record, sizeof record, seconds, WAY_EVERY_LEAST);
    if (outcome != CARRIED_WAITS)
        net_not_carried(settings()->nodeid,
                        outcome == CARRIED_NO_ROOM ? WIRE_OUTCOME_NO_ROOM : WIRE_OUTCOME_NO_WAY,
                        (const uint8_t *)&record, sizeof record);
}

static uint8_t execute_ping(const struct wire_command *command, uint8_t arguments)
{
    uint16_t to_seconds[2];
    int32_t values[2];
    const uint8_t *behind = command->arguments + sizeof to_seconds;
    if (arguments < sizeof to_seconds)
        return WIRE_COMMAND_STATUS_BAD_ARGUMENT;
    memcpy(to_seconds, command->arguments, sizeof to_seconds);
    uint8_t rest = (uint8_t)(arguments - sizeof to_seconds);
    struct way_route route = {.vector = behind, .length = rest};
    bool by_vector = command->op == WIRE_COMMAND_PING_BY, by_place = !by_vector && rest;
    if (to_seconds[0] == settings()->nodeid || to_seconds[1] > INT16_MAX ||
        (by_place ? rest != sizeof values : to_seconds[0] == WIRE_NO_NODE) || (by_vector && !rest))
        return WIRE_COMMAND_STATUS_BAD_ARGUMENT;
    struct place place;
    if (by_place) {
        memcpy(values, behind, sizeof values);
        place = place_of(values[0], values[1]);
        route.place = &place;
    }
    ping(command->token, to_seconds[0], to_seconds[1], by_place || by_vector ? &route : NULL);
    return WIRE_COMMAND_STATUS_DONE;
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
        leading_moved();
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
    case WIRE_COMMAND_PING_TO:
    case WIRE_COMMAND_PING_BY: return execute_ping(command, arguments);
    default: return WIRE_COMMAND_STATUS_UNKNOWN_OP;
    }
}

bool net_signal(const struct wire_event *event)
{
    if (!command_flood_signal_room())
        return false;
    uint8_t bytes[sizeof(struct wire_command) + sizeof *event];
    struct wire_command *command = (struct wire_command *)bytes;
    *command = (struct wire_command){.target = WIRE_BROADCAST,
                                     .token = random_bits() | TOKENS_OF_MOTES,
                                     .op = WIRE_COMMAND_EVENT};
    memcpy(command->arguments, event, sizeof *event);
    command_flood_take(command, sizeof bytes);
    return true;
}

/* Another mote is about to send something here: it is to find this one. */
static bool is_wanted(const struct wire_command *command, uint8_t arguments)
{
    uint16_t own = settings()->nodeid;
    return (command->op == WIRE_COMMAND_FIND && command->target == own) ||
           (command->op == WIRE_COMMAND_PING_TO && arguments == 2 * sizeof own &&
            memcmp(command->arguments, &own, sizeof own) == 0);
}

void net_execute(const struct wire_command *command, uint8_t arguments)
{
    if (is_wanted(command, arguments))
        trails_lay();
    if (command->op == WIRE_COMMAND_FIND)
        return;
    if (command->op == WIRE_COMMAND_INDEX_ASK || command->op == WIRE_COMMAND_INDEX_DROP) {
        app_index_command(command, arguments);
        return;
    }
    if (command->op == WIRE_COMMAND_SEARCH) {
        content_command(command->token, command->arguments, arguments);
        return;
    }
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

/* ---- records from mote to mote ---- */
static void tell_arrival(uint16_t source, uint8_t outcome, uint8_t hops, const uint8_t *record,
                         uint8_t length)
{
    uint8_t bytes[sizeof(struct wire_arrival) + WIRE_CARRIED_MAXIMUM];
    struct wire_arrival *arrival = (struct wire_arrival *)bytes;
    struct net_time now = time_at(clock_now());
    *arrival = (struct wire_arrival){.node = settings()->nodeid,
                                     .source = source,
                                     .outcome = outcome,
                                     .hops = hops,
                                     .seconds = now.seconds,
                                     .ticks = now.ticks};
    memcpy(arrival->ping, record, length);
    queue_push(WIRE_PACKET_ARRIVAL, bytes, (uint8_t)(sizeof *arrival + length));
    if (tree_is_root())
        serial_link_pump();
}

bool net_carried(uint16_t origin, uint8_t hops, const uint8_t *record, uint8_t length)
{
    if (record[0] == WIRE_CARRIES_PING && length >= sizeof(struct wire_ping))
        tell_arrival(origin, WIRE_OUTCOME_ARRIVED, hops, record, length);
    else if (!(record[0] == WIRE_CARRIES_TUPLE      ? app_tuple(record, length)
               : record[0] == WIRE_CARRIES_FOUND    ? answer_came(hops, record, length)
               : record[0] == WIRE_CARRIES_GATHERED ? app_gathered(record, length)
#ifdef BOARD_TUPLES
               : record[0] == WIRE_CARRIES_HANDED ? app_handed(origin, record, length)
               : record[0] == WIRE_CARRIES_KEPT
                   ? app_kept(origin, record, length)
#endif
                   : record[0] == WIRE_CARRIES_ROW && app_row(record, length))) {
#ifdef BOARD_TUPLES
        /* It may be of an index that a mote which has just started is yet to hear of. */
        if (record[0] == WIRE_CARRIES_TUPLE && dissemination_lacks())
            return false;
#endif
        mac_counters.malformed++;
    }
    return true;
}

void net_not_carried(uint16_t origin, uint8_t outcome, const uint8_t *record, uint8_t length)
{
    if (record[0] == WIRE_CARRIES_PING)
        tell_arrival(origin, outcome, 0, record, length);
    else if (record[0] == WIRE_CARRIES_FOUND)
        answer_lost(outcome, record, length);
    else if (record[0] == WIRE_CARRIES_TUPLE)
        app_tuple_lost(record, length);
    else if (record[0] == WIRE_CARRIES_ROW)
        app_row_lost(record, length);
}

void content_tell(const struct wire_found *record)
{
    queue_push(WIRE_PACKET_FOUND, record, sizeof *record);
    if (tree_is_root())
        serial_link_pump();
}

/* ---- what routing asks of the layers above it ---- */
void routing_request_beacon(void) { control_window_beacon_now(); }

void routing_send_soon(void) { control_window_send_soon(); }

void routing_send_join(uint16_t parent, bool again) { join_packet_tell(parent, again); }

void routing_repeat_join(void) { join_packet_again(); }

void routing_request_sequence_number(uint16_t neighbour, uint8_t after)
{
    join_packet_ask(neighbour, after);
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
    ways_forget();
}

void routing_joined(void)
{
    app_time_changed();
    status_report();
    event_post(&net.restart);
}

void routing_left(void)
{
    ways_forget();
    status_log(2, "parent lost");
    event_post(&net.restart);
}

void routing_parent_changed(void)
{
    trails_parent_changed();
    status_report();
}

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
    ways_init();
    tree_init();
    if (tree_is_root()) {
        clocksync_start_root();
        status_report();
        serial_link_init();
    }
    schedule_init();
}
