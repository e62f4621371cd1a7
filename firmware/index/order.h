/* In which order a query goes through the parts of an index: equation 1 of DIM 2004, with the
 * fan-out.
 *
 * In the first part, the range's zones select tuples; these go to the middle of the range that is
 * asked of the next part, and from there to zones of it, where they meet what is stored there under
 * the same name; in the last part, what is left is gathered in the range's middle. */
#ifndef SKERRY_INDEX_ORDER_H
#define SKERRY_INDEX_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "index/histogram.h"
#include "index/partition.h"

/* Costs are in sixteenths of a transmission, of a byte each. */
#define ORDER_HOP 16U

/* A part of the index that takes part in the query. */
struct order_stop {
    uint8_t attributes; /* a bit for each of the index's that is stored here */
    int32_t x, y;       /* middle of what is asked */
    uint32_t gather;    /* sixteenths of a transmission from its zones to the middle, on average */
    uint32_t spread;    /* … from the middle to all its zones */
    uint16_t owners;    /* motes that are asked, about; 1 at least */
};

/* What travels. */
struct order_load {
    uint16_t hop;     /* cm that a transmission covers, above 0 */
    uint8_t name;     /* bytes of a tuple's name */
    uint8_t value;    /* bytes of a value */
    uint8_t measured; /* a bit for each attribute whose value the answer needs */
    uint8_t state;    /* bytes of a partial state record; 0: matching tuples travel to the end */
};

/* Tuples that match in these stops, by a bit for each stop. */
struct order_counts {
    uint32_t matching[1 << INDEX_ATTRIBUTES];
};

/* How far a box of the part's own attributes lies, which has something in it. `everywhere`: what
 * comes from other parts goes to all zones, so that it need not be sent again when others are
 * asked. */
void order_stop(struct order_stop *stop, const struct index_part *part, uint8_t attributes,
                const struct index_box *box, uint16_t hop, bool everywhere);
/* What the histogram of all the index's attributes says of a box of them. */
void order_count(struct order_counts *counts, const struct order_stop *stops, uint8_t count,
                 const struct histogram *histogram, const struct index_box *box);
/* What an order of the stops costs. */
uint64_t order_cost(const struct order_stop *stops, const uint8_t *order, uint8_t count,
                    const struct order_counts *counts, const struct order_load *load);
/* The cheapest order of all, the first of equals; its cost. */
uint64_t order_best(const struct order_stop *stops, uint8_t count,
                    const struct order_counts *counts, const struct order_load *load,
                    uint8_t *order);

#endif
