#include "index/histogram.h"

#define POINTS 65536U
/* All of something, as shares are told. */
#define WHOLE 32768U

uint32_t histogram_bytes(uint8_t attributes, uint8_t bins)
{
    if (attributes == 0 || attributes > INDEX_ATTRIBUTES || bins == 0 || bins > HISTOGRAM_BINS)
        return 0;
    uint32_t bytes = 1;
    for (uint8_t i = 0; i < attributes; i++)
        bytes *= bins;
    return bytes;
}

uint8_t histogram_bins(uint8_t attributes, uint32_t room)
{
    uint8_t bins = HISTOGRAM_BINS;
    while (bins > 0 && histogram_bytes(attributes, bins) > room)
        bins--;
    return bins;
}

bool histogram_check(const struct histogram *histogram, uint32_t length)
{
    if (length == 0 || histogram_bytes(histogram->attributes, histogram->bins) != length)
        return false;
    for (uint32_t i = 0; i < length; i++)
        if (histogram->counts[i] > HISTOGRAM_LAST)
            return false;
    return true;
}

uint32_t histogram_count(uint8_t coded)
{
    uint8_t exponent = coded >> 3, rest = coded & 7;
    return exponent == 0 ? rest : (uint32_t)(8 + rest) << (exponent - 1);
}

uint8_t histogram_coded(uint32_t count)
{
    if (count < 16)
        return (uint8_t)count;
    if (count >= histogram_count(HISTOGRAM_LAST))
        return HISTOGRAM_LAST;
    uint8_t zeros = 0;
    while (count >> zeros >= 16)
        zeros++;
    /* Rounded; 16 in front of the zeros is 8 in front of one more, and its code the next. */
    uint32_t front = (count + ((uint32_t)1 << zeros >> 1)) >> zeros;
    return (uint8_t)((uint32_t)(zeros + 1) * 8 + front - 8);
}

uint8_t histogram_bin(uint8_t bins, uint16_t point)
{
    return (uint8_t)((uint32_t)point * bins / POINTS);
}

uint32_t histogram_place(const struct histogram *histogram, const uint16_t *points)
{
    uint32_t place = 0;
    for (uint8_t i = 0; i < histogram->attributes; i++)
        place = place * histogram->bins + histogram_bin(histogram->bins, points[i]);
    return place;
}

/* Parts of 32768 of a bin that points from low to high are. */
static uint16_t share(uint8_t bin, uint8_t bins, uint16_t low, uint16_t high)
{
    uint32_t from = (bin * POINTS + bins - 1U) / bins;
    uint32_t end = ((bin + 1U) * POINTS + bins - 1U) / bins;
    uint32_t first = low > from ? low : from, last = high < end - 1 ? high : end - 1;
    if (first > last)
        return 0;
    return (uint16_t)(((last - first + 1) * WHOLE + (end - from) / 2) / (end - from));
}

uint32_t histogram_estimate(const struct histogram *histogram, const struct index_box *box,
                            uint8_t of)
{
    uint8_t attributes = histogram->attributes, bins = histogram->bins, depth = 0;
    uint16_t shares[INDEX_ATTRIBUTES][HISTOGRAM_BINS] = {{0}};
    for (uint8_t i = 0; i < attributes; i++)
        for (uint8_t bin = 0; bin < bins; bin++)
            shares[i][bin] =
                of >> i & 1 ? share(bin, bins, box->low[i], box->high[i]) : (uint16_t)WHOLE;
    /* Of the bins that are chosen so far, from the first attribute on. */
    uint8_t chosen[INDEX_ATTRIBUTES] = {0};
    uint16_t weight[INDEX_ATTRIBUTES + 1] = {WHOLE};
    uint32_t place[INDEX_ATTRIBUTES + 1] = {0};
    uint64_t tuples = 0;
    for (;;) {
        if (chosen[depth] == bins) {
            if (depth == 0)
                break;
            chosen[--depth]++;
            continue;
        }
        uint32_t product = (uint32_t)weight[depth] * shares[depth][chosen[depth]];
        weight[depth + 1] = (uint16_t)((product + WHOLE / 2) / WHOLE);
        place[depth + 1] = place[depth] * bins + chosen[depth];
        if (weight[depth + 1] == 0) {
            chosen[depth]++;
        } else if (depth + 1 == attributes) {
            tuples +=
                (uint64_t)weight[depth + 1] * histogram_count(histogram->counts[place[depth + 1]]);
            chosen[depth]++;
        } else {
            chosen[++depth] = 0;
        }
    }
    tuples = (tuples + WHOLE / 2) / WHOLE;
    return tuples > UINT32_MAX ? UINT32_MAX : (uint32_t)tuples;
}
