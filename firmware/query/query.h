/* Queries of this mote: install, epochs, rows. What net/ calls, and what query/ expects of it. */
#ifndef SKERRY_QUERY_QUERY_H
#define SKERRY_QUERY_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/time.h"
#include "wire.h"

enum query_outcome {
    QUERY_STORED,   /* fragment kept, more expected */
    QUERY_COMPLETE, /* the program is whole and runs */
    QUERY_KNOWN,    /* was whole already */
    QUERY_REFUSED,  /* malformed program or no room; counted */
    QUERY_PASSED,   /* its route leads past this mote: only that is kept */
};

void query_init(void);
/* One QUERY_INSTALL body from net/. */
enum query_outcome query_install(const struct wire_query_install *install, uint8_t length);
/* query 0: all. */
void query_stop(uint8_t query);
/* Ids of the queries held whole, into ids[WIRE_QUERIES_MAXIMUM]; returns how many. */
uint8_t query_list(uint8_t *ids);
/* Ids of all that are known, whole or passed over. */
uint8_t query_known(uint8_t *ids);
/* A struct wire_routed_query for each query known that has a route; bytes, at most
 * QUERY_ROUTES_MAXIMUM. */
#define QUERY_ROUTES_MAXIMUM (WIRE_QUERIES_MAXIMUM * sizeof(struct wire_routed_query))
uint8_t query_routes(uint8_t *entries);
/* What a neighbour says of a query in one: it is kept where nothing is known of the query yet. */
void query_learn(uint16_t version, const struct wire_routed_query *entry);
/* Whether a query goes on from here: false where it applies to none of the children. */
bool query_spreads(uint8_t query);
/* Whether a neighbour, who knows nothing of a query, may need it. */
bool query_concerns(uint8_t query, uint16_t neighbour);
/* Whether a query that was passed over applies here now. */
bool query_wanted(void);
/* A control window begins: what has not applied for several is passed over from now on. */
void query_window(void);
/* Fragment at `offset` of a query held whole, as a QUERY_INSTALL body in `install` (room for
 * WIRE_PACKET_MAXIMUM - 2 bytes), query_version left to the caller; its length, 0 past the end. */
uint8_t query_fragment(uint8_t query, uint8_t offset, struct wire_query_install *install);
/* Network time has become known, or has jumped: plan epochs anew. */
void query_time_changed(void);
/* Time from one row of a query to its next, in ms; UINT32_MAX where it is not held. */
uint32_t query_period(uint8_t query);
/* True when an epoch of any running query whose rows may go begins in network second `second`. */
bool query_epoch_in(uint32_t second);
/* Bytes of a whole partial state record of a query; 0: it is no aggregate that this mote knows. On
 * the air, states at its end that are zero are left out. */
uint8_t query_partial_size(uint8_t query);
/* Merges partial state record `from` of `length` bytes, as it came, into `into`, a whole one of
 * `size` bytes; false, and `into` means nothing, unless they are of the same query, epoch and group
 * and a state holds what both are together: else they go on side by side, and the gateway, whose
 * sums have 64 bits, merges them. */
bool query_merge(struct wire_partial *into, uint8_t size, const struct wire_partial *from,
                 uint8_t length);
/* Whether motes are to withhold partial states of a query that others make superfluous. */
bool query_snoops(uint8_t query);
/* Whether partial state record `own` would leave the answer as it is where `heard` arrives, both as
 * they came; false unless they are of the same query, epoch and group. */
bool query_superfluous(const struct wire_partial *own, uint8_t own_length,
                       const struct wire_partial *heard, uint8_t heard_length);
/* Approximate queries (query/approximate.h). A mote may be silent in this many epochs less one, one
 * after the other. */
#define QUERY_APPROXIMATE_EVERY 8
/* A root keeps children of lower numbers than this: its memory has room for two such queries. */
#define QUERY_APPROXIMATE_NODES 48
bool query_approximates(uint8_t query);
/* Whether two states of an approximate query are of one reading each, within its tolerance of each
 * other, and the own one names no speaker yet. Both as they came. */
bool query_alike(const struct wire_partial *own, uint8_t own_length,
                 const struct wire_partial *heard, uint8_t heard_length);
/* The mote's own state, which waits, names its speaker. */
void query_name(uint8_t query, uint32_t epoch, uint16_t speaker);
/* A child's partial state record has come, at least `length` bytes as they are on the air: so many
 * of them are for the queue, 0: it need not be passed on. */
uint8_t query_child(uint16_t node, const struct wire_partial *state, uint8_t length);
/* The children have sent: what those count for that were silent on purpose is queued. */
void query_fill(void);
/* Rows and partial state records produced since boot. */
uint32_t query_rows(void);
/* Whether this mote has refused a query lately, and neither run it nor stopped any since. */
bool query_was_refused(uint8_t query);
/* An event has come: queries start and stop. */
void query_event(const struct wire_event *event);
/* Programs refused since boot. */
uint16_t query_refused(void);

/* Events that a mote raises by itself, where a query waits for them. */
enum query_own_event {
    QUERY_EVENT_BOOT = 1 << 0,
    QUERY_EVENT_BATTERY_LOW = 1 << 1,
    QUERY_EVENT_BUTTON = 1 << 2
};
void query_own_event(enum query_own_event which);

/* Floods an event, which comes back by query_event. False: not now, but after one of the next
 * query_window. In net/. */
bool net_signal(const struct wire_event *event);
/* Tells the gateway that a query is refused: an enum wire_refusal, and the bytes that are short.
 * Implemented by net/status. */
void net_query_refused(uint8_t query, uint8_t reason, uint16_t missing);

/* Health attributes, from `link` to `dropped`, and `energy`. Implemented by net/status; false:
 * NULL. */
bool net_health(uint8_t attribute, int32_t *value);
/* Attributes that net/ knows: parent, root, level. Implemented by net/tree; false: NULL. */
bool tree_parent(uint16_t *parent);
bool tree_root(uint16_t *root);
bool tree_level(uint8_t *level);

#endif
