#include "net/root/serial_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "drivers/serial.h"
#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/cobs.h"
#include "lib/crc.h"
#include "net/app.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/time.h"
#include "net/routing/routing_ops.h"
#include "net/routing/tree.h"
#include "net/schedule/schedule.h"
#include "net/transport/dissemination.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/queue_discipline.h"

static uint8_t *const out = role_frames.link.out, *const in = role_frames.link.in;
static uint8_t out_length, out_sent, in_length;
static bool in_overrun;

/* sequence of the oldest frame unacknowledged, and of the next new one */
static uint8_t base, next;
static uint8_t expected; /* next DATA from the gateway */
static bool connected;   /* the gateway has answered, or asked, since boot */
static bool acknowledge, reset_answer, reset_wanted, reset_sent;
static bool partials_ready;
static uint8_t time_due; /* rounds for which the gateway has not been told the time */
/* From so many on it is told before all else has been sent. */
#define TIME_OVERDUE 2
static uint8_t resend; /* frames base..next-1 from here on go out again */
static struct timer repeat;

static void repeat_all(void);

/* Where a frame's payload is written: a byte behind its place in `out`, as stuffing takes no more.
 */
static uint8_t *const payload_out = role_frames.link.out + 1 + sizeof(struct wire_link_header);

static void transmit(uint8_t kind, uint8_t sequence, uint8_t length)
{
    uint8_t *frame = out + 1;
    frame[0] = kind;
    frame[1] = sequence;
    uint8_t total = (uint8_t)(length + sizeof(struct wire_link_header));
    uint16_t crc = 0;
    for (uint8_t i = 0; i < total; i++)
        crc = crc_xmodem(crc, frame[i]);
    frame[total++] = (uint8_t)(crc >> 8);
    frame[total++] = (uint8_t)crc;
    out_length = cobs_encode(frame, total, out);
    out_sent = 0;
}

static void begin_packet(uint8_t type)
{
    payload_out[0] = WIRE_PROTOCOL_VERSION;
    payload_out[1] = type;
}

static void transmit_hello(uint8_t kind)
{
    struct wire_hello *hello = (struct wire_hello *)(payload_out + sizeof(struct wire_header));
    struct net_time now = time_at(clock_now());
    begin_packet(WIRE_PACKET_HELLO);
    hello->node = settings()->nodeid;
    hello->session = settings()->session;
    hello->seconds = now.seconds;
    hello->ticks = now.ticks;
    hello->query_version = dissemination_version();
    uint8_t count = app_held(hello->queries);
    transmit(kind, 0, (uint8_t)(sizeof(struct wire_header) + sizeof *hello + count));
}

static struct queue_record *fresh(void);

static void transmit_time(void)
{
    struct wire_time *stamp = (struct wire_time *)(payload_out + sizeof(struct wire_header));
    struct net_time now = time_at(clock_now());
    time_due = 0;
    begin_packet(WIRE_PACKET_TIME);
    stamp->seconds = now.seconds;
    stamp->ticks = now.ticks;
    stamp->more = fresh() != NULL;
    transmit(WIRE_FRAME_TIME, 0, sizeof(struct wire_header) + sizeof *stamp);
}

static struct queue_record *in_flight(uint8_t sequence)
{
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record))
        if (record->in_flight && record->sequence == sequence)
            return record;
    return NULL;
}

static void transmit_record(const struct queue_record *record)
{
    uint8_t length = discipline_length(record);
    begin_packet(record->type);
    memcpy(payload_out + sizeof(struct wire_header), record->body, length);
    transmit(WIRE_FRAME_DATA, record->sequence, (uint8_t)(sizeof(struct wire_header) + length));
}

/* Partial state records wait for the round's last slot, so that all children's are merged into
 * them. */
static struct queue_record *fresh(void) { return discipline_next(partials_ready); }

/* Decides what goes out next; false: nothing. */
static bool choose(void)
{
    struct queue_record *record;
    if (reset_answer) {
        reset_answer = false;
        transmit_hello(WIRE_FRAME_RESET_ACK);
    } else if (reset_wanted) {
        reset_wanted = false;
        reset_sent = true;
        transmit_hello(WIRE_FRAME_RESET);
    } else if (acknowledge) {
        acknowledge = false;
        transmit(WIRE_FRAME_ACK, expected, 0);
    } else if (connected && time_due >= TIME_OVERDUE) {
        transmit_time();
    } else if (connected && resend != next && (record = in_flight(resend))) {
        resend++;
        transmit_record(record);
    } else if (connected && (uint8_t)(next - base) < WIRE_LINK_WINDOW && (record = fresh())) {
        discipline_on_transmit(record);
        record->in_flight = true;
        record->sequence = next++;
        resend = next;
        transmit_record(record);
        if (!repeat.running)
            timer_after(&repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    } else if (connected && time_due > 0) {
        transmit_time();
    } else {
        if (!fresh())
            partials_ready = false;
        return false;
    }
    return true;
}

void serial_link_pump(void)
{
    do {
        while (out_sent < out_length && serial_room())
            serial_write(out[out_sent++]);
    } while (out_sent == out_length && choose());
}

/* Without a gateway that answers, only a RESET asks for one. */
static void repeat_all(void)
{
    if (!connected)
        reset_wanted = true;
    resend = base;
    if (!connected || base != next)
        timer_after(&repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    serial_link_pump();
}

static void restart(void)
{
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record))
        if (record->in_flight)
            discipline_on_requeue(record);
    base = next = resend = expected = 0;
    connected = true;
    reset_sent = reset_wanted = false;
}

static void acknowledged(uint8_t upto)
{
    if ((uint8_t)(upto - base) > (uint8_t)(next - base))
        return;
    while (base != upto) {
        struct queue_record *record = in_flight(base++);
        if (record)
            discipline_on_acked(record);
    }
    if ((uint8_t)(resend - base) > (uint8_t)(next - base))
        resend = base;
    timer_stop(&repeat);
    if (base != next)
        timer_after(&repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
}

/* The gateway knows sessions of this root that come after its own, or are of the same name. */
static void session_known(uint8_t payload, const struct wire_session *told)
{
    if (payload != sizeof(struct wire_header) + sizeof *told)
        mac_counters.malformed++;
    else if (told->node == settings()->nodeid &&
             (int16_t)(told->session - settings()->session) >= 0)
        routing_renew_session(told->session);
}

static void frame_received(uint8_t length)
{
    uint16_t crc = 0;
    for (uint8_t i = 0; i < length; i++)
        crc = crc_xmodem(crc, in[i]);
    uint8_t payload = (uint8_t)(length - 4);
    bool versioned = payload >= sizeof(struct wire_header) && in[2] == WIRE_PROTOCOL_VERSION;
    if (length < 4 || crc != 0 || (in[0] != WIRE_FRAME_ACK && !versioned)) {
        mac_counters.malformed++;
        return;
    }
    switch (in[0]) {
    case WIRE_FRAME_DATA:
        if (in[1] == expected) {
            /* The gateway repeats it: by then the commands before it have been flooded. */
            if (in[3] == WIRE_PACKET_COMMAND && !dissemination_command_room())
                break;
            expected++;
            if (in[3] == WIRE_PACKET_SESSION)
                session_known(payload, (const struct wire_session *)(in + 4));
            else if (!net_asked(in[3], in + 4, (uint8_t)(payload - sizeof(struct wire_header)),
                                false))
                mac_counters.malformed++;
        }
        acknowledge = true;
        break;
    case WIRE_FRAME_ACK: acknowledged(in[1]); break;
    case WIRE_FRAME_RESET:
        restart();
        reset_answer = true;
        break;
    /* Of several RESETs the first answer counts: the gateway had all of them before any DATA. */
    case WIRE_FRAME_RESET_ACK:
        if (reset_sent)
            restart();
        break;
    default: mac_counters.malformed++;
    }
}

void serial_ready(void)
{
    int16_t byte;
    while ((byte = serial_read()) >= 0) {
        if (byte == 0) {
            uint8_t length = in_overrun ? 0 : cobs_decode(in, in_length);
            if (length)
                frame_received(length);
            else if (in_length || in_overrun)
                mac_counters.malformed++;
            in_length = 0;
            in_overrun = false;
        } else if (in_length < sizeof role_frames.link.in)
            in[in_length++] = (uint8_t)byte;
        else
            in_overrun = true;
    }
    serial_link_pump();
}

void schedule_round_over(bool data)
{
    partials_ready |= data;
    if (time_due < TIME_OVERDUE)
        time_due++;
    serial_link_pump();
}

void serial_link_init(void)
{
    serial_init();
    reset_wanted = true;
    timer_after(&repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    serial_link_pump();
}
