#include "query/operators/pulse.h"

#include "wire.h"

struct pulse {
    /* epochs for which the condition has been true without a break, the present one included */
    int32_t on;
    /* PULSE: length of the one that ended in this epoch, 0: none did; PULSES: of those that ended
     * in the window */
    int32_t value;
    uint32_t end; /* PULSES: first epoch behind the window */
} __attribute__((packed));

bool pulse_is(uint8_t aggregate)
{
    return aggregate == WIRE_AGGREGATE_PULSE || aggregate == WIRE_AGGREGATE_PULSES;
}

uint8_t pulse_size(void) { return sizeof(struct pulse); }

/* Windows lie at multiples of their length, so that they are the same ones on all motes, and at the
 * gateway where it counts pulses. */
static bool take_count(const struct program_field *field, struct pulse *pulse, uint32_t epoch,
                       bool ended)
{
    const struct wire_temporal *p = (const struct wire_temporal *)field->code.bytes;
    uint16_t length = (uint16_t)(p->window | (uint16_t)p->slide << 8);
    if (epoch >= pulse->end) {
        pulse->end = epoch - epoch % length + length;
        pulse->value = 0;
    }
    pulse->value += ended;
    return epoch + 1 == pulse->end && pulse->value > 0;
}

bool pulse_take(const struct program_field *field, uint8_t *state, uint32_t epoch, bool on)
{
    struct pulse *pulse = (struct pulse *)state;
    int32_t length = pulse->on;
    bool ended = !on && length > 0;
    pulse->on = on ? length + 1 : 0; /* epochs end before 32 bits do */
    if (field->aggregate == WIRE_AGGREGATE_PULSES)
        return take_count(field, pulse, epoch, ended);
    pulse->value = ended ? length : 0;
    return ended;
}

bool pulse_value(const struct program_field *field, const uint8_t *state, int32_t *value)
{
    *value = ((const struct pulse *)state)->value;
    return field->aggregate == WIRE_AGGREGATE_PULSES || *value > 0;
}
