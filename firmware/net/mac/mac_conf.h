/* Numbers of net/mac/ that a deployment may tune or that several files share. Those of one file
 * that nobody need touch stand where they are used. */
#ifndef SKERRY_NET_MAC_CONF_H
#define SKERRY_NET_MAC_CONF_H

/* ---- slots ---- */
/* Ms. A slot is cells of this length, one for each mote by its number: a frame, its
 * acknowledgement, and both again. What rounds of such cells carry, and where they end:
 * bench/network/README.md, "Slots that follow the network". */
#define SLOT_CELL_MS 8
/* Ms of the round at which the first slot begins: control windows come before, of
 * CONTROL_LONGEST_MS at most (net_conf.h). */
#define SLOTS_BEGIN_MS 250
/* Seconds of a session after which the root measures traffic and makes slots of its own: a network
 * has had time to join. */
#define SLOTS_DECIDED_SECONDS 128

/* ---- backoff ---- */
/* The first backoff in a mote's own cell is drawn from 2 to this power units of 20 symbols;
 * 802.15.4 begins with 3, but in a cell of its own a mote meets few others. */
#define EXPONENT_CELL 1
/* Contention is remembered from frame to frame: what a failed assessment or a missing
 * acknowledgement adds to it, of which an acknowledged frame takes 1 … */
#define CONTENTION_STEP 4
/* … of which so much is one exponent more at the beginning … */
#define CONTENTION_EXPONENT 8
/* … and which grows to this. Rows that arrive of those that are offered, up to far more than the
 * radio carries: bench/network/README.md, "More than the radio carries". */
#define CONTENTION_MOST 31

/* ---- children ---- */
/* Children whose last bundle is remembered, 4 bytes of RAM each: of more, a repetition of the one
 * that has been silent longest counts as new. */
#define CHILDREN_REMEMBERED 40

/* ---- time ---- */
/* Seconds without a stamp after which network time counts as lost: rates a few ppm off add up to
 * 10 ms, of which guard times allow a few. */
#define TIME_LOST_SECONDS 1800L

/* ---- channels ---- */
/* Seconds of a session in which all control windows are on the home channel: motes that start with
 * their root find it as fast as without hopping. */
#define HOME_SECONDS 64

#endif
