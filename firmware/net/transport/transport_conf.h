/* Numbers of net/transport/ that a deployment may tune or that several files share. Those of one
 * file that nobody need touch stand where they are used. */
#ifndef SKERRY_NET_TRANSPORT_CONF_H
#define SKERRY_NET_TRANSPORT_CONF_H

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

/* ---- snooping ---- */
/* Siblings' cells in which a mote listens before its own, at most, … */
#define SNOOP_CELLS 8
/* … and siblings at least: fewer are not worth listening to. Frames that this saves, and what it
 * takes of radios: bench/network/README.md, "Snooping". */
#define SNOOP_SIBLINGS 5

#endif
