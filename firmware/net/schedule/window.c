#include "net/schedule/window.h"

#include "drivers/radio.h"
#include "net/mac/mac.h"
#include "net/mac/time.h"
#include "net/routing/tree.h"
#include "net/schedule/session.h"
#include "net/transport/queue.h"
#include "net/transport/transport_ops.h"
#include "storage/tidy.h"
#include "wire.h"

/* Bytes of the queue that the records of a frame take: each has two more there than in the frame,
 * and a row takes twelve. */
#define FRAME_ROOM (WIRE_PACKET_MAXIMUM * 7 / 6)
/* Bytes kept for this mote's own records of an epoch, at most. */
#define OWN_ROOM (4 * FRAME_ROOM)

static struct {
    /* Of those that listen, the window that was opened last has the timers. */
    struct timer close;   /* it closes at the latest */
    struct timer look;    /* it is looked at */
    uint8_t open;         /* of enum window */
    uint16_t room_before; /* free bytes of the queue behind the last data slot */
    uint16_t own_records; /* bytes that this mote's own records of an epoch take */
} windows;

void window_open(enum window window) { windows.open = (uint8_t)(windows.open | window); }

void window_close(enum window window) { windows.open = (uint8_t)(windows.open & ~window); }

bool window_is_open(enum window window) { return windows.open & window; }

void window_sleep_if_idle(void)
{
    if (!time_known() || !tree_joined() || windows.open || mac_busy() || session_is_young())
        return;
    radio_off();
}

void window_closes(ticks_t at, timer_handler *close) { timer_start(&windows.close, at, close); }

void window_closes_no_more(void) { timer_stop(&windows.close); }

void window_look(ticks_t at, timer_handler *look) { timer_start(&windows.look, at, look); }

void window_look_after(uint16_t ticks, timer_handler *look)
{
    timer_after(&windows.look, ticks, look);
}

void window_look_not_before(ticks_t at, timer_handler *look)
{
    if (windows.look.running && clock_reached(at, windows.look.due))
        window_look(at, look);
}

void window_look_no_more(void) { timer_stop(&windows.look); }

/* Room for this frame and those that the radio may hold already: what is acknowledged is kept. And
 * for this mote's own records of the next epoch, of which nobody else has a copy: children can
 * wait. */
void window_accept_by_room(void)
{
    radio_accept_unicast(queue_room() >= (1 + RADIO_HELD) * FRAME_ROOM + windows.own_records);
}

/* No more was heard since the last data slot than this mote's own records of an epoch. */
void window_measure_own(void)
{
    uint16_t room = queue_room(),
             bytes = room < windows.room_before ? (uint16_t)(windows.room_before - room) : 0;
    windows.own_records = bytes < OWN_ROOM ? bytes : OWN_ROOM;
}

void window_note_room(void) { windows.room_before = queue_room(); }

bool tidy_allowed(bool urgent)
{
    return !windows.open && !mac_busy() && (urgent || !radio_is_on());
}

void queue_grew(void)
{
    if (windows.open & (WINDOW_RX | WINDOW_TX))
        window_accept_by_room();
}
