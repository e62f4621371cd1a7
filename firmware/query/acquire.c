#include "query/acquire.h"

#include <stdbool.h>

#include "drivers/sensor.h"
#include "query/aggregate.h"
#include "query/attribute.h"
#include "query/row.h"
#include "query/slots.h"

static bool under_way;
static uint32_t rows;

void acquire_init(void)
{
    under_way = false;
    rows = 0;
}

uint32_t acquire_rows(void) { return rows; }

static void produce(const struct slot *slot)
{
    if (slot_program(slot)->flags & WIRE_QUERY_AGGREGATE) {
        aggregate_produce(slot);
        rows++;
    } else if (row_produce(slot)) {
        rows++;
    }
}

static void produce_all(void)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = slot_at(i);
        if (slot != NULL && slot->state & SLOT_SAMPLING) {
            slot->state &= (uint8_t)~SLOT_SAMPLING;
            produce(slot);
        }
    }
}

void acquire_start(void)
{
    uint32_t mask = 0;
    if (under_way)
        return;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        const struct slot *slot = slot_at(i);
        if (slot != NULL && slot->state & SLOT_WAITING)
            mask |= attribute_sensors(slot->attributes);
    }
    if (mask != 0) {
        under_way = sensor_acquire(mask);
        if (!under_way)
            return; /* somebody else's acquisition: its sensor_done calls again */
    }
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = slot_at(i);
        if (slot != NULL && slot->state & SLOT_WAITING)
            slot->state ^= SLOT_WAITING | SLOT_SAMPLING;
    }
    if (!under_way)
        produce_all();
}

void sensor_done(void)
{
    bool ours = under_way;
    under_way = false;
    if (ours)
        produce_all();
    acquire_start();
}
