/* Fuzzes what reaches index/ from outside: histograms, boxes, positions, codes of motes.
 *
 * fuzz INPUTS SEED; built with AddressSanitizer and UndefinedBehaviorSanitizer, which end it at the
 * first fault. Histograms lie in a heap block of their exact size, so that a count too far is seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/order.h"
#include "tests/fuzz.h"

/* Often at the ends of its type. */
static int32_t number(void)
{
    static const int32_t ends[] = {INT32_MIN, INT32_MAX, -1, 0, 1};
    return below(4) ? (int32_t)random_number() >> below(32) : ends[below(5)];
}

static void random_box(struct index_box *box, uint8_t attributes)
{
    index_box_all(box, attributes);
    for (uint8_t i = 0; i < attributes; i++) {
        struct index_range range = {number(), number()};
        if (range.low <= range.high)
            (void)index_box_limit(box, i, &range, number(), number());
        if (below(8) == 0)
            box->low[i] = (uint16_t)random_number(); /* what nothing can match, too */
    }
}

static uint32_t histograms, accepted, fields, cut, plans;

static void forge(void)
{
    struct histogram histogram = {(uint8_t)below(9), (uint8_t)below(20), NULL};
    uint32_t length = histogram_bytes(histogram.attributes, histogram.bins);
    if (below(4) == 0 || length > HISTOGRAM_MOTE_BYTES)
        length = below(HISTOGRAM_MOTE_BYTES + 1);
    uint8_t *counts = malloc(length ? length : 1);
    if (!counts)
        abort();
    bool valid = below(2);
    for (uint32_t i = 0; i < length; i++)
        counts[i] = (uint8_t)below(valid ? HISTOGRAM_LAST + 1 : 256);
    histogram.counts = counts;
    histograms++;
    if (histogram_check(&histogram, length)) {
        struct index_box box;
        random_box(&box, histogram.attributes);
        uint32_t some = histogram_estimate(&histogram, &box, (uint8_t)random_number());
        if (some > histogram_estimate(&histogram, &box, 0) + 1)
            abort(); /* more than there are */
        accepted++;
    }
    free(counts);
}

static void divide(void)
{
    struct index_position positions[40];
    struct index_part parts[INDEX_ATTRIBUTES];
    struct zone_field field = {number(), number(), number(), number()};
    uint8_t weights[INDEX_ATTRIBUTES + 1], count = (uint8_t)below(INDEX_ATTRIBUTES + 2);
    uint16_t motes = (uint16_t)below(41);
    uint32_t width = (uint32_t)field.right - (uint32_t)field.left + 1;
    uint32_t height = (uint32_t)field.top - (uint32_t)field.bottom + 1;
    if (field.left > field.right || field.bottom > field.top)
        return;
    for (uint16_t i = 0; i < motes; i++) {
        uint32_t x = random_number(), y = below(2) ? random_number() : 0;
        positions[i].x = (int32_t)((uint32_t)field.left + (width ? x % width : x));
        positions[i].y = (int32_t)((uint32_t)field.bottom + (height ? y % height : y));
    }
    for (uint8_t i = 0; i < sizeof weights; i++)
        weights[i] = (uint8_t)(1 + below(255));
    fields++;
    if (!index_partition(&field, positions, motes, weights, count, parts))
        return;
    cut++;
    struct order_stop stops[INDEX_ATTRIBUTES];
    struct order_counts counts;
    struct order_load load = {(uint16_t)(1 + below(65535)), (uint8_t)below(256),
                              (uint8_t)below(256), (uint8_t)below(64), (uint8_t)below(20)};
    for (uint8_t i = 0; i < count; i++) {
        struct index_box box;
        uint8_t attributes = (uint8_t)(1 + below(INDEX_ATTRIBUTES));
        random_box(&box, attributes);
        order_stop(&stops[i], &parts[i], (uint8_t)(1 << i), &box, load.hop, below(2));
    }
    for (uint8_t i = 0; i < 1 << INDEX_ATTRIBUTES; i++)
        counts.matching[i] = random_number() >> below(32);
    uint8_t order[INDEX_ATTRIBUTES], seen = 0;
    uint64_t cost = order_best(stops, count, &counts, &load, order);
    for (uint8_t i = 0; i < count; i++)
        seen |= (uint8_t)(1 << order[i]);
    if (seen != (1 << count) - 1 || cost != order_cost(stops, order, count, &counts, &load))
        abort();
    plans++;
}

int main(int arguments, char **values)
{
    if (arguments != 3)
        return 2;
    uint32_t inputs = (uint32_t)strtoul(values[1], NULL, 10);
    fuzz_seed(strtoull(values[2], NULL, 10));
    for (uint32_t i = 0; i < inputs; i++)
        if (below(2))
            forge();
        else
            divide();
    printf("histograms %u/%u fields %u/%u plans %u\n", accepted, histograms, cut, fields, plans);
    return 0;
}
