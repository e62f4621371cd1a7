/* Numbers of routing that a deployment may tune or that several of its files share. Those of one
 * file stand where they are used. */
#ifndef SKERRY_NET_ROUTING_CONF_H
#define SKERRY_NET_ROUTING_CONF_H

/* ---- neighbours ---- */
/* Neighbours that are known, 15 bytes of RAM each: of more, the least worthy gives way
 * (neighbour_worth). */
#define NEIGHBOURS 24
/* Cost of one transmission that always succeeds: costs are sixteenths (Woo et al. 2003: expected
 * transmissions). */
#define COST_UNIT 16

/* ---- beacons ---- */
/* Without news a mote beacons in one control window of so many. */
#define BEACON_EVERY 3

/* ---- parents ---- */
/* A new parent must be better by this much, in sixteenths of a transmission: 1.5 transmissions, so
 * that two that are about as good do not take turns. */
#define SWITCH_GAIN (3 * COST_UNIT / 2)
/* A neighbour that is heard less than this, of 255, is no parent. */
#define HEARD_LEAST 16
/* A link that takes six transmissions and more is worth a way over more hops. */
#define POOR_LINK (6 * COST_UNIT)
/* A parent is dead after so many control windows without a beacon. */
#define DEAD_WINDOWS 15
/* Deeper, in hops, is no tree but a loop counting up. */
#define LEVEL_MAXIMUM 32

/* ---- outside the tree ---- */
/* After so many control windows a mote joins whatever root and session it hears of … */
#define LONELY_WINDOWS 8
/* … and whatever way to the root: numbers of its beacons may have come round, and motes that had
 * their way by this one have left. */
#define ALONE_WINDOWS 100

#endif
