#include "environment.h"

#include <setjmp.h>
#include <string.h>

#include "board.h"
#include "commands/command.h"
#include "drivers/sensor.h"
#include "drivers/settings.h"
#include "kernel/assert.h"
#include "kernel/clock.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "net/app.h"
#include "net/health/status.h"
#include "net/mac/time.h"
#include "net/net.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/schedule/way_cells.h"
#include "net/transport/carried.h"
#include "net/transport/queue.h"
#include "net/transport/trails.h"
#include "net/transport/way_table.h"
#include "query/operators/aggregate.h"
#include "query/query.h"
#include "query/queueing/queue_discipline.h"
#include "wire.h"

#define RECORDS_MAXIMUM 4096

static uint32_t now, limit;
static bool alarm_set, alarm_reached;
static uint32_t alarm_due;
static jmp_buf stop;

static bool network_known;
static uint64_t network_base; /* ticks */
static uint32_t local_base;
static int32_t network_ppm;

static int32_t values[32];
static uint32_t available, null_mask, valid, last_mask, acquisition_time;
/* what values[] was at each attribute's last acquisition, if it is in `valid` */
static int32_t acquired[32];
static uint16_t reads[32];
static bool acquiring;
static uint16_t acquisitions;
static struct timer acquisition_timer;

static uint8_t ways_room, last_carried_length, trails;
static uint8_t last_carried[WIRE_CARRIED_MAXIMUM];
static uint16_t last_destination;
static uint16_t tree_parent_node;
static uint8_t tree_hops;
static struct environment_refusal refusal;
static uint8_t refusals;
static uint16_t signalled, actions;
static int32_t signal_value;
static bool signal_room;
static int32_t action;
static struct wire_settings mote = {
    .magic = WIRE_SETTINGS_MAGIC, .nodeid = 7, .x = -1250, .y = 300};

static struct environment_record records[RECORDS_MAXIMUM];
static uint16_t record_count;

/* kernel/clock and board: an interrupt comes only from the alarm. */

uint32_t clock_uptime(void) { return now / CLOCK_TICKS_PER_SECOND; }
ticks_t clock_now(void) { return now; }

board_interrupts board_interrupts_off(void) { return 0; }

void board_interrupts_restore(board_interrupts state) { (void)state; }

void board_watchdog(void) {}

/* kernel/assert: no test breaks an invariant and goes on. */
void invariant_broken(uint8_t which)
{
    (void)which;
    __builtin_trap();
}

uint16_t board_free_ram(void) { return 1234; }

void board_alarm_off(void) { alarm_set = alarm_reached = false; }

bool board_alarm_reached(void) { return alarm_reached; }

void board_alarm(uint32_t due)
{
    alarm_set = true;
    alarm_due = due;
    alarm_reached = clock_reached(now, due);
}

void board_sleep(bool deep)
{
    (void)deep;
    if (!alarm_set || !clock_reached(limit, alarm_due)) {
        now = limit;
        longjmp(stop, 1);
    }
    if (clock_reached(alarm_due, now))
        now = alarm_due;
    alarm_set = false;
    alarm_reached = true;
}

void environment_run(uint32_t ticks)
{
    limit = now + ticks;
    alarm_set = false;
    if (setjmp(stop) == 0)
        kernel_run();
}

uint32_t environment_local(void) { return now; }

/* net/time: a linear clock. */

bool time_known(void) { return network_known; }

static struct net_time net_time(uint64_t ticks)
{
    return (struct net_time){(uint32_t)(ticks >> 15), (uint16_t)(ticks & 0x7FFF)};
}

struct net_time time_at(ticks_t local)
{
    int64_t passed = (int32_t)(local - local_base);
    return net_time(network_base + (uint64_t)(passed + passed * network_ppm / 1000000));
}

ticks_t time_local(struct net_time time)
{
    int64_t passed = (int64_t)(((uint64_t)time.seconds << 15 | time.ticks) - network_base);
    return local_base + (uint32_t)(passed - passed * network_ppm / (1000000 + network_ppm));
}

void environment_synchronise(uint32_t seconds, uint16_t ticks, int32_t ppm)
{
    network_known = true;
    network_base = (uint64_t)seconds << 15 | ticks;
    network_ppm = ppm;
    local_base = now;
    app_time_changed();
}

/* drivers/sensor and drivers/settings. */

uint32_t sensor_available(void) { return available; }

static void take(uint32_t mask)
{
    for (uint8_t attribute = 0; attribute < 32; attribute++)
        if (mask >> attribute & 1)
            acquired[attribute] = values[attribute];
    valid = (valid & ~mask) | (mask & ~null_mask);
}

static void acquisition_end(void)
{
    take(last_mask);
    acquiring = false;
    sensor_done();
}

static bool begin_acquisition(uint32_t mask)
{
    if (acquiring)
        return false;
    acquiring = true;
    last_mask = mask;
    valid &= ~mask;
    acquisitions++;
    for (uint8_t attribute = 0; attribute < 32; attribute++)
        reads[attribute] = (uint16_t)(reads[attribute] + (mask >> attribute & 1));
    timer_start(&acquisition_timer, now + acquisition_time, acquisition_end);
    return true;
}

bool sensor_acquire(uint32_t mask) { return begin_acquisition(mask); }
void sensor_hold(uint32_t mask) { (void)mask; }
bool sensor_read(uint32_t mask)
{
    take(mask);
    return true;
}

bool environment_foreign_acquisition(void) { return begin_acquisition(0); }

bool sensor_value(uint8_t attribute, int32_t *value)
{
    *value = acquired[attribute];
    return valid >> attribute & 1;
}

void environment_sensor(uint8_t attribute, int32_t value, bool null)
{
    uint32_t bit = (uint32_t)1 << attribute;
    available |= bit;
    null_mask = null ? null_mask | bit : null_mask & ~bit;
    values[attribute] = value;
}

void environment_acquisition_time(uint32_t ticks) { acquisition_time = ticks; }

uint16_t environment_acquisitions(void) { return acquisitions; }

uint16_t environment_reads(uint8_t attribute) { return reads[attribute]; }

uint32_t environment_last_mask(void) { return last_mask; }

const struct wire_settings *settings(void) { return &mote; }
/* net/status. */
void net_query_refused(uint8_t query, uint8_t reason, uint16_t missing)
{
    refusal = (struct environment_refusal){query, reason, missing};
    refusals++;
}
bool net_health(uint8_t attribute, int32_t *value)
{
    *value = attribute;
    return true;
}
/* net/net: the flood comes back at once. */
bool net_signal(const struct wire_event *event)
{
    if (!signal_room)
        return false;
    signalled++;
    signal_value = event->value;
    app_event(event);
    return true;
}
/* The registry: commands of every number, no aggregates. */
enum command_outcome command_run(uint8_t number, int32_t argument)
{
    actions++;
    action = (int32_t)number << 16 | (uint16_t)argument;
    return COMMAND_DONE;
}
const IN_FLASH struct aggregate *aggregate_outside(uint8_t aggregate)
{
    return (void)aggregate, NULL;
}
uint16_t environment_signals(void) { return signalled; }
int32_t environment_signal_value(void) { return signal_value; }
uint16_t environment_actions(void) { return actions; }
int32_t environment_action(void) { return action; }
uint8_t environment_refusals(void) { return refusals; }
const struct environment_refusal *environment_refusal(void) { return &refusal; }
void environment_signal_room(bool room) { signal_room = room; }
void environment_identify(uint16_t node) { mote.nodeid = node; }
void environment_root(bool root) { mote.root = root; }

/* net/tree and net/queue. */
#define ROOT 100

bool tree_is_root(void) { return mote.root; }
uint16_t tree_session(void) { return 1; }
/* What is given to ways: only the room that a test makes; nothing arrives by itself. */
bool carried_takes(uint8_t length)
{
    (void)length;
    return ways_room > 0;
}
enum carried_outcome carried_send(uint16_t destination, const struct way_route *route,
                                  const void *record, uint8_t length, uint16_t seconds,
                                  uint8_t every)
{
    (void)route, (void)seconds, (void)every;
    if (ways_room == 0)
        return CARRIED_NO_WAY;
    ways_room--;
    last_destination = destination;
    last_carried_length = length;
    memcpy(last_carried, record, length);
    return CARRIED_WAITS;
}
/* Ways are open at once, have cells in each round, and nothing has gone by them for a while. */
static struct way any_way = {.idle = 3};
struct way *way_to(uint16_t destination, const struct way_route *route, uint8_t every)
{
    (void)route, (void)every;
    any_way.destination = destination;
    any_way.ready = true;
    return ways_room > 0 ? &any_way : NULL;
}
bool way_cells_now(const struct way *way) { return way->destination != WIRE_NO_NODE; }
bool way_has_records(const struct way *way)
{
    (void)way;
    return false;
}
void trails_lay(void) { trails++; }
void environment_ways(uint8_t room) { ways_room = room; }
/* What was handed to a way since it was last asked; its bytes, 0: nothing was. */
uint8_t environment_carried(uint16_t *destination, uint8_t *record)
{
    uint8_t length = last_carried_length;
    *destination = last_destination;
    memcpy(record, last_carried, length);
    last_carried_length = 0;
    return length;
}
uint8_t environment_trails(void) { return trails; }
uint16_t tree_own_parent(void) { return tree_parent_node; }
uint8_t tree_own_level(void) { return tree_hops; }
bool neighbour_is_parent(uint16_t node) { return node == tree_parent_node; }
uint16_t neighbour_worth(const struct neighbour *neighbour) { return neighbour->heard; }

bool tree_parent(uint16_t *parent)
{
    *parent = tree_parent_node;
    return tree_hops != WIRE_NO_LEVEL;
}

bool tree_root(uint16_t *root)
{
    *root = ROOT;
    return tree_hops != WIRE_NO_LEVEL;
}

bool tree_level(uint8_t *level)
{
    *level = tree_hops;
    return tree_hops != WIRE_NO_LEVEL;
}

void environment_tree(uint16_t parent, uint8_t level)
{
    tree_parent_node = parent;
    tree_hops = level;
}

/* The queue: everything in one list, unless a test brings net/transport/queue.c and
 * queue_discipline.c along.
 */
#define QUEUE __attribute__((weak))

QUEUE uint8_t queue_length(void) { return record_count < 255 ? (uint8_t)record_count : 255; }

QUEUE uint16_t queue_room(void) { return record_count < RECORDS_MAXIMUM ? UINT16_MAX : 0; }
QUEUE void queue_lost(void) {}

QUEUE bool queue_push(uint8_t type, const void *body, uint8_t length)
{
    if (record_count == RECORDS_MAXIMUM || length > sizeof records[0].body)
        return false;
    struct environment_record *record = &records[record_count++];
    record->local = now;
    record->type = type;
    record->length = length;
    memcpy(record->body, body, length);
    return true;
}

QUEUE void discipline_row(struct wire_result *row, uint8_t length)
{
    queue_push(WIRE_PACKET_RESULT, row, length);
}
QUEUE void discipline_query_ended(uint8_t query) { (void)query; }

uint16_t environment_records(void) { return record_count; }

const struct environment_record *environment_record(uint16_t index) { return &records[index]; }

void environment_forget_records(void) { record_count = 0; }

void environment_reset(uint32_t local)
{
    now = local;
    mote.nodeid = 7;
    mote.root = false;
    ways_room = last_carried_length = trails = 0;
    refusals = 0;
    signalled = actions = 0;
    signal_room = true;
    network_known = false;
    available = null_mask = valid = last_mask = 0;
    memset(reads, 0, sizeof reads);
    acquiring = false;
    acquisitions = 0;
    acquisition_time = CLOCK_MS(100);
    timer_stop(&acquisition_timer);
    record_count = 0;
    environment_tree(WIRE_NO_NODE, WIRE_NO_LEVEL);
    query_init();
}
