#include "query/events.h"

#include <string.h>

#include "drivers/settings.h"
#include "kernel/event.h"
#include "net/time.h"
#include "query/attribute.h"
#include "query/epochs.h"
#include "query/query.h"
#include "query/vm.h"

static struct wire_event raised;
static void tell(void);
static struct event telling = {.handler = tell};

static bool clause(const struct slot *slot, uint8_t kind, uint8_t n, struct program_field *field)
{
    return program_clause(slot_program(slot), slot->length, kind, n, field);
}

bool events_check(const struct program_field *field, uint32_t *attributes)
{
    const uint8_t *code = field->code.bytes;
    uint8_t length = field->code.length;
    switch (field->aggregate) {
    case WIRE_AGGREGATE_ON_EVENT:
        return length == sizeof(struct wire_on_event) && ((const struct wire_on_event *)code)->lasts > 0;
    case WIRE_AGGREGATE_STOP_ON:
        return length == sizeof(uint16_t) ||
               (length > sizeof(uint16_t) && vm_check(code + sizeof(uint16_t), (uint8_t)(length - sizeof(uint16_t)), attributes));
    case WIRE_AGGREGATE_SIGNAL:
        return length == sizeof(uint16_t);
    case WIRE_AGGREGATE_ACTION:
        return vm_check(code, length, attributes);
    default:
        return false;
    }
}

static uint16_t event_of(const struct program_field *field)
{
    uint16_t event;
    memcpy(&event, field->code.bytes, sizeof event); /* little-endian, as wire.h makes sure */
    return event;
}

void events_row(struct slot *slot)
{
    struct program_field field;
    for (uint8_t n = 0; clause(slot, WIRE_AGGREGATE_ACTION, n, &field); n++) {
        int32_t value;
        if (vm_run(field.code.bytes, field.code.length, attribute_read, slot, &value))
            net_action(field.format, value);
    }
    if (!(slot->state & SLOT_RAISED) && clause(slot, WIRE_AGGREGATE_SIGNAL, 0, &field)) {
        raised = (struct wire_event){event_of(&field), settings()->nodeid, settings()->x, settings()->y,
                                     time_at(clock_now()).seconds};
        event_post(&telling);
    }
    slot->state |= SLOT_RAISED;
}

void events_no_row(struct slot *slot) { slot->state &= (uint8_t)~SLOT_RAISED; }

/* From the main loop: the flood comes back here at once, and may start the query that raised it. */
static void tell(void) { net_signal(&raised); }

bool events_runs(const struct slot *slot, uint32_t start)
{
    struct program_field field;
    if (slot->stopped != 0 && start >= slot->stopped)
        return false;
    if (!clause(slot, WIRE_AGGREGATE_ON_EVENT, 0, &field))
        return true;
    const struct wire_on_event *on = (const struct wire_on_event *)field.code.bytes;
    return slot->begun != 0 && start >= slot->begun && start - slot->begun < on->lasts;
}

bool events_keeps(const struct slot *slot)
{
    struct program_field field;
    return slot->stopped != 0 || clause(slot, WIRE_AGGREGATE_ON_EVENT, 0, &field);
}

/* News travels for some seconds: each mote runs the query for its whole time from when it heard. */
static void start(struct slot *slot, const struct wire_event *event, uint32_t now)
{
    struct program_field field;
    if (!clause(slot, WIRE_AGGREGATE_ON_EVENT, 0, &field))
        return;
    const struct wire_on_event *on = (const struct wire_on_event *)field.code.bytes;
    bool running = slot->begun != 0 && now - slot->begun < on->lasts;
    if (on->event != event->event || (running && on->no_interleave))
        return;
    slot->event = *event;
    slot->begun = now;
}

static void stop(struct slot *slot, const struct wire_event *event, uint32_t now)
{
    struct program_field field;
    for (uint8_t n = 0; clause(slot, WIRE_AGGREGATE_STOP_ON, n, &field); n++) {
        uint8_t length = (uint8_t)(field.code.length - sizeof(uint16_t));
        struct wire_event before = slot->event;
        int32_t value = 1;
        if (event_of(&field) != event->event)
            continue;
        slot->event = *event; /* its condition may speak of the event */
        bool known = length == 0 || vm_run(field.code.bytes + sizeof(uint16_t), length, attribute_read, slot, &value);
        slot->event = before;
        if (known && value != 0)
            slot->stopped = now;
    }
}

void query_event(const struct wire_event *event)
{
    struct net_time now = time_at(clock_now());
    uint32_t next = now.seconds + (now.ticks > 0); /* whole seconds; 0 stands for never */
    if (!time_known() || next == 0)
        return;
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++) {
        struct slot *slot = slot_at(i);
        if (slot == NULL)
            continue;
        stop(slot, event, next);
        start(slot, event, next);
    }
    epochs_update();
}
