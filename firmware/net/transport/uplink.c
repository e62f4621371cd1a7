#include "net/transport/uplink.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "kernel/timer.h"
#include "lib/random.h"
#include "net/app.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/slot_table.h"
#include "net/routing/parent_loss.h"
#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/queue_discipline.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"
#include "wire.h"

/* Numbers of frames that tell motes apart: a parent knows a repetition by the number of the last
 * frame, and numbers come again after 64. */
#define MEETING 4
/* An attempt begins up to so many ms later than it could, so that it does not collide again with
 * the same mote. */
#define SPREAD_AGAIN 12

/* The one frame that the parent has not acknowledged. It is repeated to the letter, in later rounds
 * too, so that a parent that had it knows it again. */
static struct mac_frame *const frame = &role_frames.uplink;

static struct {
    struct timer pause; /* until the next attempt */
    uint8_t attempts;   /* that failed in this slot, since the last that was acknowledged */
    bool running;       /* this mote's cell has begun, and not all is sent yet */
    bool told_more;     /* the last frame of this slot said that another follows */
    bool refused;       /* the last attempt got no acknowledgement */
    bool under_way;     /* the frame is with the radio, which has not said yet what came of it */
    bool outstanding;   /* the frame has records that the parent has not acknowledged */
    bool doubtful;      /* … and the parent may have it all the same */
    /* It holds partial state records, which count twice where another parent has them as well; of
     * rows and reports the gateway drops one. */
    bool partials;
    bool reports; /* It holds nothing but health reports. */
} uplink;

static void step(void);

bool uplink_doubtful(void) { return uplink.outstanding && uplink.doubtful; }

bool uplink_partials(void) { return uplink.outstanding && uplink.partials; }

bool uplink_outstanding(void) { return uplink.outstanding; }

bool uplink_waiting(void) { return uplink.outstanding || discipline_next(true); }

/* An acknowledgement names the frame's number alone: of two motes that send at once, one would take
 * the other's for its own where both frames had one number. Motes of a level that meet in a cell
 * differ in what is counted here, and so do those whose cells follow each other: what fails goes
 * again when the next cell has begun. */
static uint8_t meeting(void)
{
    uint16_t node = settings()->nodeid, cells = slot_table_cells(tree_own_level());
    return (uint8_t)(node / cells + node % cells) % MEETING;
}

static uint8_t session_bits(void) { return (uint8_t)(tree_session() * WIRE_BUNDLE_SESSION); }

bool uplink_of_session(uint8_t flags)
{
    return ((flags ^ session_bits()) & (uint8_t)-WIRE_BUNDLE_SESSION) == 0;
}

/* A bundle's number is never that of the bundle before, which the frame holds still: a parent that
 * had heard that one, minutes ago even, would take it for a repetition, acknowledge it and lose its
 * records. Otherwise it comes of the count of all frames, so that two motes of one address, whose
 * bundles go at one pace, do not stay at one number and take each other's acknowledgements. */
static struct wire_bundle *begin(void)
{
    uint8_t *number = &((struct wire_mac_header *)frame->bytes)->sequence,
            before = *number / MEETING;
    bool first = frame->length == 0;
    struct wire_bundle *bundle = mac_begin(frame, tree_own_parent(), WIRE_PACKET_BUNDLE);
    if (!first && *number % ((UINT8_MAX + 1) / MEETING) == before)
        ++*number;
    *number = (uint8_t)(*number * MEETING + meeting());
    return bundle;
}

/* Moves as many records as fit from the queue into the frame. */
static void build(void)
{
    struct wire_bundle *bundle = begin();
    uint8_t used = sizeof *bundle;
    struct queue_record *record;
    uplink.reports = true;
    uplink.partials = false;
    while ((record = discipline_next(true))) {
        uint8_t length = discipline_length(record);
        if (used + sizeof(struct wire_record) + length >
            WIRE_PACKET_MAXIMUM - sizeof(struct wire_header))
            break;
        struct wire_record *entry = (struct wire_record *)((uint8_t *)bundle + used);
        *entry = (struct wire_record){.type = record->type, .body_length = length};
        memcpy(entry + 1, record->body, length);
        uplink.reports = uplink.reports && queue_is_report(record->type);
        uplink.partials |=
            record->type == WIRE_PACKET_PARTIAL || record->type == WIRE_PACKET_STATES;
        used = (uint8_t)(used + sizeof *entry + length);
        discipline_on_transmit(record);
        discipline_on_acked(record);
    }
    bundle->flags = (uint8_t)((discipline_next(true) ? WIRE_BUNDLE_PENDING : 0) |
                              (uplink_expects_more() ? WIRE_BUNDLE_LATER : 0) | session_bits());
    mac_finish(frame, used);
    uplink.outstanding = true;
    uplink.doubtful = false;
}

/* Reports under way let rows that have come since go first, too: they are queued again. A parent
 * that had them has them twice, which is no more than the newer of two reports. */
static void rows_first(void)
{
    const struct queue_record *next = discipline_next(true);
    const uint8_t *body =
        frame->bytes + sizeof(struct wire_mac_header) + sizeof(struct wire_header);
    uint8_t length = (uint8_t)(frame->length - sizeof(struct wire_mac_header) -
                               sizeof(struct wire_header)),
            at = sizeof(struct wire_bundle);
    if (!uplink.outstanding || !uplink.reports || !next || queue_is_report(next->type) ||
        frame->length > queue_room())
        return;
    for (const struct wire_record *record; (record = uplink_record(body, length, &at));)
        queue_append(record->type, record + 1, record->body_length);
    uplink.outstanding = false;
}

/* The cell is over: what its last attempt says of the parent. */
static void judge(void)
{
    if (uplink.refused)
        parent_frame_sent(false);
    uplink.refused = false;
}

static void sent(enum radio_outcome outcome)
{
    uplink.under_way = false;
    uplink.refused = outcome == RADIO_NO_ACK;
    uplink.doubtful |= uplink.refused;
    if (outcome == RADIO_SENT) {
        uint8_t flags =
            ((const struct wire_bundle *)(frame->bytes + sizeof(struct wire_mac_header) +
                                          sizeof(struct wire_header)))
                ->flags;
        uplink.outstanding = false;
        uplink.attempts = 0;
        uplink.told_more = flags & WIRE_BUNDLE_PENDING;
        uplink_sent(flags);
        parent_frame_sent(true);
    } else if (++uplink.attempts >= UPLINK_ATTEMPTS ||
               !(uplink.told_more || tree_own_level() == 1)) {
        uplink.running = false;
        uplink_done();
        judge();
        return;
    }
    if (uplink.running)
        timer_after(&uplink.pause,
                    (outcome == RADIO_SENT
                         ? 1
                         : random_between(CLOCK_MS(2), CLOCK_MS(2) + CLOCK_MS(SPREAD_AGAIN))),
                    step);
}

static void step(void)
{
    if (!uplink.running)
        return;
    if (!uplink_waiting() || tree_own_parent() == WIRE_NO_NODE) {
        uplink.running = false;
        uplink_done();
        return;
    }
    rows_first();
    if (!uplink.outstanding)
        build();
    /* The parent may have changed since the frame was built. */
    ((struct wire_mac_header *)frame->bytes)->destination = tree_own_parent();
    uplink.under_way = mac_send(frame, UPLINK_TRIES, sent);
    if (!uplink.under_way)
        timer_after(&uplink.pause, CLOCK_MS(2), step);
}

void uplink_start(void)
{
    uplink.running = true;
    mac_cell_begins();
    uplink.refused = uplink.told_more = false;
    uplink.attempts = 0;
    step();
}

void uplink_stop(void)
{
    if (!uplink.running)
        return;
    uplink.running = false;
    timer_stop(&uplink.pause);
    mac_cancel();
    /* Its acknowledgement may have been on the way when the cell ended: to another parent it would
     * be a second frame. */
    uplink.doubtful |= uplink.under_way;
    /* A frame that is still under way then, slot after slot, has a parent that does not hear it,
     * too. */
    uplink.refused |= uplink.under_way;
    uplink.under_way = false;
    judge();
}

void uplink_forget(void)
{
    uplink.refused = uplink.under_way = false; /* The parent is not to be judged by it. */
    uplink_stop();
    uint8_t end = (uint8_t)(frame->length - sizeof(struct wire_mac_header)),
            at = sizeof(struct wire_header) + sizeof(struct wire_bundle);
    const uint8_t *packet = frame->bytes + sizeof(struct wire_mac_header);
    for (; uplink.outstanding && at < end;
         at = (uint8_t)(at + sizeof(struct wire_record) + packet[at + 1]))
        queue_lost();
    uplink.outstanding = false;
    queue_forget();
}

const struct wire_record *uplink_record(const uint8_t *body, uint8_t length, uint8_t *at)
{
    const struct wire_record *record = (const struct wire_record *)(body + *at);
    if (*at + sizeof *record > length || *at + sizeof *record + record->body_length > length ||
        record->type < WIRE_PACKET_RESULT || record->type > WIRE_PACKET_STATES)
        return NULL;
    *at = (uint8_t)(*at + sizeof *record + record->body_length);
    return record;
}

void uplink_bundle(uint16_t source, const uint8_t *body, uint8_t length)
{
    uint16_t needed = 0;
    for (uint8_t pass = 0; pass < 2; pass++) {
        for (uint8_t at = sizeof(struct wire_bundle); at < length;) {
            const struct wire_record *record = uplink_record(body, length, &at);
            if (!record) {
                mac_counters.malformed++;
                return;
            }
            if (pass == 0)
                needed += (uint16_t)(sizeof(struct queue_record) + record->body_length);
            else {
                if (record->type == WIRE_PACKET_STATUS &&
                    record->body_length >= sizeof(struct wire_status) && tree_is_root())
                    slot_table_mote(((const struct wire_status *)(record + 1))->level);
                const struct wire_partial *partial = (const struct wire_partial *)(record + 1);
                uint8_t kept = record->type == WIRE_PACKET_PARTIAL
                                   ? app_child_state(source, partial, record->body_length)
                                   : record->body_length;
                if (record->type == WIRE_PACKET_RESULT &&
                    !app_child_row((const struct wire_result *)partial, record->body_length))
                    continue;
                if (kept)
                    queue_push(record->type, partial, kept);
            }
        }
        /* The schedule stops acknowledging before this can happen: a last line of defence. */
        if (pass == 0 && needed > queue_room()) {
            queue_lost();
            return;
        }
    }
}
