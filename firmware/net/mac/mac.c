#include "net/mac/mac.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/mac/mac_conf.h"

/* 802.15.4-2006, 7.5.1.4: unit backoff 20 symbols, exponent 3 to 5, five clear-channel assessments.
 * What opens ways begins with the greatest: many do that in the same window, two hops from each
 * other, where they do not hear each other and repeat what has collided. */
#define UNIT_TICKS 11
#define EXPONENT_MINIMUM 3
#define EXPONENT_MAXIMUM 5
#define ASSESSMENTS 5
/* A repetition may come rounds later; a reused number certainly after that. */
#define SEEN_SECONDS 60
#define SEEN_MINUTES 4
/* Half a byte each for the minute in which a bundle was heard and for what it holds. */
#define SEEN_BITS 4
#define SEEN_MASK ((1U << SEEN_BITS) - 1)

struct mac_counters mac_counters;

static struct {
    struct mac_frame *current; /* on its way; NULL: none */
    mac_handler *handler;      /* of its outcome */
    uint8_t tries_left;        /* transmissions that it has yet, this one too */
    uint8_t busy_count;        /* assessments of this transmission that found the channel busy */
    uint8_t exponent;          /* of its next backoff */
    struct timer backoff;
    uint8_t contention;    /* see CONTENTION_STEP */
    bool own_cell;         /* the next frame is the first in a cell of this mote's own */
    bool with_radio;       /* the radio holds a frame whose outcome is to come */
    bool stale;            /* … of a frame given up since, not of `current` */
    uint8_t next_sequence; /* MAC sequence number of the next frame */
    struct {
        uint16_t source;
        uint8_t sequence;
        uint8_t minute : SEEN_BITS;
        uint8_t check : SEEN_BITS; /* of what it holds */
    } seen[CHILDREN_REMEMBERED];   /* the last bundle of each child, the one heard last first */
} mac;

void mac_init(void)
{
    mac.next_sequence = (uint8_t)random_bits();
    for (uint8_t i = 0; i < CHILDREN_REMEMBERED; i++)
        mac.seen[i].source = WIRE_NO_NODE;
}

void *mac_begin(struct mac_frame *frame, uint16_t destination, uint8_t type)
{
    struct wire_mac_header *header = (struct wire_mac_header *)frame->bytes;
    header->frame_control =
        destination == WIRE_BROADCAST ? WIRE_FRAME_CONTROL_DATA : WIRE_FRAME_CONTROL_DATA_ACK;
    header->sequence = mac.next_sequence++;
    header->pan = settings()->pan;
    header->destination = destination;
    header->source = settings()->nodeid;
    struct wire_header *packet = (struct wire_header *)(header + 1);
    packet->version = WIRE_PROTOCOL_VERSION;
    packet->type = type;
    frame->stamp = RADIO_NO_STAMP;
    return packet + 1;
}

void mac_finish(struct mac_frame *frame, uint8_t body)
{
    frame->length = (uint8_t)(sizeof(struct wire_mac_header) + sizeof(struct wire_header) + body);
}

static void attempt(void)
{
    if (!mac.current)
        return;
    /* The last outcome is still on its way, or a stamped frame missed its tick: neither says that
     * the channel is busy. */
    if (mac.with_radio || !radio_send(mac.current->bytes, mac.current->length, mac.current->stamp))
        timer_after(&mac.backoff, UNIT_TICKS, attempt);
    else
        mac.with_radio = true;
}

static void back_off(void)
{
    timer_after(&mac.backoff, 1 + random_below((uint16_t)(UNIT_TICKS << mac.exponent)), attempt);
}

void mac_cell_begins(void) { mac.own_cell = true; }

uint8_t mac_contention(void) { return mac.contention; }

bool mac_busy(void) { return mac.current != NULL; }

bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done)
{
    if (mac.current || !radio_is_on())
        return false;
    mac.current = frame;
    mac.tries_left = tries;
    mac.handler = done;
    mac.busy_count = 0;
    uint8_t type =
        ((const struct wire_header *)(frame->bytes + sizeof(struct wire_mac_header)))->type;
    mac.exponent =
        type == WIRE_PACKET_BUNDLE || type == WIRE_PACKET_CARRIED
            ? (uint8_t)(EXPONENT_CELL + (mac.own_cell ? 0 : mac.contention / CONTENTION_EXPONENT))
        : type == WIRE_PACKET_WAY_OPEN || type == WIRE_PACKET_WAY_STATE ? EXPONENT_MAXIMUM
                                                                        : EXPONENT_MINIMUM;
    mac.own_cell = false;
    back_off();
    return true;
}

void mac_cancel(void)
{
    timer_stop(&mac.backoff);
    mac.stale = mac.with_radio;
    mac.current = NULL;
}

static void finish(enum radio_outcome outcome)
{
    mac.current = NULL;
    mac.handler(outcome);
}

void radio_sent(enum radio_outcome outcome)
{
    if (outcome == RADIO_SENT || outcome == RADIO_NO_ACK)
        mac_counters.sent++;
    bool given_up = mac.stale || !mac.current;
    mac.with_radio = mac.stale = false;
    if (given_up)
        return;
    if (outcome == RADIO_SENT) {
        if (mac.contention)
            mac.contention--;
        finish(outcome);
        return;
    }
    if (mac.contention <= CONTENTION_MOST - CONTENTION_STEP)
        mac.contention = (uint8_t)(mac.contention + CONTENTION_STEP);
    if (outcome == RADIO_BUSY) {
        if (mac.exponent < EXPONENT_MAXIMUM)
            mac.exponent++;
        if (++mac.busy_count < ASSESSMENTS) {
            back_off();
            return;
        }
    }
    if (mac.tries_left <= 1) {
        finish(outcome);
        return;
    }
    mac.tries_left--;
    mac_counters.repeated++;
    mac.busy_count = 0;
    back_off();
}

/* Of what a bundle holds, so that one that a child sends after a while at another parent, under the
 * number of the last that it sent here, is taken for a repetition in one of 16 cases alone. */
static uint8_t check_of(const uint8_t *body, uint8_t length)
{
    uint8_t check = 0;
    while (length--)
        check = (uint8_t)((check << 1 | check >> 7) ^ *body++);
    return (check ^ check >> SEEN_BITS) & SEEN_MASK;
}

/* True when this bundle of that source was here lately; remembers it otherwise. Only bundles are
 * asked about: a child repeats one to the letter until it is acknowledged, whatever else it sends
 * in between, and everything else may come twice. */
static bool duplicate(uint16_t source, uint8_t sequence, uint8_t check)
{
    uint8_t minute = (uint8_t)(clock_uptime() / SEEN_SECONDS) & SEEN_MASK, i = 0;
    while (i < CHILDREN_REMEMBERED - 1 && mac.seen[i].source != source)
        i++;
    bool again = mac.seen[i].source == source && mac.seen[i].sequence == sequence &&
                 mac.seen[i].check == check &&
                 ((uint8_t)(minute - mac.seen[i].minute) & SEEN_MASK) <= SEEN_MINUTES;
    if (again)
        minute = mac.seen[i].minute;
    /* The source heard last first: of more sources than there is room for, the one that has been
     * silent longest is forgotten. */
    memmove(&mac.seen[1], &mac.seen[0], i * sizeof mac.seen[0]);
    mac.seen[0].source = source;
    mac.seen[0].sequence = sequence;
    mac.seen[0].minute = minute & SEEN_MASK;
    mac.seen[0].check = check & SEEN_MASK;
    return again;
}

void radio_received(const struct radio_frame *frame)
{
    const struct wire_mac_header *header = (const struct wire_mac_header *)frame->psdu;
    const struct wire_header *packet = (const struct wire_header *)(header + 1);
    if (frame->length < sizeof *header + sizeof *packet ||
        (header->frame_control | 0x20) != WIRE_FRAME_CONTROL_DATA_ACK ||
        header->pan != settings()->pan || header->source == WIRE_BROADCAST ||
        packet->version != WIRE_PROTOCOL_VERSION) {
        mac_counters.malformed++;
        return;
    }
    bool unicast = header->destination != WIRE_BROADCAST;
    const uint8_t *body = (const uint8_t *)(packet + 1);
    uint8_t length = (uint8_t)(frame->length - sizeof *header - sizeof *packet);
    if (unicast && header->destination != settings()->nodeid) {
        if (packet->type == WIRE_PACKET_BUNDLE)
            net_overheard(header->source, header->destination, body, length);
    } else if (unicast && packet->type == WIRE_PACKET_BUNDLE &&
               duplicate(header->source, header->sequence, check_of(body, length)))
        net_repeated(header->source, body, length);
    else
        net_packet(frame, header->source, unicast, packet->type, body, length);
}
