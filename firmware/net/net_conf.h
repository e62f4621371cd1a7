/* Numbers of the network that a deployment may tune or that several files share. Those of one file
 * stand where they are used. bench/network/ measures what they decide: yield, latency, duty cycle.
 */
#ifndef SKERRY_NET_CONF_H
#define SKERRY_NET_CONF_H

#include "kernel/clock.h"

/* ---- control windows ---- */
/* Rounds (of 1 s) from one control window to the next, and in a slow network: a window begins where
 * a round's number divides by these. Powers of two. */
#define CONTROL_EVERY 4
#define CONTROL_SELDOM 16
/* A network is slow, and its windows are CONTROL_SELDOM apart, where all queries have at least this
 * period, in ms, or there are none, and the root's session is older than so many s: motes that
 * start with their root join within it. */
#define SLOW_PERIOD_MS 10000
#define SESSION_YOUNG_SECONDS 150
/* A control window's length, ms: at most, and at least, where nothing is heard. */
#define CONTROL_LONGEST_MS 220
#define CONTROL_SHORTEST_MS 48

/* ---- data slots ---- */
/* Rounds after that of an epoch's rows in which what failed is sent again; afterwards it waits for
 * the next epoch. */
#define FLUSH_ROUNDS 8
/* A child that was silent in so many rounds is taken to have nothing to send, unless each mote has
 * something. */
#define SILENT_ROUNDS 2
/* Frames begin until so long behind their slot, ms: half a cell. */
#define LAST_FRAME_MS (SLOT_CELL_MS / 2)

/* ---- guard times ---- */
/* Clocks may disagree by so much, in ticks: listeners are early and late by it. */
#define GUARD_TIME CLOCK_MS(2)
/* A mote that snoops is early by less, in ticks: where it misses a record it sends its own, and no
 * harm is done. */
#define SNOOP_GUARD_TIME 24

#endif
