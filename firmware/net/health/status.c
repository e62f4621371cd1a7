#include "net/health/status.h"

#include <string.h>

#include "board.h"
#include "drivers/radio.h"
#include "drivers/sensor.h"
#include "drivers/settings.h"
#include "kernel/assert.h"
#include "kernel/clock.h"
#include "lib/calls.h"
#include "net/app.h"
#include "net/mac/mac.h"
#include "net/mac/time.h"
#include "net/routing/neighbours.h"
#include "net/routing/tree.h"
#include "net/schedule/schedule.h"
#include "net/schedule/slotframe.h"
#include "net/transport/dissemination.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "storage/tuples.h"

#define TEXT_MAXIMUM 60
/* What a report may say of the mote's place, and of its users' attributes. */
#define STATIC_END (WIRE_STATIC_FIRST + WIRE_STATICS_MAXIMUM)
#define CONSTANTS (WIRE_ATTRIBUTE_GROUP + 1 - WIRE_ATTRIBUTE_ROOM + WIRE_STATICS_MAXIMUM)
/* mV: the event battery_low is raised below, and again after the battery was above. */
#define BATTERY_LOW 2200
#define BATTERY_RECOVERED 2300

/* Attributes that need no sensor. */
#define OWN_ATTRIBUTES                                                                             \
    (1UL << WIRE_ATTRIBUTE_NODEID | 1UL << WIRE_ATTRIBUTE_PARENT | 1UL << WIRE_ATTRIBUTE_LEVEL |   \
     1UL << WIRE_ATTRIBUTE_EPOCH | 1UL << WIRE_ATTRIBUTE_XPOS | 1UL << WIRE_ATTRIBUTE_YPOS |       \
     1UL << WIRE_ATTRIBUTE_FREE_RAM | 1UL << WIRE_ATTRIBUTE_QUEUE_LENGTH |                         \
     1UL << WIRE_ATTRIBUTE_LINK | 1UL << WIRE_ATTRIBUTE_NEIGHBOURS |                               \
     1UL << WIRE_ATTRIBUTE_RADIO_DUTY | 1UL << WIRE_ATTRIBUTE_RESETS |                             \
     1UL << WIRE_ATTRIBUTE_UPTIME | 1UL << WIRE_ATTRIBUTE_DROPPED)

static struct {
    uint16_t supply; /* mV, when it was measured last; 0: not yet */
    bool low;        /* it fell below BATTERY_LOW, and has not recovered */
} battery;

static void watch_supply(void)
{
    bool was_low = battery.low;
    battery.low =
        battery.supply > 0 && battery.supply < (was_low ? BATTERY_RECOVERED : BATTERY_LOW);
    if (battery.low && !was_low)
        app_own_event(APP_EVENT_BATTERY_LOW);
}

static uint8_t link_quality(void)
{
    const struct neighbour *up = tree_up();
    return !up ? 0 : up->used ? up->acknowledged : up->heard;
}

static uint16_t capped(uint32_t value) { return value > UINT16_MAX ? UINT16_MAX : (uint16_t)value; }

/* What commands have set; 0: nothing. */
static uint16_t constant(uint8_t attribute)
{
    const struct wire_settings *own = settings();
    switch (attribute) {
    case WIRE_ATTRIBUTE_ROOM: return own->room;
    case WIRE_ATTRIBUTE_FLOOR: return (uint16_t)own->floor;
    case WIRE_ATTRIBUTE_GROUP: return own->group;
    default: return own->statics[attribute - WIRE_STATIC_FIRST];
    }
}

/* Bytes of the constants of the mote's place and of its users. */
static NOT_INLINED uint8_t constants(struct wire_static_value *told)
{
    uint8_t count = 0;
    for (uint8_t attribute = WIRE_ATTRIBUTE_ROOM; attribute < STATIC_END; attribute++) {
        if (attribute == WIRE_ATTRIBUTE_GROUP + 1)
            attribute = WIRE_STATIC_FIRST;
        uint16_t value = constant(attribute);
        if (value == 0)
            continue;
        told[count].attribute = attribute;
        told[count++].value = attribute < WIRE_STATIC_FIRST ? value : value ^ 0x8000U;
    }
    return (uint8_t)(count * sizeof *told);
}

#ifdef BOARD_TUPLES
static NOT_INLINED void flash_report(void)
{
    struct tuples_statistics kept;
    tuples_statistics(&kept);
    struct {
        struct wire_flash flash;
        struct wire_index_count indexes[TUPLES_INDEXES];
    } __attribute__((packed)) told = {.flash = {.node = settings()->nodeid,
                                                .pages = kept.pages,
                                                .capacity = kept.capacity,
                                                .used = kept.used,
                                                .evicted = kept.evicted,
                                                .erased_most = kept.erased_most,
                                                .erased_sum = kept.erased_sum}};
    uint8_t count = 0;
    for (uint8_t place = 0; place < TUPLES_INDEXES; place++) {
        uint16_t index;
        uint32_t tuples = tuples_of(place, &index);
        if (tuples == 0)
            continue;
        uint8_t revision = 0;
        bool own = app_tuples_own(index, &revision);
        told.indexes[count++] = (struct wire_index_count){
            .index = index, .tuples = tuples, .own = own, .revision = revision};
    }
    queue_push(WIRE_PACKET_FLASH, &told,
               (uint8_t)(sizeof told.flash + count * sizeof *told.indexes));
}
#endif

void status_report(void)
{
    const struct wire_settings *own = settings();
    int32_t voltage;
    /* Where a query's acquisition is under way, the last value does. */
    (void)sensor_acquire(1UL << WIRE_ATTRIBUTE_VOLTAGE);
    if (sensor_value(WIRE_ATTRIBUTE_VOLTAGE, &voltage))
        battery.supply = (uint16_t)voltage;
    watch_supply();
    uint8_t bytes[sizeof(struct wire_status) + CONSTANTS * sizeof(struct wire_static_value)];
    struct wire_status *status = (struct wire_status *)bytes;
    status->node = own->nodeid;
    status->boots = own->boots;
    status->reset_cause = board_reset_cause();
    status->invariant = invariant_last();
    status->board = BOARD_ID;
    status->attributes = OWN_ATTRIBUTES | sensor_available();
    status->parent = tree_own_parent();
    status->level = tree_own_level();
    status->link = link_quality();
    status->neighbours = neighbour_count();
    status->query_version = dissemination_version();
    status->x = own->x;
    status->y = own->y;
    status->voltage = battery.supply;
    status->free_ram = board_free_ram();
    status->queue_length = queue_length();
    status->seconds = time_at(clock_now()).seconds;
    status->radio_on = radio_on_time();
    status->uptime = clock_uptime();
    status->rows = app_rows();
    status->dropped = queue_dropped();
    status->sent = mac_counters.sent;
    status->repeated = mac_counters.repeated;
    status->malformed =
        capped((uint32_t)mac_counters.malformed + radio_malformed() + app_refused());
    status->loops = mac_counters.loops;
    status->factory = own->factory;
    queue_push(WIRE_PACKET_STATUS, status, (uint8_t)(sizeof *status + constants(status->statics)));
#ifdef BOARD_TUPLES
    flash_report();
#endif
}

/* Powers of two. */
uint16_t schedule_report_rounds(void) { return slotframe_is_slow() ? STATUS_SELDOM : STATUS_EVERY; }

void schedule_round_begins(uint16_t round)
{
    /* Motes of numbers side by side do not report in rounds side by side. */
    uint16_t turn = (uint16_t)(settings()->nodeid * 37U);
    if (((round + turn) & (uint16_t)(schedule_report_rounds() - 1)) == 0)
        status_report();
}

/* Radio's share of the time since boot, in 1/10000. */
static uint16_t radio_duty(void)
{
    uint32_t uptime = clock_uptime(), on = radio_on_time();
    return uptime == 0 ? 10000 : capped(on / uptime * 10 + on % uptime * 10 / uptime);
}

/* mJ that the radio and the sleeping mote have taken since boot. */
static uint32_t energy(void)
{
    uint32_t on = radio_on_time();
    return on / 1000 * BOARD_RADIO_DMW / 10 + on % 1000 * BOARD_RADIO_DMW / 10000 +
           clock_uptime() / 10 * BOARD_STANDBY_UW / 100;
}

bool net_health(uint8_t attribute, int32_t *value)
{
    switch (attribute) {
    case WIRE_ATTRIBUTE_LINK:
        *value = link_quality() * 100 / 255;
        return tree_own_parent() != WIRE_NO_NODE;
    case WIRE_ATTRIBUTE_NEIGHBOURS: *value = neighbour_count(); return true;
    case WIRE_ATTRIBUTE_RADIO_DUTY: *value = radio_duty(); return true;
    case WIRE_ATTRIBUTE_RESETS: *value = settings()->boots; return true;
    case WIRE_ATTRIBUTE_UPTIME: *value = (int32_t)(clock_uptime() & INT32_MAX); return true;
    case WIRE_ATTRIBUTE_ENERGY: *value = (int32_t)(energy() & INT32_MAX); return true;
    case WIRE_ATTRIBUTE_CONTENTION: *value = mac_contention(); return true;
    case WIRE_ATTRIBUTE_DROPPED: *value = queue_dropped(); return true;
    default: return false;
    }
}

void net_query_refused(uint8_t query, uint8_t reason, uint16_t missing)
{
    struct wire_refusal refusal = {
        .node = settings()->nodeid, .query = query, .reason = reason, .missing = missing};
    queue_push(WIRE_PACKET_REFUSAL, &refusal, sizeof refusal);
}

void status_log(uint8_t severity, const char *text)
{
    uint8_t bytes[sizeof(struct wire_log) + TEXT_MAXIMUM];
    struct wire_log *log = (struct wire_log *)bytes;
    uint8_t length = (uint8_t)strnlen(text, TEXT_MAXIMUM);
    log->node = settings()->nodeid;
    log->severity = severity;
    memcpy(log->text, text, length);
    queue_push(WIRE_PACKET_LOG, bytes, (uint8_t)(sizeof *log + length));
}
