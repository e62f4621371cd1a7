"""What the types of a description cannot say. Each function raises NetworkError, which names key, value and what would be right."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from skerry_protocol.attributes import BY_NAME, STATICS_MAXIMUM
from skerry_testbed.core import BACKENDS
from skerry_testbed.description import (
    FAULT_ARGUMENTS,
    Bursts,
    Crystals,
    Duration,
    Fault,
    Interference,
    LinkBursts,
    Mote,
    Network,
    NetworkError,
    Query,
    Radio,
)
from skerry_testbed.duration import seconds

PPM_MAXIMUM = 500
#: Shorter than a frame means little: the state at its first byte counts.
BURST_MINIMUM_S, BURST_MAXIMUM_S = 1e-3, 604800.0
_NODE_MAXIMUM = 65533
#: How one begins; what begins otherwise may be a column's heading.
_NUMBER = re.compile(r"[-+.]*\d")


def check_motes(network: Network) -> None:
    """All of them, and that exactly one is the root."""
    ids = [mote.id for mote in network.mote]
    require(bool(ids), "mote", ids, "at least one [[mote]], or positions = a file")
    for mote in network.mote:
        _check_mote(mote, network)
        require(ids.count(mote.id) == 1, "mote.id", mote.id, "each id once")
    roots = [mote.id for mote in network.mote if mote.root]
    require(len(roots) == 1, "root", roots, "exactly one mote with root = true")
    require(
        len(network.attributes) <= STATICS_MAXIMUM and len({*map(str.lower, network.attributes)}) == len(network.attributes),
        "attributes", network.attributes, f"at most {STATICS_MAXIMUM} names, each once",
    )  # fmt: skip
    require(0 <= network.clock_ppm <= PPM_MAXIMUM, "clock_ppm", network.clock_ppm, "0..500")


def _check_mote(mote: Mote, network: Network) -> None:
    key = f"mote {mote.id}"
    require(0 <= mote.id <= _NODE_MAXIMUM, "mote.id", mote.id, f"0..{_NODE_MAXIMUM}")
    for axis in ("x", "y"):
        _metres(f"{key}: {axis}", getattr(mote, axis))
    require(
        mote.board in BACKENDS, f"{key}: board", mote.board, f"a known board: {', '.join(sorted(BACKENDS))}"
    )
    require(1800 <= mote.battery_mv <= 5500, f"{key}: battery_mv", mote.battery_mv, "1800..5500")
    for name in ("room", "floor", "group"):
        low, high = BY_NAME[name].minimum, BY_NAME[name].maximum
        require(
            low <= getattr(mote, name) <= high,
            f"{key}: {name}",
            getattr(mote, name),
            f"{low:.0f}..{high:.0f}",
        )
    for name, value in mote.attributes.items():
        named = ", ".join(network.attributes) or 'none: name them in attributes = ["rack", …] of the network'
        require(name in network.attributes, f"{key}: attributes", name, f"one of the network's: {named}")
        require(abs(value) <= 32767, f"{key}: attributes: {name}", value, "-32767..32767")
    require(abs(mote.clock_ppm or 0.0) <= PPM_MAXIMUM, f"{key}: clock_ppm", mote.clock_ppm, "-500..500")
    if mote.boot is not None:
        duration(f"{key}: boot", mote.boot)
    _increasing(f"{key}: path", [at for at, _, _ in mote.path])
    for at, x, y in mote.path:
        _metres(f"{key}: path", x)
        _metres(f"{key}: path", y)
        start = f"x = {mote.x:g}, y = {mote.y:g} at 0 s, where the mote is then"
        require(seconds(at) > 0 or (x, y) == (mote.x, mote.y), f"{key}: path", [at, x, y], start)
    require(
        not mote.path or network.radio.model != "matrix",
        f"{key}: path",
        mote.path,
        "a radio model with distances; a matrix has none",
    )
    _check_temperature(f"{key}: temperature", mote.temperature)
    require(
        not mote.temperature or network.crystal is not None,
        f"{key}: temperature",
        mote.temperature,
        "a table [crystal] beside it, which says what temperature does",
    )


def _metres(key: str, value: float | None) -> None:
    require(abs(value or 0.0) <= 1e7, key, value, "metres within 1e7")


def _increasing(key: str, times: list[Duration]) -> None:
    moments = [duration(key, at) for at in times]
    require(
        all(a < b for a, b in pairwise(moments)),
        key,
        times,
        "times of which each is later than the one before",
    )


def _check_temperature(key: str, curve: list[tuple[Duration, float]]) -> None:
    _increasing(key, [at for at, _ in curve])
    for _, value in curve:
        require(-55 <= value <= 125, key, value, "°C, -55..125")


def check_crystals(crystal: Crystals | None) -> None:
    """The table [crystal], if there is one."""
    if crystal is None:
        return
    require(-1 <= crystal.parabola <= 0, "crystal.parabola", crystal.parabola, "ppm/°C², -1..0")
    require(-55 <= crystal.turnover <= 125, "crystal.turnover", crystal.turnover, "°C, -55..125")
    if isinstance(crystal.temperature, list):
        key = "crystal.temperature"
        require(bool(crystal.temperature), key, [], "'environment' or [time, °C] pairs")
        _check_temperature(key, crystal.temperature)


def check_radio(network: Network, folder: Path, ids: set[int]) -> None:
    """The table [radio]; reads its file of links."""
    radio = network.radio
    require(11 <= radio.channel <= 26, "radio.channel", radio.channel, "11..26")
    for channel in radio.channels:
        require(11 <= channel <= 26, "radio.channels", channel, "11..26 each; [] to stay on radio.channel")
    require(0 <= radio.pan <= 65534, "radio.pan", radio.pan, "0..65534")
    require(0 < radio.range_m < math.inf, "radio.range_m", radio.range_m, "more than 0")
    require(0 <= radio.reception <= 1, "radio.reception", radio.reception, "0..1")
    require(1 <= radio.exponent <= 10, "radio.exponent", radio.exponent, "1..10 (free space: 2)")
    require(0 <= radio.reference_db <= 150, "radio.reference_db", radio.reference_db, "0..150")
    require(0 <= radio.shadowing_db <= 30, "radio.shadowing_db", radio.shadowing_db, "0..30")
    require(-120 <= radio.noise_dbm <= -20, "radio.noise_dbm", radio.noise_dbm, "-120..-20")
    require(0 <= radio.capture_db <= 30, "radio.capture_db", radio.capture_db, "0..30")
    require(0 <= (radio.asymmetry_db or 0.0) <= 30, "radio.asymmetry_db", radio.asymmetry_db, "0..30")
    _check_bursts(radio, ids)
    if radio.model != "matrix":
        return
    if radio.file is not None:
        radio.links = _matrix(radio.file, folder, ids)
        radio.file = None
    require(bool(radio.links), "radio.links", radio.links, "links, or a file of them, for model = 'matrix'")
    for sender, receiver, probability in radio.links:
        require({sender, receiver} <= ids, "radio.links", (sender, receiver), "ids of motes")
        require(sender != receiver, "radio.links", (sender, receiver), "two motes: none hears itself")
        require(0 <= probability <= 1, "radio.links", probability, "a probability 0..1")
    _once("radio.links", [(sender, receiver) for sender, receiver, _ in radio.links])


def _once(key: str, pairs: list[tuple[int, int]]) -> None:
    twice = [pair for pair, count in Counter(pairs).items() if count > 1]
    require(not twice, key, twice[:1], "each link and direction once")


def _check_bursts(radio: Radio, ids: set[int]) -> None:
    named: list[tuple[str, Bursts | LinkBursts]] = []
    if radio.bursts is not None:
        named.append(("radio.bursts", radio.bursts))
    for link in radio.link_bursts:
        for node in (link.mote, link.to):
            require(node in ids, "radio.link_bursts", node, "ids of motes")
        require(link.mote != link.to, "radio.link_bursts: to", link.to, "another mote than `mote`")
        named.append((f"radio.link_bursts {link.mote} to {link.to}", link))
    _once("radio.link_bursts", [(link.mote, link.to) for link in radio.link_bursts])
    for key, bursts in named:
        for name in ("good", "bad"):
            value = getattr(bursts, name)
            held = duration(f"{key}.{name}", value)
            require(
                BURST_MINIMUM_S <= held <= BURST_MAXIMUM_S, f"{key}.{name}", value, "a mean of 1 ms to a week"
            )
        require(0 <= bursts.reception <= 1, f"{key}.reception", bursts.reception, "0..1")


def check_interference(source: Interference) -> None:
    """One [[interference]]."""
    key = "interference"
    require(source.channel is None or 11 <= source.channel <= 26, f"{key}.channel", source.channel, "11..26")
    placed = [name for name in ("x", "y", "power_dbm") if getattr(source, name) is not None]
    if source.level_dbm is None:
        missing = [name for name in ("x", "y", "power_dbm") if name not in placed]
        require(
            not missing, key, placed, f"x, y and power_dbm, or level_dbm alone; missing: {', '.join(missing)}"
        )
    else:
        require(not placed, f"{key}.level_dbm", source.level_dbm, f"either it or {', '.join(placed)}")
    _metres(f"{key}.x", source.x)
    _metres(f"{key}.y", source.y)
    for name in ("power_dbm", "level_dbm"):
        value = getattr(source, name)
        require(value is None or -150 <= value <= 60, f"{key}.{name}", value, "dBm, -150..60")
    require(0 < source.duty <= 1, f"{key}.duty", source.duty, "more than 0, up to 1")
    burst = duration(f"{key}.burst", source.burst)
    require(BURST_MINIMUM_S <= burst <= BURST_MAXIMUM_S, f"{key}.burst", source.burst, "1 ms to a week")
    begin = duration(f"{key}.begin", source.begin)
    if source.end is not None:
        end = duration(f"{key}.end", source.end)
        require(end > begin, f"{key}.end", source.end, f"a time after begin = {source.begin!r}")


def table_of(key: str, name: str, folder: Path) -> list[tuple[int, str, list[str]]]:
    """A text file's lines and what is in them: number, line and columns, without empty lines and without a heading, which is a first line
    that begins with no number."""
    try:
        lines = (folder / name).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise NetworkError(f"{key} = {name!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise NetworkError(f"{key} = {name!r}: no UTF-8 text: {error.reason} at byte {error.start}") from None
    found = [(number, line, line.split()) for number, line in enumerate(lines, 1) if line.strip()]
    return found[1:] if found and found[0][0] == 1 and not _NUMBER.match(found[0][2][0]) else found


def _matrix(name: str, folder: Path, ids: set[int]) -> list[tuple[int, int, float]]:
    """``sender receiver probability`` lines between known motes. Shorter lines say nothing and are skipped, as is
    a matrix's diagonal: no mote hears itself."""
    found = []
    for number, line, columns in table_of("radio.file", name, folder):
        if len(columns) < 3:
            continue
        try:
            link = int(columns[0]), int(columns[1]), float(columns[2])
        except ValueError:
            raise NetworkError(
                f"{folder / name}:{number}: {line!r}: expected 'sender receiver probability'"
            ) from None
        if link[0] != link[1] and {link[0], link[1]} <= ids:
            found.append(link)
    return found


def check_fault(fault: Fault, network: Network) -> None:
    """One [[fault]]: what its kind needs is there and possible."""
    require(fault.kind in FAULT_ARGUMENTS, "fault: kind", fault.kind, " or ".join(FAULT_ARGUMENTS))
    key, motes = f"fault {fault.kind}", {mote.id: mote for mote in network.mote}
    duration(f"{key}: at", fault.at)
    for name in FAULT_ARGUMENTS[fault.kind]:
        if getattr(fault, name) in (None, []):
            raise NetworkError(f"{key}: {name} is missing; it takes {', '.join(FAULT_ARGUMENTS[fault.kind])}")
    for node in [node for node in (fault.mote, fault.to, *fault.motes) if node is not None]:
        require(node in motes, f"{key}: mote", node, "the id of a mote")
    require(fault.to is None or fault.to != fault.mote, f"{key}: to", fault.to, "another mote than `mote`")
    _metres(f"{key}: x", fault.x)
    _metres(f"{key}: y", fault.y)
    require(abs(fault.ppm or 0.0) <= PPM_MAXIMUM, f"{key}: ppm", fault.ppm, "-500..500")
    require(1 <= fault.bytes <= 100_000, f"{key}: bytes", fault.bytes, "1..100000")
    require(0 < fault.share <= 1, f"{key}: share", fault.share, "more than 0, up to 1")
    duration(f"{key}: within", fault.within)
    if fault.kind == "partition":
        require(
            set(fault.motes) < set(motes),
            f"{key}: motes",
            fault.motes,
            "some of the motes: who is outside hears none of them",
        )
    if fault.kind == "move" and fault.mote is not None:
        right = "a radio model with distances; a matrix has none"
        require(network.radio.model != "matrix", f"{key}: mote", fault.mote, right)
        require(not motes[fault.mote].path, f"{key}: mote", fault.mote, "a mote that has no path")


def check_query(query: Query) -> None:
    """One [[query]]; what its SQL says the gateway checks."""
    require(bool(query.sql.strip()), "query.sql", query.sql, "a query as in SELECT nodeid, temp FROM sensors")
    require(bool(query.user.strip()), "query.user", query.user, "a name")
    at = duration("query.at", query.at)
    if query.until is not None:
        require(
            duration("query.until", query.until) > at,
            "query.until",
            query.until,
            f"a time after at = {query.at!r}",
        )


def never_happens(network: Network, length_s: float) -> list[str]:
    """What a run of this length ends before, a line each: a slip more often than a wish."""
    planned = [(f"fault[{number}], {fault.kind}", fault.at) for number, fault in enumerate(network.fault)]
    planned += [(f"mote {mote.id}: boot", mote.boot) for mote in network.mote if mote.boot is not None]
    planned += [(f"query[{number}]", query.at) for number, query in enumerate(network.query)]
    return [
        f"{key} at {at!r} never happens: the run ends at {length_s:g} s"
        for key, at in planned
        if seconds(at) >= length_s
    ]


def duration(key: str, value: Duration) -> float:
    """In s."""
    try:
        return seconds(value)
    except ValueError as error:
        raise NetworkError(f"{key}: {error}") from None


def require(condition: bool, key: str, value: Any, expected: str) -> None:
    """Raise NetworkError with these words unless the condition holds."""
    if not condition:
        raise NetworkError(f"{key} = {value!r}: expected {expected}")
