#include "net/transport/join_packet.h"

#include "net/app.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/parent_loss.h"
#include "net/routing/tree.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

static struct {
    uint16_t parent; /* that has not acknowledged one yet; WIRE_NO_NODE: none */
    bool due;        /* in this window it is to go (again) */
    bool holds_data; /* rows wait until the parent knows of this mote */
    uint16_t asked;  /* the neighbour that is asked for a number; WIRE_NO_NODE: none */
    uint8_t after;   /* the number than which a later one is asked for */
} join = {.parent = WIRE_NO_NODE, .asked = WIRE_NO_NODE};

void join_packet_tell(uint16_t parent, bool again)
{
    if (join.parent == parent)
        return;
    join.parent = parent;
    join.holds_data = !again;
    join.due = parent != WIRE_NO_NODE;
}

void join_packet_again(void) { join.due = join.parent != WIRE_NO_NODE; }

bool join_packet_holds_data(void) { return join.parent != WIRE_NO_NODE && join.holds_data; }

void join_packet_ask(uint16_t node, uint8_t after)
{
    join.asked = node;
    join.after = after;
}

bool join_packet_waits(void) { return join.due || join.asked != WIRE_NO_NODE; }

static void told(enum radio_outcome outcome)
{
    if (((const struct wire_mac_header *)control_frame.bytes)->destination == join.parent) {
        if (outcome == RADIO_SENT)
            join.parent = WIRE_NO_NODE;
        if (outcome == RADIO_SENT || outcome == RADIO_NO_ACK)
            parent_join_sent(outcome == RADIO_SENT);
    }
    dissemination_sent();
}

static void asked(enum radio_outcome outcome)
{
    (void)outcome;
    dissemination_sent();
}

bool join_packet_send(void)
{
    if (!join_packet_waits())
        return false;
    bool tells = join.due;
    uint16_t to = tells ? join.parent : join.asked;
    uint8_t length = sizeof(struct wire_join);
    struct wire_join *packet = mac_begin(&control_frame, to, WIRE_PACKET_JOIN);
    packet->session = tree_session();
    if (tells) {
        packet->level = tree_own_level();
        packet->root_sequence = 0;
        length = (uint8_t)(length + app_srt_write((uint8_t *)packet->srts));
        join.due = false;
    } else {
        packet->level = WIRE_NO_LEVEL;
        packet->root_sequence = join.after;
        join.asked = WIRE_NO_NODE;
    }
    mac_finish(&control_frame, length);
    return mac_send(&control_frame, UNICAST_TRIES, tells ? told : asked);
}
