#include "join/summary.h"

#include <string.h>

#define BINS 16
#define BIN_LAST 15
#define WIDTH_LAST 12
/* A Bloom filter is asked for each of so many values; of more it says that there may be one. */
#define ASKED_ONE_BY_ONE 16
#define HASHES 3

bool summary_shape_check(const struct summary_shape *shape)
{
    return shape->kind >= SUMMARY_INTERVAL && shape->kind <= SUMMARY_HISTOGRAM &&
           shape->width <= WIDTH_LAST;
}

bool summary_ask_check(const struct summary_shape *shape, const struct summary_ask *ask)
{
    return ask->low.x <= ask->high.x && (shape->kind != SUMMARY_BOX || ask->low.y <= ask->high.y);
}

/* Intervals lie one behind the other: low and high, the low byte first. */
static int16_t end_of(const struct summary *summary, uint8_t place)
{
    const uint8_t *bytes = &summary->bytes[place * 2U];
    return (int16_t)(bytes[0] | (uint16_t)bytes[1] << 8);
}

static void end_set(struct summary *summary, uint8_t place, int16_t value)
{
    summary->bytes[place * 2U] = (uint8_t)value;
    summary->bytes[place * 2U + 1] = (uint8_t)((uint16_t)value >> 8);
}

/* An interval has one axis, a box two. */
static uint8_t axes_of(const struct summary_shape *shape)
{
    return shape->kind == SUMMARY_BOX ? 2 : shape->kind == SUMMARY_INTERVAL ? 1 : 0;
}

static void widen(struct summary *summary, uint8_t axis, int16_t low, int16_t high)
{
    uint8_t place = (uint8_t)(axis * 2);
    if (low < end_of(summary, place))
        end_set(summary, place, low);
    if (high > end_of(summary, (uint8_t)(place + 1)))
        end_set(summary, (uint8_t)(place + 1), high);
}

static int16_t on_axis(const struct summary_value *value, uint8_t axis)
{
    return axis ? value->y : value->x;
}

/* Fibonacci hashing: the upper bits of a product, six for each hash. */
static uint8_t bloom_bit(int16_t value, uint8_t hash)
{
    uint32_t product = (uint32_t)(uint16_t)value * 0x9E3779B1U;
    return (uint8_t)(product >> (26 - 6 * hash) & 63);
}

static bool bloom_has(const struct summary *summary, int16_t value)
{
    for (uint8_t hash = 0; hash < HASHES; hash++) {
        uint8_t bit = bloom_bit(value, hash);
        if (!(summary->bytes[bit / 8] >> (bit % 8) & 1))
            return false;
    }
    return true;
}

/* The ends of a histogram take what lies beyond them. */
static uint8_t bin_of(const struct summary_shape *shape, int16_t value)
{
    int32_t bin = ((int32_t)value - shape->low) / ((int32_t)1 << shape->width);
    return value < shape->low ? 0 : bin >= BINS ? BINS - 1 : (uint8_t)bin;
}

static uint8_t bin_get(const struct summary *summary, uint8_t bin)
{
    return summary->bytes[bin / 2] >> (bin % 2 * 4) & BIN_LAST;
}

static void bin_raise(struct summary *summary, uint8_t bin, uint8_t by)
{
    uint8_t count = (uint8_t)(bin_get(summary, bin) + by), shift = (uint8_t)(bin % 2 * 4);
    if (count > BIN_LAST)
        count = BIN_LAST;
    summary->bytes[bin / 2] =
        (uint8_t)((summary->bytes[bin / 2] & ~(BIN_LAST << shift)) | count << shift);
}

void summary_clear(const struct summary_shape *shape, struct summary *summary)
{
    memset(summary, 0, sizeof *summary);
    for (uint8_t axis = 0; axis < axes_of(shape); axis++) {
        end_set(summary, (uint8_t)(axis * 2), INT16_MAX);
        end_set(summary, (uint8_t)(axis * 2 + 1), INT16_MIN);
    }
}

void summary_fill(const struct summary_shape *shape, struct summary *summary)
{
    memset(summary, 0xFF, sizeof *summary);
    for (uint8_t axis = 0; axis < axes_of(shape); axis++) {
        end_set(summary, (uint8_t)(axis * 2), INT16_MIN);
        end_set(summary, (uint8_t)(axis * 2 + 1), INT16_MAX);
    }
}

void summary_add(const struct summary_shape *shape, struct summary *summary,
                 const struct summary_value *value)
{
    for (uint8_t axis = 0; axis < axes_of(shape); axis++)
        widen(summary, axis, on_axis(value, axis), on_axis(value, axis));
    if (shape->kind == SUMMARY_BLOOM) {
        for (uint8_t hash = 0; hash < HASHES; hash++) {
            uint8_t bit = bloom_bit(value->x, hash);
            summary->bytes[bit / 8] = (uint8_t)(summary->bytes[bit / 8] | 1 << bit % 8);
        }
    }
    if (shape->kind == SUMMARY_HISTOGRAM)
        bin_raise(summary, bin_of(shape, value->x), 1);
}

void summary_merge(const struct summary_shape *shape, struct summary *summary,
                   const struct summary *other)
{
    for (uint8_t axis = 0; axis < axes_of(shape); axis++)
        widen(summary, axis, end_of(other, (uint8_t)(axis * 2)),
              end_of(other, (uint8_t)(axis * 2 + 1)));
    for (uint8_t i = 0; shape->kind == SUMMARY_BLOOM && i < SUMMARY_BYTES; i++)
        summary->bytes[i] |= other->bytes[i];
    for (uint8_t bin = 0; shape->kind == SUMMARY_HISTOGRAM && bin < BINS; bin++)
        bin_raise(summary, bin, bin_get(other, bin));
}

static bool bloom_may(const struct summary *summary, const struct summary_ask *ask)
{
    int32_t value = ask->low.x;
    if (ask->high.x - value >= ASKED_ONE_BY_ONE)
        return summary->bytes[0] != 0 ||
               memcmp(summary->bytes, summary->bytes + 1, SUMMARY_BYTES - 1) != 0;
    for (; value <= ask->high.x; value++)
        if (bloom_has(summary, (int16_t)value))
            return true;
    return false;
}

bool summary_may(const struct summary_shape *shape, const struct summary *summary,
                 const struct summary_ask *ask)
{
    if (shape->kind == SUMMARY_BLOOM)
        return bloom_may(summary, ask);
    if (shape->kind == SUMMARY_HISTOGRAM)
        return summary_count(shape, summary, ask) != 0;
    for (uint8_t axis = 0; axis < axes_of(shape); axis++) {
        int16_t low = end_of(summary, (uint8_t)(axis * 2));
        int16_t high = end_of(summary, (uint8_t)(axis * 2 + 1));
        if (low > high || low > on_axis(&ask->high, axis) || high < on_axis(&ask->low, axis))
            return false;
    }
    return true;
}

bool summary_asked(const struct summary_shape *shape, const struct summary_value *value,
                   const struct summary_ask *ask)
{
    return value->x >= ask->low.x && value->x <= ask->high.x &&
           (shape->kind != SUMMARY_BOX || (value->y >= ask->low.y && value->y <= ask->high.y));
}

uint8_t summary_count(const struct summary_shape *shape, const struct summary *summary,
                      const struct summary_ask *ask)
{
    uint8_t count = 0;
    if (shape->kind != SUMMARY_HISTOGRAM)
        return 0;
    for (uint8_t bin = bin_of(shape, ask->low.x); bin <= bin_of(shape, ask->high.x); bin++)
        count = (uint8_t)(count + bin_get(summary, bin));
    return count;
}
