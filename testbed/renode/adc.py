# The CC2538's ADC and the analogue sensor board for Renode: a Python peripheral at 0x400D7000. `skerry renode` puts the
# mote's readings before it:
#
#     READINGS = {"temp": [(seconds, SI value or None), ...], ...}   each held until the next; None: the sensor fails
#
# Runs in IronPython; the sensors' outputs are those of testbed/core/analogue.c. Renode 1.15 writes the request's fields
# in lower case, 1.16 with capitals.


def field(name):
    return getattr(request, name if hasattr(request, name) else name[0].upper() + name[1:])


def answer(value):
    if hasattr(request, "value"):
        request.value = value
    else:
        request.Value = value


def reading(attribute, otherwise):
    now = self.GetMachine().ElapsedVirtualTime.TimeElapsed.TotalSeconds
    value = otherwise
    for at, sample in READINGS.get(attribute, []):
        if at > now:
            break
        value = sample
    return value


def supplied():
    # Where nobody knows, as before.
    now = self.GetMachine().ElapsedVirtualTime.TimeElapsed.TotalSeconds
    known = [sample for at, sample in READINGS.get("voltage", []) if at <= now and sample is not None]
    return known[-1] if known else 3.0


def volts(channel, supply):
    if channel == 15:
        return 0.0 if reading("voltage", 3.0) is None else supply / 3.0
    if channel == 2:
        value = reading("temp", 20.0)
        return 0.0 if value is None else 0.424 + 0.00625 * value
    if channel == 4:
        value = reading("humidity", 50.0)
        return 0.0 if value is None else supply * (0.00636 * value + 0.1515)
    if channel == 5:
        value = reading("light", 100.0)
        return 0.0 if value is None else 0.01 + 0.000235 * value
    if channel in (6, 7):
        value = reading("accel_x" if channel == 6 else "accel_y", 0.0)
        return 0.0 if value is None else supply / 2.0 + max(-2.0, min(2.0, value)) * 0.167 * supply / 3.0
    return 0.0


def convert(control):
    supply = supplied()
    reference = supply if control >> 6 else 1.19
    output = min(supply, max(0.0, volts(control & 15, supply)))
    return min(8191, int(output / reference * 8192.0 + 0.5)) << 2


if field("isInit"):
    result = 0
elif field("isRead"):
    answers = {0x00: 0xB3, 0x0C: result & 0xFF, 0x10: result >> 8}
    answer(answers.get(int(field("offset")), 0))
elif int(field("offset")) == 0x08:
    result = convert(int(field("value")))
