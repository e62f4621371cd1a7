#include "query/events/raising.h"

#include <string.h>

#include "commands/command.h"
#include "drivers/settings.h"
#include "kernel/button.h"
#include "kernel/event.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/net.h"
#include "query/events/events.h"
#include "query/events/numbered.h"
#include "query/expressions/vm.h"
#include "query/program/clauses.h"
#include "query/query_conf.h"

static void tell(void);
static struct {
    uint8_t raised; /* bit n: the query of entry n has raised its event, which is not told yet */
    uint8_t own;    /* of enum app_own_event: to be told where a query waits for it */
    struct event telling; /* from the main loop */
} untold = {.own = APP_EVENT_BOOT, .telling = {.handler = tell}};

/* What a row's action or signal says. Where motes join rows of each other it knows nothing but the
 * two: what a mote samples is of its own row. */
static bool value_check(const uint8_t *code, uint8_t length, struct program_facts *facts)
{
    uint32_t read = 0;
    if (!(facts->keeps & PROGRAM_KEEPS_PAIRS))
        return vm_check(code, length, &facts->attributes);
    return vm_check(code, length, &read) && !(read & (VM_POINT(0) - 1));
}

static bool signal_check(const struct program_field *field, struct program_facts *facts)
{
    const uint8_t size = sizeof(uint16_t), length = field->code.length;
    return length == size || (length > size && value_check(field->code.bytes + size,
                                                           (uint8_t)(length - size), facts));
}

static bool action_check(const struct program_field *field, struct program_facts *facts)
{
    return value_check(field->code.bytes, field->code.length, facts);
}

static bool has_value(const struct program_field *field)
{
    return field->code.length > sizeof(uint16_t);
}

/* The expression behind the number; false: there is none, or it is NULL. */
static bool value_of(const struct eval_context *context, const struct program_field *field,
                     int32_t *value)
{
    struct program_code code = {field->code.bytes + sizeof(uint16_t),
                                (uint8_t)(field->code.length - sizeof(uint16_t))};
    return has_value(field) && program_compute(&code, context, value);
}

/* What a signal says is of the row that raised it: it is told from the main loop, or when floods
 * have room again, and sensors have been read anew by then. */
static uint16_t signal_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)entry;
    return has_value(field) ? sizeof(int32_t) : 0;
}

static void keep_value(const struct eval_context *context, const struct program_field *field)
{
    int32_t value;
    if (!has_value(field))
        return;
    if (!value_of(context, field, &value))
        value = INT32_MIN;
    memcpy(clauses_state(context->query, WIRE_AGGREGATE_SIGNAL), &value, sizeof value);
}

static int32_t kept_value(const struct query_entry *entry, const struct program_field *field)
{
    int32_t value = INT32_MIN;
    if (has_value(field))
        memcpy(&value, clauses_state(entry, WIRE_AGGREGATE_SIGNAL), sizeof value);
    return value;
}

void events_row(const struct eval_context *context)
{
    struct query_entry *entry = context->query;
    struct program_field field;
    for (uint8_t n = 0; entry_clause(entry, WIRE_AGGREGATE_ACTION, n, &field); n++) {
        int32_t value;
        if (program_compute(&field.code, context, &value))
            (void)command_run(field.format, value);
    }
    if (!(entry->state & ENTRY_RAISED) && entry_clause(entry, WIRE_AGGREGATE_SIGNAL, 0, &field)) {
        keep_value(context, &field);
        untold.raised |= entry_bit(entry);
        event_post(&untold.telling);
    }
    entry->state |= ENTRY_RAISED;
}

/* What it has raised, and found no room, is not told. */
static void signal_close(const struct query_entry *entry)
{
    untold.raised &= (uint8_t)~entry_bit(entry);
}

void events_no_row(struct query_entry *entry) { entry->state &= (uint8_t)~ENTRY_RAISED; }

static uint32_t now_seconds(void) { return time_at(clock_now()).seconds; }

static bool raise(uint16_t number, int32_t value, uint32_t seconds)
{
    const struct wire_settings *mine = settings();
    struct wire_event event = {number, mine->nodeid, mine->x, mine->y, seconds, value};
    if (events_shared(number))
        return net_signal(&event);
    app_event(&event);
    return true;
}

static uint16_t own_number(uint8_t which)
{
    switch (which) {
    case APP_EVENT_BOOT: return WIRE_EVENT_BOOT;
    case APP_EVENT_BATTERY_LOW: return WIRE_EVENT_BATTERY_LOW;
    default: return WIRE_EVENT_BUTTON;
    }
}

/* From the main loop: the flood comes back here at once, and may start the query that raised it. */
static void tell(void)
{
    uint8_t of_queries = untold.raised;
    untold.raised = 0;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        struct program_field field;
        if (!(of_queries & entry_bit(entry)) ||
            !entry_clause(entry, WIRE_AGGREGATE_SIGNAL, 0, &field))
            continue;
        if (!raise(event_of(&field), kept_value(entry, &field), now_seconds()))
            untold.raised |= entry_bit(entry);
    }
    for (uint8_t which = APP_EVENT_BOOT; which <= (uint8_t)APP_EVENT_BUTTON;
         which = (uint8_t)(which << 1)) {
        if (!(untold.own & which))
            continue;
        uint32_t seconds = now_seconds(), up = clock_uptime();
        /* Before network time began is its first second: who asked before that is asked for anew.
         */
        if (which == APP_EVENT_BOOT)
            seconds = seconds > up ? seconds - up : 0;
        bool waits = events_awaited(own_number(which), seconds);
        if (which == APP_EVENT_BOOT && (!time_known() || (!waits && up < BOOT_SECONDS)))
            continue;
        if (!waits || !time_known() || raise(own_number(which), INT32_MIN, seconds))
            untold.own &= (uint8_t)~which;
    }
}

void app_own_event(enum app_own_event which)
{
    untold.own = (uint8_t)(untold.own | which);
    event_post(&untold.telling);
}

void button_pressed(void) { app_own_event(APP_EVENT_BUTTON); }

void events_changed(void)
{
    if (untold.own != 0 || untold.raised != 0)
        event_post(&untold.telling);
}

const IN_FLASH struct clause clause_signal = {WIRE_AGGREGATE_SIGNAL, signal_check, NULL,
                                              signal_size,           NULL,         signal_close};
const IN_FLASH struct clause clause_action = {
    WIRE_AGGREGATE_ACTION, action_check, NULL, NULL, NULL, NULL};
