/* Control windows, in which everybody is awake: beacons, floods, JOINs and questions. */
#ifndef SKERRY_NET_CONTROL_WINDOW_H
#define SKERRY_NET_CONTROL_WINDOW_H

#include <stdbool.h>

/* That of this round begins. */
void control_window_open(void);
void control_window_close(void);
/* A beacon is to go at once, in the window that is open, by whatever clock, or in one of this mote
 * alone: somebody listens who knows no better. */
void control_window_beacon_now(void);
/* There is something to disseminate: it goes in the window that is open, if one is. */
void control_window_send_soon(void);
/* A frame has been heard: the window stays open. */
void control_window_heard(void);
/* A beacon has been heard: its sender may be asked for queries, but the window need not grow. */
void control_window_beacon_heard(void);
/* A frame is through: the next one may go. */
void control_window_next(void);
/* This mote has left the tree, and says so in the windows of its search; `awake`: now as well. */
void control_window_left(bool awake);
/* A session of the root has begun, in place of another one or `again` as the root has restarted:
 * motes that still live in the one before hear of it in their windows. */
void control_window_session(bool again);

#endif
