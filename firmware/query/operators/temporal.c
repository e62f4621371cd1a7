#include "query/operators/temporal.h"

#include <stddef.h>

#include "lib/random.h"
#include "lib/wide.h"
#include "query/operators/pulse.h"
#include "query/query_conf.h"
#include "wire.h"

#define NOTHING TEMPORAL_NOTHING
/* EXPAVG computes with so many binary places. */
#define EXPAVG_PLACES 16

struct window {
    /* readings in the ring; where the next goes; rows, or epochs, since one was due */
    uint8_t used, next, since;
    int32_t ring[]; /* behind it, of a window of epochs, a struct epochs */
} __attribute__((packed));

enum late { LATE_NONE, LATE_IDLE, LATE_PASSED };

struct epochs {
    uint32_t newest;
    uint8_t idle; /* so many of the newest in the ring did not pass */
    /* The newest epoch came behind one that was missed and in which a row was due. The ring ends
     * with that one until the next epoch, so that the row is about its own window. */
    uint8_t late;
    int32_t late_reading;
} __attribute__((packed));

struct average {
    bool begun;
    int64_t value; /* with EXPAVG_PLACES */
} __attribute__((packed));

struct delta {
    bool begun;
    uint8_t factor; /* ADPDELTA: of the threshold */
    int32_t reported, now;
    bool now_known;
} __attribute__((packed));

static const struct wire_temporal *parameters(const struct program_field *field)
{
    return (const struct wire_temporal *)field->code.bytes;
}

static bool counts_epochs(const struct wire_temporal *p) { return p->power & WIRE_TEMPORAL_EPOCHS; }
static uint8_t power(const struct wire_temporal *p)
{
    return (uint8_t)(p->power & ~WIRE_TEMPORAL_EPOCHS);
}
static uint16_t threshold(const struct wire_temporal *p)
{
    return (uint16_t)(p->window | (uint16_t)p->slide << 8);
}

bool temporal_is(uint8_t aggregate)
{
    return (aggregate >= WIRE_AGGREGATE_WINAVG && aggregate <= WIRE_AGGREGATE_TREND) ||
           pulse_is(aggregate);
}

static bool is_delta(uint8_t aggregate)
{
    return aggregate == WIRE_AGGREGATE_DELTA || aggregate == WIRE_AGGREGATE_ADPDELTA;
}

static bool is_window(uint8_t aggregate)
{
    return temporal_is(aggregate) && !is_delta(aggregate) && aggregate != WIRE_AGGREGATE_EXPAVG;
}

uint16_t temporal_size(const struct program_field *field)
{
    if (!temporal_is(field->aggregate) || field->code.length <= sizeof(struct wire_temporal))
        return 0;
    const struct wire_temporal *p = parameters(field);
    if (power(p) > WIRE_MAXIMUM_POWER || (counts_epochs(p) && !is_window(field->aggregate)))
        return 0;
    if (is_delta(field->aggregate))
        return sizeof(struct delta);
    if (pulse_is(field->aggregate))
        return (p->window | p->slide) != 0 || field->aggregate == WIRE_AGGREGATE_PULSE
                   ? pulse_size()
                   : 0;
    if (field->aggregate == WIRE_AGGREGATE_EXPAVG)
        return p->window >= 1 && p->window <= 15 ? sizeof(struct average) : 0;
    bool fits = p->window >= 1 && p->window <= WIRE_WINDOW_MAXIMUM && p->slide >= 1;
    return fits ? (uint16_t)(sizeof(struct window) + p->window * sizeof(int32_t) +
                             (counts_epochs(p) ? sizeof(struct epochs) : 0))
                : 0;
}

bool temporal_counts_epochs(const struct program_field *field)
{
    return temporal_is(field->aggregate) && counts_epochs(parameters(field));
}

struct program_code temporal_code(const struct program_field *field)
{
    return (struct program_code){field->code.bytes + sizeof(struct wire_temporal),
                                 (uint8_t)(field->code.length - sizeof(struct wire_temporal))};
}

static struct epochs *epochs_of(const struct wire_temporal *p, const struct window *window)
{
    return (struct epochs *)&window->ring[p->window];
}

/* Of a window of epochs: its mote has none of this slide, as it rested for longer than one, or its
 * clock has stepped back. */
static bool begins_anew(const struct wire_temporal *p, const struct window *window, uint32_t epoch)
{
    return window->used == 0 || epoch - epochs_of(p, window)->newest - 1 >= p->slide;
}

/* Where in its slide the next reading lies, from 1 on: a row is due from p->slide on, and beyond it
 * where that epoch was missed. Slides of epochs end at multiples of network time, so that they are
 * the same on all motes. */
static uint16_t position_in_slide(const struct wire_temporal *p, const struct window *window,
                                  uint32_t epoch)
{
    if (!counts_epochs(p))
        return (uint16_t)(window->since + 1);
    if (begins_anew(p, window, epoch))
        return (uint16_t)(epoch % p->slide + 1);
    return (uint16_t)(window->since + (epoch - epochs_of(p, window)->newest));
}

static void put(const struct wire_temporal *p, struct window *window, int32_t reading)
{
    window->ring[window->next] = reading;
    if (++window->next == p->window)
        window->next = 0;
    if (window->used < p->window)
        window->used++;
}

/* An epoch; one that did not pass has no reading. */
static void append(const struct wire_temporal *p, struct window *window, bool passes,
                   int32_t reading)
{
    struct epochs *epochs = epochs_of(p, window);
    put(p, window, reading);
    if (passes)
        epochs->idle = 0;
    else if (epochs->idle < UINT8_MAX)
        epochs->idle++;
}

/* So many missed epochs. */
static void skip(const struct wire_temporal *p, struct window *window, uint32_t missed)
{
    for (uint8_t n = missed < p->window ? (uint8_t)missed : p->window; n > 0; n--)
        append(p, window, false, NOTHING);
}

static void take_epoch(const struct wire_temporal *p, struct window *window, uint32_t epoch,
                       uint16_t position, bool passes, int32_t reading)
{
    struct epochs *epochs = epochs_of(p, window);
    if (epochs->late != LATE_NONE) {
        skip(p, window, window->since - 1U);
        append(p, window, epochs->late == LATE_PASSED, epochs->late_reading);
        epochs->late = LATE_NONE;
    }
    uint32_t missed = window->used == 0 ? 0 : epoch - epochs->newest - 1;
    epochs->newest = epoch;
    bool late = position > p->slide;
    skip(p, window, late ? missed + 1 - (position - p->slide) : missed);
    if (late) {
        epochs->late = passes ? LATE_PASSED : LATE_IDLE;
        epochs->late_reading = reading;
    } else {
        append(p, window, passes, reading);
    }
}

static bool take_window(const struct wire_temporal *p, struct window *window, uint32_t epoch,
                        bool passes, int32_t reading)
{
    uint16_t position = position_in_slide(p, window, epoch);
    if (counts_epochs(p))
        take_epoch(p, window, epoch, position, passes, reading);
    else
        put(p, window, reading);
    bool ends = position >= p->slide;
    window->since = (uint8_t)(ends ? position - p->slide : position);
    /* Of one that began before the mote had the query it does not know all. */
    return ends && (window->used == p->window || !counts_epochs(p));
}

static void take_average(const struct wire_temporal *p, struct average *average, int32_t reading)
{
    int64_t apart = -average->value;
    wide_add(&apart, reading, 1L << EXPAVG_PLACES);
    if (average->begun)
        apart = apart < 0 ? -(-apart >> p->window) : apart >> p->window;
    average->value += apart; /* of the first reading it is all */
    average->begun = true;
}

/* Due when the reading is at least the threshold away from the one last reported, which is that of
 * the last row: other fields of the query may not be due with this one. */
static bool take_delta(const struct program_field *field, struct delta *delta, bool known,
                       int32_t reading)
{
    uint32_t least = threshold(parameters(field));
    if (field->aggregate == WIRE_AGGREGATE_ADPDELTA && delta->factor > 1)
        least *= delta->factor;
    delta->now_known = known;
    delta->now = reading;
    bool due = known && (!delta->begun || wide_distance(reading, delta->reported) >= least);
    if (!due && delta->factor > 1)
        delta->factor /= 2;
    return due;
}

/* The row goes. ADPDELTA doubles its threshold with each report and halves it with each row that is
 * none, down to the one asked for: a signal that never rests does not fill the radio. */
static bool report_delta(struct delta *delta, int32_t *value)
{
    *value = delta->reported = delta->now;
    delta->begun = true;
    if (delta->factor < ADAPTED_MAXIMUM)
        delta->factor = delta->factor == 0 ? 2 : (uint8_t)(delta->factor * 2);
    return delta->now_known;
}

bool temporal_take(const struct program_field *field, uint8_t *state, uint32_t epoch, bool passes,
                   int32_t reading)
{
    bool known = passes && reading != NOTHING;
    const struct wire_temporal *p = parameters(field);
    if (is_delta(field->aggregate))
        return take_delta(field, (struct delta *)state, known, reading);
    if (field->aggregate != WIRE_AGGREGATE_EXPAVG)
        return take_window(p, (struct window *)state, epoch, passes, reading);
    if (known)
        take_average(p, (struct average *)state, reading);
    return true;
}

bool temporal_empty(const struct program_field *field, const uint8_t *state)
{
    const struct window *window = (const struct window *)state;
    return epochs_of(parameters(field), window)->idle >= window->used;
}

/* The i-th oldest reading. */
static int32_t reading_at(const struct wire_temporal *p, const struct window *window, uint8_t i)
{
    /* of a full ring the oldest lies at its `next` */
    int8_t at = (int8_t)(window->next - window->used + i);
    return window->ring[at < 0 ? at + p->window : at];
}

/* Sum and number of the readings that are known. */
static uint8_t sum_of(const struct wire_temporal *p, const struct window *window, int64_t *sum)
{
    uint8_t count = 0;
    *sum = 0;
    for (uint8_t i = 0; i < window->used; i++) {
        int32_t reading = reading_at(p, window, i);
        if (reading == NOTHING)
            continue;
        wide_add(sum, reading, 1);
        count++;
    }
    return count;
}

/* Of the window's newest readings, `count` of them. */
static bool extreme(const struct wire_temporal *p, const struct window *window, uint8_t count,
                    bool largest, int32_t *value)
{
    bool any = false;
    for (uint8_t i = (uint8_t)(window->used - count); i < window->used; i++) {
        int32_t reading = reading_at(p, window, i);
        if (reading == NOTHING || (any && (reading > *value) != largest))
            continue;
        *value = reading;
        any = true;
    }
    return any;
}

bool temporal_changes(const struct program_field *field, const uint8_t *state, uint32_t epoch,
                      int32_t reading)
{
    const struct wire_temporal *p = parameters(field);
    const struct window *window = (const struct window *)state;
    bool largest = field->aggregate == WIRE_AGGREGATE_WINMAX;
    if (!(largest || field->aggregate == WIRE_AGGREGATE_WINMIN) || !counts_epochs(p) ||
        p->slide < p->window)
        return true;
    uint16_t position = position_in_slide(p, window, epoch);
    /* so many of a slide's epochs are in no window */
    uint8_t before = (uint8_t)(p->slide - p->window);
    if (position > p->slide || epochs_of(p, window)->late != LATE_NONE)
        return true; /* the ring does not have what it is to be compared with */
    if (position <= before)
        return false;
    uint8_t since = position == 1 || begins_anew(p, window, epoch) ? 0 : window->since;
    /* of the epochs before it in its window; of the first one the mote may have fewer */
    uint8_t count = since > before ? (uint8_t)(since - before) : 0;
    if (count > window->used)
        count = window->used;
    int32_t best;
    if (reading == NOTHING)
        return epochs_of(p, window)->idle >= count; /* a row, if none passed */
    if (!extreme(p, window, count, largest, &best))
        return true;
    return largest ? reading > best : reading < best;
}

static bool any_of(const struct wire_temporal *p, const struct window *window, uint8_t count,
                   int32_t *value)
{
    if (count == 0)
        return false;
    uint8_t chosen = (uint8_t)random_below(count);
    for (uint8_t i = 0; i < window->used; i++)
        if ((*value = reading_at(p, window, i)) != NOTHING && chosen-- == 0)
            break;
    return true;
}

/* Slope of the least-squares line through the known readings, per row: with x = 0, 1, ... it is
 * (n sum xy - sum x sum y) / (n sum xx - (sum x)^2), or sum cy / sum cx with c = n x - sum x. All
 * sums of 64 readings stay within 64 bits, those without y within 32. */
static void slope(const struct wire_temporal *p, const struct window *window, uint8_t n,
                  int64_t *cy, uint32_t *cx)
{
    int16_t x = 0;
    for (uint8_t i = 0; i < window->used; i++)
        if (reading_at(p, window, i) != NOTHING)
            x += i;
    *cy = 0;
    for (uint8_t i = 0; i < window->used; i++) {
        int32_t reading = reading_at(p, window, i);
        int16_t c = (int16_t)(n * i - x);
        if (reading == NOTHING)
            continue;
        wide_add(cy, reading, c);
        *cx += (uint32_t)((int32_t)c * i);
    }
}

bool temporal_value(const struct program_field *field, uint8_t *state, int32_t *value)
{
    const struct wire_temporal *p = parameters(field);
    const struct window *window = (const struct window *)state;
    const struct average *average = (const struct average *)state;
    int64_t sum = 0;
    uint32_t divisor = 0; /* 0: too few readings are known */
    uint8_t count = 0;
    if (!is_delta(field->aggregate) && field->aggregate != WIRE_AGGREGATE_EXPAVG)
        count = sum_of(p, window, &sum);
    switch (field->aggregate) {
    case WIRE_AGGREGATE_WINAVG: divisor = count; break;
    case WIRE_AGGREGATE_EXPAVG:
        sum = average->value;
        divisor = average->begun ? (uint32_t)1 << EXPAVG_PLACES : 0;
        break;
    case WIRE_AGGREGATE_TREND: slope(p, window, count, &sum, &divisor); break;
    case WIRE_AGGREGATE_WINSUM: return count > 0 && wide_quotient(sum, 0, 1, value);
    case WIRE_AGGREGATE_WINCOUNT: *value = count; return true;
    case WIRE_AGGREGATE_WINMIN:
    case WIRE_AGGREGATE_WINMAX:
        return extreme(p, window, window->used, field->aggregate == WIRE_AGGREGATE_WINMAX, value);
    case WIRE_AGGREGATE_WINRAND: return any_of(p, window, count, value);
    default: /* DELTA, ADPDELTA */ return report_delta((struct delta *)state, value);
    }
    return wide_quotient(sum, power(p), divisor, value) && *value != NOTHING;
}
