/* Numbers of query/ that a deployment may tune, or that several of its files share. What a program
 * may hold at most is the protocol's: wire.h. */
#ifndef SKERRY_QUERY_QUERY_CONF_H
#define SKERRY_QUERY_QUERY_CONF_H

/* ---- program/ ---- */
/* Bytes that all queries have together for their programs and their state. 8 queries of 192 bytes
 * each; the gateway plans with the same number (mote_memory.py). Of the IRIS's RAM it is the second
 * largest part: docs/firmware.md. */
#define MEMORY_BYTES 1536
/* Queries refused lately that are remembered: the gateway is told once of each, and neighbours are
 * not asked for it again. */
#define REFUSALS 4

/* ---- queueing/ ---- */
/* Bytes that own rows of queries with a QUEUE clause take at most on a mote with children, a third
 * of the queue, so that there is room for theirs. */
#define OWN_ROWS_BYTES 600
/* Rows that pass a health report which waits. A row that misses its cell is a round late on each
 * level above, and nobody waits for a report: a deep line lost rounds to reports that went first.
 * Reports of a mote that always has rows go as well. */
#define ROWS_BEFORE_REPORT 100

/* ---- events/ ---- */
/* Seconds since the start for which `boot` waits for queries that were asked before it: they may
 * still be on their way to a mote that has just started. */
#define BOOT_SECONDS 600

/* ---- routes/ ---- */
/* Control windows for which a query that does not apply any more is kept: values move back, and
 * rows are still under way. */
#define IDLE_CONTROL_WINDOWS 4
/* Control windows for which less has been below this mote before it announces a smaller range: a
 * mote that moves must first appear under its new parent. */
#define NARROWING_CONTROL_WINDOWS 4
/* Codes. A sampled value is announced again only after it moved by more than this. */
#define VALUE_HYSTERESIS 1
/* Of the 32 cells of a tree those so far apart are near each other: a query asks for a range,
 * mostly for values so far apart together. */
#define NEAR_CELLS 4
/* What a cell that a mote adds below a parent counts in the choice among parents, in units of two
 * codes by which its value and the parent's are apart. */
#define CELL_WEIGHT 6U

/* ---- operators/ ---- */
/* Pairs of rows that a join meets between two looks at what else there is to do. */
#define PAIRS_AT_ONCE 8
/* Bytes of the queue that a join leaves for others' records, more than half of it, and ms for which
 * it waits for the queue to drain. */
#define JOIN_QUEUE_RESERVE 900
#define JOIN_RETRY_MS 500
/* Tuples of an index that wait on a mote for a way to who stores them, seconds after which one that
 * is under way is sent anew from where it is then, and after which one is given up. */
#define INDEX_WAITING 10U
/* Tuples older than their index keeps them that a mote forgets in a round. */
#define INDEX_FORGOTTEN 8
#define INDEX_SECONDS 120
#define INDEX_GIVEN_UP 900
/* Tuples whose zone has changed hands: s after which they are looked for, as all motes know their
 * owners then, and after which that is done again where one did not answer; s for which that is
 * waited for, and how often; rounds for which a record lets rows go first that are inserted; s for
 * which a batch is here and there, in which whoever is asked three times has heard of it, and s for
 * which it is kept behind that, in which a question that was asked before is heard of. Log entries
 * that are looked at between two looks at what else there is to do, ms from one to the next, and
 * those that are looked at in a round in which some are forgotten. Motes that give at once to one,
 * and s of silence after which one has stopped. */
#define GIVING_AFTER 120U
#define GIVING_AGAIN 900U
#define GIVING_AWAITED 150U
#define GIVING_TRIES 3
#define GIVING_POSTPONED 30
#define GIVING_HELD 240U
#define GIVING_HEARD 60U
#define GIVING_AT_ONCE 16
#define GIVING_PAUSE_MS 100
#define GIVING_FORGOTTEN 64
#define TAKING_GIVERS 4
#define TAKING_SILENT 1800U
/* S after the first record of a run for which others are waited for before it is acknowledged, and
 * after which nobody has a way for that. */
#define TAKING_ANSWERED 12U
#define TAKING_UNHEARD 300U
/* Motes that join pairs of one query, where rows go to them by ways; and rows that wait on a mote
 * for ways to them, at most: its own and those that it passes on, or at the root those of all.
 * A way in which nothing has gone for so many of its sender's rounds without a control window, for
 * each second power of its cells, is kept open by an empty row. */
#define MEET_HOSTS 16
#define MEET_SENDING 8U
#define MEET_SENDING_ROOT 10U
#define MEET_KEPT_OPEN 32U
/* Questions about indexes that a mote answers at once, ms between two looks at its queue, and bytes
 * of that that they leave for others' records. */
#define INDEX_QUESTIONS 4
#define INDEX_PAUSE_MS 200
#define INDEX_QUEUE_RESERVE 900
/* Bytes of states by group that one of them puts together: 76 groups of an aggregate, 34 of three.
 * Where there are more they are sent as they are, and begin anew. */
#define INDEX_GROUPS_BYTES 768
/* Questions that motes ask of indexes for which a mote looks at once: all that it may hold. Ms
 * after which one that has found no way for what it found tries again, and ms for which one that
 * has heard of an event waits before it answers a mote that may not have: three control windows, as
 * no network is slow while its motes hold such a question. A flood goes on by twelve hops in them.
 */
#define GATHERINGS WIRE_QUERIES_MAXIMUM
#define GATHER_RETRY_MS 1900
#define GATHER_HEARD_MS 12000
/* Seconds by which rows of several queries are stored out of order at most: sampling takes a while.
 * Clocks step back by less. */
#define DISORDER_SECONDS 2
/* ADPDELTA's threshold grows to so many times the one that was asked for. */
#define ADAPTED_MAXIMUM 64

/* ---- sampling/ ---- */
/* Ticks of 1/32768 s. A timer this early has reached its time: conversions between clocks round. */
#define EPOCHS_EARLY_TICKS 2
/* Longest sleep between looks at network time, in s: clocks 60 ppm apart move less than 2 ms in it,
 * and time_local and timers stay within their bounds. */
#define LOOK_SECONDS 30
/* An epoch that began at most so many ms ago is still sampled: a step of the clock or a busy mote
 * made it late. */
#define LATE_MS 500
/* Seconds for which a finished query is kept, so that its last partial state records are merged. */
#define LINGER_SECONDS 10
/* Ms for which a query that has come waits to be planned, in which the flood that brought it is
 * passed on. Planning takes an AVR 2 ms, in which all who heard that frame were silent, and then
 * spoke at once: with an image a third slower 8 of 19 runs missed a row. */
#define PLANNING_DELAY_MS 20

#endif
