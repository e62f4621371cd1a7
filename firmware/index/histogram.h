/* How many tuples there are in which part of all attributes' ranges: counts by bins, the same for
 * each attribute, a byte each. Who plans a query estimates from it; who is off asks more than it
 * needs, and gets the same answer. */
#ifndef SKERRY_INDEX_HISTOGRAM_H
#define SKERRY_INDEX_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "index/box.h"

#define HISTOGRAM_BINS 16
/* A mote has room for so many counts. */
#define HISTOGRAM_MOTE_BYTES 1024
/* The greatest count that there is: 7,864,320. */
#define HISTOGRAM_LAST 0xA7

struct histogram {
    uint8_t attributes, bins;
    /* Bins of the last attribute stand side by side. A count is as it is up to 7, from there on
     * four bits in front of zeros: off by 6.3 % at most. */
    const uint8_t *counts;
};

/* Bytes of so many attributes with so many bins each; 0 where that is none, or too many. */
uint32_t histogram_bytes(uint8_t attributes, uint8_t bins);
/* The most bins that have room in so many bytes. */
uint8_t histogram_bins(uint8_t attributes, uint32_t room);
/* Whether these bytes are a histogram. Nothing else may be given to the others. */
bool histogram_check(const struct histogram *histogram, uint32_t length);

uint32_t histogram_count(uint8_t coded);
uint8_t histogram_coded(uint32_t count);
/* The bin of a point. */
uint8_t histogram_bin(uint8_t bins, uint16_t point);
/* Where a tuple's count stands. */
uint32_t histogram_place(const struct histogram *histogram, const uint16_t *points);
/* Tuples in a box, each bin's evenly over the bin. Attributes that are not in `of` are not asked.
 */
uint32_t histogram_estimate(const struct histogram *histogram, const struct index_box *box,
                            uint8_t of);

#endif
