#include "net/mac/mac.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"

/* 802.15.4-2006, 7.5.1.4: unit backoff 20 symbols, exponent 3 to 5, five clear-channel assessments.
 */
#define UNIT_TICKS 11
#define EXPONENT_MINIMUM 3
/* In a cell of its own a mote meets few others. */
#define EXPONENT_CELL 1
#define EXPONENT_MAXIMUM 5
/* Contention: what a failed assessment or a missing acknowledgement adds to it, of which an
 * acknowledged frame takes 1; so much more of it is one exponent more at the beginning. */
#define CONTENTION_STEP 4
#define CONTENTION_EXPONENT 8
#define CONTENTION_MOST 31
#define ASSESSMENTS 5
/* Children whose last bundle is remembered. */
#define SEEN 40
/* A repetition may come rounds later; a reused number certainly after that. */
#define SEEN_SECONDS 60
#define SEEN_MINUTES 4

struct mac_counters mac_counters;

static struct mac_frame *current;
static uint8_t tries_left, busy_count, exponent;
static mac_handler *handler;
static struct timer backoff_timer;
static uint8_t contention;
static bool own_cell;
static uint8_t next_sequence;
static struct {
    uint16_t source;
    uint8_t sequence;
    uint8_t minute;
} seen[SEEN];
/* The radio holds a frame whose outcome is to come; `stale`: of a frame given up since, not of
 * `current`. */
static bool with_radio, stale;

void mac_init(void)
{
    next_sequence = (uint8_t)random_bits();
    for (uint8_t i = 0; i < SEEN; i++)
        seen[i].source = WIRE_NO_NODE;
}

void *mac_begin(struct mac_frame *frame, uint16_t destination, uint8_t type)
{
    struct wire_mac_header *header = (struct wire_mac_header *)frame->bytes;
    header->frame_control =
        destination == WIRE_BROADCAST ? WIRE_FRAME_CONTROL_DATA : WIRE_FRAME_CONTROL_DATA_ACK;
    header->sequence = next_sequence++;
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
    if (!current)
        return;
    /* The last outcome is still on its way, or a stamped frame missed its tick: neither says that
     * the channel is busy. */
    if (with_radio || !radio_send(current->bytes, current->length, current->stamp))
        timer_after(&backoff_timer, UNIT_TICKS, attempt);
    else
        with_radio = true;
}

static void back_off(void)
{
    timer_after(&backoff_timer, 1 + random_below((uint16_t)(UNIT_TICKS << exponent)), attempt);
}

void mac_cell_begins(void) { own_cell = true; }

uint8_t mac_contention(void) { return contention; }

bool mac_busy(void) { return current != NULL; }

bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done)
{
    if (current || !radio_is_on())
        return false;
    current = frame;
    tries_left = tries;
    handler = done;
    busy_count = 0;
    exponent =
        ((const struct wire_header *)(frame->bytes + sizeof(struct wire_mac_header)))->type ==
                WIRE_PACKET_BUNDLE
            ? (uint8_t)(EXPONENT_CELL + (own_cell ? 0 : contention / CONTENTION_EXPONENT))
            : EXPONENT_MINIMUM;
    own_cell = false;
    back_off();
    return true;
}

void mac_cancel(void)
{
    timer_stop(&backoff_timer);
    stale = with_radio;
    current = NULL;
}

static void finish(enum radio_outcome outcome)
{
    current = NULL;
    handler(outcome);
}

void radio_sent(enum radio_outcome outcome)
{
    if (outcome == RADIO_SENT || outcome == RADIO_NO_ACK)
        mac_counters.sent++;
    bool given_up = stale || !current;
    with_radio = stale = false;
    if (given_up)
        return;
    if (outcome == RADIO_SENT) {
        if (contention)
            contention--;
        finish(outcome);
        return;
    }
    if (contention <= CONTENTION_MOST - CONTENTION_STEP)
        contention = (uint8_t)(contention + CONTENTION_STEP);
    if (outcome == RADIO_BUSY) {
        if (exponent < EXPONENT_MAXIMUM)
            exponent++;
        if (++busy_count < ASSESSMENTS) {
            back_off();
            return;
        }
    }
    if (tries_left <= 1) {
        finish(outcome);
        return;
    }
    tries_left--;
    mac_counters.repeated++;
    busy_count = 0;
    back_off();
}

/* True when this sequence number of that source was here lately; remembers it otherwise. Only
 * bundles are asked about: a child repeats one until it is acknowledged, whatever else it sends in
 * between, and everything else may come twice. */
static bool duplicate(uint16_t source, uint8_t sequence)
{
    uint8_t minute = (uint8_t)(clock_uptime() / SEEN_SECONDS), i = 0;
    while (i < SEEN - 1 && seen[i].source != source)
        i++;
    bool again = seen[i].source == source && seen[i].sequence == sequence &&
                 (uint8_t)(minute - seen[i].minute) <= SEEN_MINUTES;
    if (again)
        minute = seen[i].minute;
    /* The source heard last first: of more sources than there is room for, the one that has been
     * silent longest is forgotten. */
    memmove(&seen[1], &seen[0], i * sizeof seen[0]);
    seen[0].source = source;
    seen[0].sequence = sequence;
    seen[0].minute = minute;
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
               duplicate(header->source, header->sequence))
        net_repeated(header->source, body, length);
    else
        net_packet(frame, header->source, unicast, packet->type, body, length);
}
