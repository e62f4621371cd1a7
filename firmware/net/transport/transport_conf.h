/* Numbers of net/transport/ that a deployment may tune or that several files share. Those of one
 * file that nobody need touch stand where they are used. */
#ifndef SKERRY_NET_TRANSPORT_CONF_H
#define SKERRY_NET_TRANSPORT_CONF_H

#include "board.h"

/* ---- queue ---- */
/* Bytes of records that wait: what the children of a busy mote send in a round, and room for what
 * the radio may hold then. Of the IRIS's RAM it is the largest part: docs/firmware.md. */
#define QUEUE_BYTES 1665

/* ---- uplink ---- */
/* Transmissions of a frame in one attempt: a cell has room for two. A frame that fails waits for
 * the next round, unless the parent is known to go on listening … */
#define UPLINK_TRIES 2
/* … as the root does, and a parent that has just been told that more follows. Then there are so
 * many attempts in a slot. */
#define UPLINK_ATTEMPTS 4

/* ---- dissemination ---- */
/* Commands on their way at once … */
#define COMMANDS 4
/* … and tokens of those that are remembered, of two bytes: a flood's echoes come within two control
 * windows, and a command whose token is forgotten would be executed again. */
#define TOKENS 38
/* Tries of a frame to one neighbour. */
#define UNICAST_TRIES 4
/* Control windows for which a mote is awake more often because it has heard of a newer version: one
 * that nobody holds, as in a forged beacon, is not heard of again. */
#define BEHIND_WINDOWS 32

/* Tokens of floods that motes begin; the gateway numbers its commands from below. */
#define TOKENS_OF_MOTES 0x8000

/* ---- ways from mote to mote ---- */
/* Ways that lead by a mote, trails to motes below it, and bytes of records that wait here to be
 * passed on. */
#define WAYS BOARD_WAYS
#define TRAILS BOARD_TRAILS
#define CARRIED_BYTES BOARD_CARRIED
/* A way has a cell in one round of 2 to this power, at least and at most. */
#define WAY_EVERY_LEAST 2
#define WAY_EVERY_MOST 8
/* Places to which ways that begin at a mote lead, at once. */
#define PLACES 2
/* Ways to places, or by motes that are named, that are led on at once. */
#define LEADS BOARD_LEADS
/* Times that neighbours are asked where they stand, in a window, and windows in which they are,
 * before the way goes on by those that have said so … */
#define POSITION_ASKED 3
#define POSITION_WAITED 2
/* … and control windows, a power of two, after which all are asked again when that is needed. */
#define POSITION_WINDOWS 64
/* Cells in which a record is sent in vain before the way is opened anew from there. */
#define WAY_VAIN 4
/* Control windows in which the mote before is told in vain that a way is lost. */
#define WAY_TRIES 4
/* Control windows in which a way is opened in vain before it is given up. */
#define WAY_WINDOWS 8
/* A way lapses after so many of its rounds in which nothing came or went. */
#define WAY_IDLE 16
/* Rounds of a way to a place after which it is opened anew where nobody has said that it leads
 * there: more than two windows of a slow network; and for which it is kept at least until its first
 * record comes: whoever has several that wait looks for ways for one after the other. */
#define WAY_UNANSWERED 8
#define WAY_UNUSED 6
/* A trail that was not used is forgotten after TRAIL_AGE_MOST times so many control windows, a
 * power of two. */
#define TRAIL_AGES 8
#define TRAIL_AGE_MOST 60

/* ---- snooping ---- */
/* Siblings' cells in which a mote listens before its own, at most, … */
#define SNOOP_CELLS 8
/* … and siblings at least: fewer are not worth listening to. Frames that this saves, and what it
 * takes of radios: bench/network/README.md, "Snooping". */
#define SNOOP_SIBLINGS 5

#endif
