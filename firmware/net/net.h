/* The network layer as main sees it. */
#ifndef SKERRY_NET_NET_H
#define SKERRY_NET_NET_H

#include <stdbool.h>

#include "wire.h"

/* Joins the network as the settings say, or begins one as its root. Settings, radio and query must
 * be up. */
void net_init(void);

/* Floods an event, which comes back by app_event. False: not now, but after one of the next
 * app_window. */
bool net_signal(const struct wire_event *event);

#endif
