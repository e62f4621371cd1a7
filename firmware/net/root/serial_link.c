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
#include "net/transport/command_flood.h"
#include "net/transport/dissemination.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/queue_discipline.h"

static uint8_t *const out = role_frames.link.out, *const in = role_frames.link.in;
/* From so many rounds on, the gateway is told the time before all else has been sent. */
#define TIME_OVERDUE 2

static struct {
    uint8_t out_length, out_sent; /* bytes of `out`, and of them what the UART has */
    uint8_t in_length;            /* bytes of `in` */
    bool in_overrun;              /* … and there were more */
    uint8_t base;                 /* sequence of the oldest frame unacknowledged */
    uint8_t next;                 /* … of the next new one */
    uint8_t resend;               /* frames base..next-1 from here on go out again */
    uint8_t expected;             /* sequence of the next DATA from the gateway */
    bool connected;               /* the gateway has answered, or asked, since boot */
    bool acknowledge;             /* what it has sent is to be acknowledged */
    bool reset_answer;            /* its RESET is to be answered */
    bool reset_wanted;            /* a RESET is to be sent */
    bool reset_sent;              /* … has been, and no answer has come */
    bool partials_ready;          /* the round's children have sent: partial states may go */
    uint8_t time_due;             /* rounds for which the gateway has not been told the time */
    bool polled;                  /* a POLL is to be returned behind what is unacknowledged */
    uint8_t poll;                 /* its number */
    struct timer repeat;          /* of what is not acknowledged */
} serial;

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
    serial.out_length = cobs_encode(frame, total, out);
    serial.out_sent = 0;
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
    serial.time_due = 0;
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
static struct queue_record *fresh(void) { return discipline_next(serial.partials_ready); }

/* Decides what goes out next; false: nothing. */
static bool choose(void)
{
    struct queue_record *record;
    if (serial.reset_answer) {
        serial.reset_answer = false;
        transmit_hello(WIRE_FRAME_RESET_ACK);
    } else if (serial.reset_wanted) {
        serial.reset_wanted = false;
        serial.reset_sent = true;
        transmit_hello(WIRE_FRAME_RESET);
    } else if (serial.acknowledge) {
        serial.acknowledge = false;
        transmit(WIRE_FRAME_ACK, serial.expected, 0);
    } else if (serial.connected && serial.time_due >= TIME_OVERDUE) {
        transmit_time();
    } else if (serial.connected && serial.resend != serial.next &&
               (record = in_flight(serial.resend))) {
        serial.resend++;
        transmit_record(record);
    } else if (serial.polled) {
        serial.polled = false;
        transmit(WIRE_FRAME_POLL, serial.poll, 0);
    } else if (serial.connected && (uint8_t)(serial.next - serial.base) < WIRE_LINK_WINDOW &&
               (record = fresh())) {
        discipline_on_transmit(record);
        record->in_flight = true;
        record->sequence = serial.next++;
        serial.resend = serial.next;
        transmit_record(record);
        if (!serial.repeat.running)
            timer_after(&serial.repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    } else if (serial.connected && serial.time_due > 0) {
        transmit_time();
    } else {
        if (!fresh())
            serial.partials_ready = false;
        return false;
    }
    return true;
}

void serial_link_pump(void)
{
    do {
        while (serial.out_sent < serial.out_length && serial_room())
            serial_write(out[serial.out_sent++]);
    } while (serial.out_sent == serial.out_length && choose());
}

/* Without a gateway that answers, only a RESET asks for one. */
static void repeat_all(void)
{
    if (!serial.connected)
        serial.reset_wanted = true;
    serial.resend = serial.base;
    if (!serial.connected || serial.base != serial.next)
        timer_after(&serial.repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    serial_link_pump();
}

static void restart(void)
{
    for (struct queue_record *record = queue_next(NULL); record; record = queue_next(record))
        if (record->in_flight)
            discipline_on_requeue(record);
    serial.base = serial.next = serial.resend = serial.expected = 0;
    serial.connected = true;
    serial.reset_sent = serial.reset_wanted = false;
}

static void acknowledged(uint8_t upto)
{
    if ((uint8_t)(upto - serial.base) > (uint8_t)(serial.next - serial.base))
        return;
    while (serial.base != upto) {
        struct queue_record *record = in_flight(serial.base++);
        if (record)
            discipline_on_acked(record);
    }
    if ((uint8_t)(serial.resend - serial.base) > (uint8_t)(serial.next - serial.base))
        serial.resend = serial.base;
    timer_stop(&serial.repeat);
    if (serial.base != serial.next)
        timer_after(&serial.repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
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
    bool bare = in[0] == WIRE_FRAME_ACK || in[0] == WIRE_FRAME_POLL;
    if (length < 4 || crc != 0 || (!bare && !versioned)) {
        mac_counters.malformed++;
        return;
    }
    switch (in[0]) {
    case WIRE_FRAME_DATA:
        if (in[1] == serial.expected) {
            /* The gateway repeats it: by then the commands before it have been flooded. */
            if (in[3] == WIRE_PACKET_COMMAND && !command_flood_room())
                break;
            serial.expected++;
            if (in[3] == WIRE_PACKET_SESSION)
                session_known(payload, (const struct wire_session *)(in + 4));
            else if (!net_asked(in[3], in + 4, (uint8_t)(payload - sizeof(struct wire_header)),
                                false))
                mac_counters.malformed++;
        }
        serial.acknowledge = true;
        break;
    case WIRE_FRAME_ACK: acknowledged(in[1]); break;
    /* The gateway repeats it: what it asks for is then on its way. */
    case WIRE_FRAME_POLL:
        if (!serial.polled || serial.poll != in[1])
            serial.resend = serial.base;
        serial.polled = true;
        serial.poll = in[1];
        break;
    case WIRE_FRAME_RESET:
        restart();
        serial.reset_answer = true;
        break;
    /* Of several RESETs the first answer counts: the gateway had all of them before any DATA. */
    case WIRE_FRAME_RESET_ACK:
        if (serial.reset_sent)
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
            uint8_t length = serial.in_overrun ? 0 : cobs_decode(in, serial.in_length);
            if (length)
                frame_received(length);
            else if (serial.in_length || serial.in_overrun)
                mac_counters.malformed++;
            serial.in_length = 0;
            serial.in_overrun = false;
        } else if (serial.in_length < sizeof role_frames.link.in)
            in[serial.in_length++] = (uint8_t)byte;
        else
            serial.in_overrun = true;
    }
    serial_link_pump();
}

void schedule_round_over(bool data)
{
    serial.partials_ready |= data;
    if (serial.time_due < TIME_OVERDUE)
        serial.time_due++;
    serial_link_pump();
}

void serial_link_init(void)
{
    serial_init();
    serial.reset_wanted = true;
    timer_after(&serial.repeat, CLOCK_MS(WIRE_LINK_REPEAT_MS), repeat_all);
    serial_link_pump();
}
