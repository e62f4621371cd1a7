/* Semantic routing trees: what is known of the values below this mote and around it, and where
 * queries need not go. Source: TinyDB 2005, section 5. A tree is held like a query, whose
 * attributes are the indexed ones; its state lies in the memory of queries.
 *
 * Values are told in codes of a byte. A set of codes is four bytes: two intervals of one attribute,
 * or the extents along two. */
#ifndef SKERRY_QUERY_ROUTES_SRT_H
#define SKERRY_QUERY_ROUTES_SRT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"
#include "query/program/query_table.h"
#include "wire.h"

/* Whether a query applies below this mote, as route_applies (program/installer.h). */
bool srt_below(const struct wire_route *route);
/* Whether this mote has to sample for it: false only where what the tree indexes needs no sensor.
 */
bool srt_samples(const struct wire_route *route);
/* Whether a query may apply to a neighbour, by its place in the table, or below it. */
bool srt_neighbour(uint8_t neighbour, const struct wire_route *route);

#endif
