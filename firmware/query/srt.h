/* Semantic routing trees: what is known of the values below this mote and around it, and where
 * queries need not go. Source: TinyDB 2005, section 5. A tree is held like a query, whose
 * attributes are the indexed ones; its state lies in the memory of queries.
 *
 * Values are told in codes of a byte. A set of codes is four bytes: two intervals of one attribute,
 * or the extents along two. */
#ifndef SKERRY_QUERY_SRT_H
#define SKERRY_QUERY_SRT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program.h"
#include "query/slots.h"
#include "wire.h"

/* Whether the code of an SRT or a ROUTE is well formed; the attributes of a tree are added to
 * *attributes. */
bool srt_check(const struct program_field *field, uint32_t *attributes);
/* Bytes of a tree's state; 0: the program is none. */
uint16_t srt_size(const struct wire_query_program *program, uint8_t length);
/* Whether the program is a tree, and as many are held as there is room for. */
bool srt_too_many(const struct wire_query_program *program, uint8_t length);
/* A tree has become whole: nothing is known of the neighbours that there are. */
void srt_open(struct slot *slot);

/* The route of a whole program; NULL: it goes everywhere. */
const struct wire_route *srt_route(const struct wire_query_program *program, uint8_t length);
/* Whether a query applies to this mote or below it; true where its tree is not held. */
bool srt_applies(const struct wire_route *route);
/* … below it. */
bool srt_below(const struct wire_route *route);
/* Whether this mote has to sample for it: false only where what the tree indexes needs no sensor.
 */
bool srt_samples(const struct wire_route *route);
/* Whether a query may apply to a neighbour, by its place in the table, or below it. */
bool srt_neighbour(uint8_t neighbour, const struct wire_route *route);

#endif
