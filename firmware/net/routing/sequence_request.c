#include "net/routing/sequence_request.h"

#include "net/routing/routing_ops.h"
#include "wire.h"

/* The request is repeated each so many times that sequence_request_pending is called, as the answer
 * is a beacon, which may be lost. */
#define REPEAT_TURNS 4

static struct {
    uint16_t to;     /* the neighbour that is asked */
    uint8_t after;   /* the root's number than which the answer is to be later */
    uint8_t windows; /* for which it is asked yet; 0: there is no request */
    uint8_t turn;    /* calls of sequence_request_pending since it began */
    bool heard;      /* somebody, perhaps this mote, has asked in this window */
    /* The parent is given up: the mote stays in the tree while it asks for another, so that those
     * below it need not look around. */
    bool for_parent;
} request;

static void send(void) { routing_request_sequence_number(request.to, request.after); }

void sequence_request_start(uint16_t to, uint8_t after, uint8_t windows, bool for_parent)
{
    request.windows = windows;
    request.to = to;
    request.after = after;
    request.turn = 0;
    request.heard = true;
    request.for_parent = for_parent;
    send();
    routing_send_soon();
}

void sequence_request_end(void)
{
    request.windows = 0;
    request.for_parent = false;
    routing_request_sequence_number(WIRE_NO_NODE, 0);
}

void sequence_request_redirect(uint16_t to) { request.to = to; }

bool sequence_request_joins(uint8_t number, uint8_t windows)
{
    if (!request.windows || sequence_is_later(number, request.after))
        return false;
    request.windows = windows;
    return true;
}

void sequence_request_heard(void) { request.heard = true; }

bool sequence_request_pending(void)
{
    if (request.windows && ++request.turn % REPEAT_TURNS == 0) {
        send();
        routing_send_soon();
    }
    return request.heard;
}

bool sequence_request_answered_by(uint8_t number)
{
    return request.windows && sequence_is_later(number, request.after);
}

bool sequence_request_is_for_parent(void) { return request.for_parent; }

bool sequence_request_age(void)
{
    if (request.windows)
        request.windows--;
    request.heard = request.windows;
    if (request.windows)
        send();
    return request.windows;
}
