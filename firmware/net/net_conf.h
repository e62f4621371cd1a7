/* Numbers of the network that several of its files share. */
#ifndef SKERRY_NET_CONF_H
#define SKERRY_NET_CONF_H

/* Rounds from one control window to the next, and in a slow network: a window begins where a
 * round's number divides by these. */
#define CONTROL_EVERY 4
#define CONTROL_SELDOM 16

#endif
