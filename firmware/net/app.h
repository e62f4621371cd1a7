/* What the network needs of the application above it. query/ implements all of this, bound by the
 * linker: net/ includes no header of query/, and the calls cost nothing more than any other. */
#ifndef SKERRY_NET_APP_H
#define SKERRY_NET_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* ---- the set of queries, which dissemination keeps equal on all motes ---- */
enum app_outcome {
    APP_STORED,   /* the fragment is kept, and more are expected */
    APP_COMPLETE, /* the program is whole and runs */
    APP_KNOWN,    /* it was whole already */
    APP_REFUSED,  /* the program is malformed, or there is no room; it is counted */
    APP_PASSED,   /* its route leads past this mote: only that is kept */
};

/* Takes one QUERY_INSTALL body of `length` bytes. */
enum app_outcome app_install(const struct wire_query_install *install, uint8_t length);
/* Ends a query; 0: all of them. */
void app_stop(uint8_t query);
/* Writes the ids of the queries that are held whole into ids[WIRE_QUERIES_MAXIMUM]; returns how
 * many. */
uint8_t app_held(uint8_t *ids);
/* Likewise of all that are known, whole or passed over. */
uint8_t app_known(uint8_t *ids);
/* Writes a struct wire_routed_query for each known query that has a route; returns their bytes, at
 * most APP_ROUTES_MAXIMUM. */
#define APP_ROUTES_MAXIMUM (WIRE_QUERIES_MAXIMUM * sizeof(struct wire_routed_query))
uint8_t app_routes(uint8_t *entries);
/* Keeps what a neighbour says of a query with a route, where nothing is known of the query yet. */
void app_learn(uint16_t version, const struct wire_routed_query *entry);
/* Whether a query goes on from here; false where it applies to none of the children. */
bool app_spreads(uint8_t query);
/* Whether a neighbour, who knows nothing of a query, may need it. */
bool app_concerns(uint8_t query, uint16_t neighbour);
/* Whether a query that was passed over applies here now. */
bool app_wants(void);
/* A control window begins: what has not applied for several is passed over from now on. */
void app_window(void);
/* Writes the fragment at `offset` of a query held whole as a QUERY_INSTALL body into `install`,
 * which has room for WIRE_PACKET_MAXIMUM - 2 bytes, and leaves query_version to the caller; its
 * length, 0 past the end. */
uint8_t app_fragment(uint8_t query, uint8_t offset, struct wire_query_install *install);
/* Whether this mote has refused a query lately, and neither run it nor stopped any since. */
bool app_refused_lately(uint8_t query);

/* ---- time ---- */
/* Network time has become known, or has jumped: epochs are planned anew. */
void app_time_changed(void);
/* From one row of a query to its next, in ms; UINT32_MAX where it is not held. */
uint32_t app_period(uint8_t query);
/* What the epochs of running queries bring whose rows may go, and which begin in network second
 * `second`: nothing, as there are none; rows of some motes, or of none; the same, which are joined
 * with each other, some of them too late with the next epoch's; or of each something. */
enum app_epoch { APP_EPOCH_NONE, APP_EPOCH_SOME, APP_EPOCH_JOINED, APP_EPOCH_ALL };
enum app_epoch app_epoch_in(uint32_t second);

/* ---- partial state records, which are merged on their way ---- */
/* Bytes of a whole partial state record of a query; 0: it is no aggregate that this mote knows. On
 * the air, states at its end that are zero are left out. */
uint8_t app_state_size(uint8_t query);
/* Merges `from`, `length` bytes as they came, into the whole record `into` of `size` bytes. False,
 * and `into` means nothing, unless both are of one query, epoch and group and a state holds what
 * they are together: else they go on side by side, and the gateway, whose sums have 64 bits, merges
 * them. */
bool app_merge(struct wire_partial *into, uint8_t size, const struct wire_partial *from,
               uint8_t length);
/* Whether motes are to withhold partial states of a query that others make superfluous. */
bool app_snoops(uint8_t query);
/* Whether `own` would leave the answer as it is where `heard` arrives, both as they came; false
 * unless they are of one query, epoch and group. */
bool app_superfluous(const struct wire_partial *own, uint8_t own_length,
                     const struct wire_partial *heard, uint8_t heard_length);
/* A child's row has come, `length` bytes as on the air: whether it is to be passed on as it is. */
bool app_child_row(const struct wire_result *row, uint8_t length);
/* A child's record has come, at least `length` bytes as on the air: so many of them are for the
 * queue; 0: it need not be passed on. */
uint8_t app_child_state(uint16_t node, const struct wire_partial *state, uint8_t length);
/* Whether there is more to say in the next rounds, for which the queue has no room yet. */
bool app_expects_more(void);
/* The children have sent: what those count for that were silent on purpose is queued. */
void app_fill_in(void);

/* ---- approximate queries (query/operators/approximate.c) ---- */
/* A mote may be silent in this many epochs less one, one after the other. */
#define APP_APPROXIMATE_EVERY 8
/* A root keeps children of lower numbers than this: its memory has room for two such queries. */
#define APP_APPROXIMATE_NODES 48
bool app_approximates(uint8_t query);
/* Whether two states of an approximate query are of one reading each, within its tolerance of each
 * other, and the own one names no representative yet. Both as they came. */
bool app_alike(const struct wire_partial *own, uint8_t own_length, const struct wire_partial *heard,
               uint8_t heard_length);
/* The mote's own state that waits names another mote as its representative. */
void app_name_representative(uint8_t query, uint32_t epoch, uint16_t representative);

/* ---- semantic routing trees (TinyDB 2005, section 5), whose entries beacons and JOINs carry ----
 */
/* Takes what a beacon or JOIN of a neighbour, by its place in the table, says; `whole`: it tells of
 * all trees that its sender can hold. False: it is malformed, and changes nothing. */
bool app_srt_heard(uint8_t neighbour, const uint8_t *entries, uint8_t length, bool whole);
/* Another mote takes a place of the table of neighbours. */
void app_srt_forget(uint8_t neighbour);
/* Brings what this mote tells of itself up to date, `window`: at the end of a control window; true:
 * it tells of more than before. */
bool app_srt_refresh(bool window);
/* Writes an entry for each tree; their bytes. */
uint8_t app_srt_write(uint8_t *entries);
/* Whether a tree says how to choose among parents, and how badly a neighbour fits by that, 0 best;
 * `parent`: it is the parent already. */
bool app_srt_chooses(void);
uint16_t app_srt_distance(uint8_t neighbour, bool parent);

/* ---- states of questions to indexes, which are put together on their way by boards with
 * BOARD_TUPLES (query/operators/index_states.c) ---- */
/* Bytes by which a record grows that takes another one's states; 0: it cannot, as they are of
 * different questions or malformed. */
uint8_t app_states_more(const struct wire_states *into, uint8_t length,
                        const struct wire_states *from, uint8_t from_length);
/* Puts them together, where there is that room behind the first. */
void app_states_unite(struct wire_states *into, const struct wire_states *from);

/* ---- tuples of indexes, and questions about them (query/operators/indexed.c) ---- */
/* A round begins: what waits for a way to who stores it may go. */
void app_tuples_due(void);
/* What a mote that stores has found of an index's tuples has come, to be gathered. False:
 * malformed, or of no such question. */
bool app_gathered(const uint8_t *record, uint8_t length);
/* Tuples have come to this mote. False: they are malformed, or of no index that it knows. */
bool app_tuple(const uint8_t *record, uint8_t length);
/* Likewise of tuples whose zone has changed hands (query/operators/index_handing.c). Boards with
 * BOARD_TUPLES, as the three that follow. */
void app_handing_due(void);
/* Whether all tuples that it has of an index are this mote's own, by the owners of a revision. */
bool app_tuples_own(uint16_t index, uint8_t *revision);
/* Tuples whose zone this mote owns now have come from the mote that stored them, and what one says
 * of those that this mote has given to it (query/operators/index_giving.c). False: malformed, or of
 * no index that it knows. */
bool app_handed(uint16_t origin, const uint8_t *record, uint8_t length);
bool app_kept(uint16_t origin, const uint8_t *record, uint8_t length);
/* A tuple has got no further than to this mote. */
void app_tuple_lost(const uint8_t *record, uint8_t length);
/* INDEX_ASK or INDEX_DROP. */
void app_index_command(const struct wire_command *command, uint8_t arguments);

/* ---- rows on their way to motes that join them (query/operators/meet_ways.c) ---- */
/* A round begins, or one of its cells is over: what waits for a way to a host may go. */
void app_rows_due(bool begins);
/* A row has come to this mote. False: it is malformed. */
bool app_row(const uint8_t *record, uint8_t length);
/* A row has got no further than to this mote. */
void app_row_lost(const uint8_t *record, uint8_t length);

/* ---- memory that queries do not need (query/program/memory.c) ---- */
/* So many bytes, a multiple of four, zero, in place of what was lent before; NULL: there are not so
 * many. A query that needs them takes them back. */
void *app_borrow(uint16_t bytes);
/* What is lent; NULL: nothing is, or not any more. */
void *app_borrowed(void);
void app_give_back(void);

/* ---- events and health ---- */
/* An event has come: queries start and stop. */
void app_event(const struct wire_event *event);
/* Events that a mote raises by itself, where a query waits for them. */
enum app_own_event {
    APP_EVENT_BOOT = 1 << 0,
    APP_EVENT_BATTERY_LOW = 1 << 1,
    APP_EVENT_BUTTON = 1 << 2,
};
void app_own_event(enum app_own_event which);
/* Rows and partial state records produced, and programs refused, since boot. */
uint32_t app_rows(void);
uint16_t app_refused(void);

#endif
