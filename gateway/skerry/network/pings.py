"""Records that one mote sends another to see whether and how they arrive."""

from __future__ import annotations

import dataclasses
import struct
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from skerry.sql.errors import QueryError
from skerry_protocol.codes import CommandStatus, Outcome
from skerry_protocol.limits import BROADCAST, NO_NODE, PLACE_MAXIMUM, TICKS_PER_SECOND
from skerry_protocol.ways import Ping

#: Pings whose outcome is remembered.
REMEMBERED = 1000
#: How long one may be under way, in s: motes reckon with 16 bits.
LONGEST_S = 3600

#: Bytes of one that no mote has had yet.
_SHORTEST = len(Ping.build({"carries": 0, "token": 0, "seconds": 0, "ticks": 0, "way": b""}))

#: A path vector may have, in a command.
VECTOR_BYTES = 16

_SAID = {
    Outcome.ARRIVED: "arrived",
    Outcome.NO_WAY: "no way",
    Outcome.LATE: "late",
    Outcome.NO_ROOM: "no room",
}


@dataclasses.dataclass
class Pinged:
    """One that was asked for.

    ``to``: None, whoever stands nearest to the ``place``, in m; with both, the mote by where it stands. ``by``: the motes that it is to
    lead by, the last one ``to``. ``outcome``: None as long as nothing was heard of it. ``way``: the motes that have had it, in order, as
    far as it had room for their numbers.
    """

    token: int
    mote: int
    to: int | None
    within_s: int
    place: tuple[float, float] | None = None
    by: list[int] = dataclasses.field(default_factory=list)
    outcome: str | None = None
    hops: int | None = None
    took_s: float | None = None
    way: list[int] = dataclasses.field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)


def check(
    mote: int, to: int | None, within_s: int, place: tuple[float, float] | None, by: Sequence[int] = ()
) -> None:
    """Raises QueryError."""
    for node in (mote, to, *by):
        if node is not None and not 0 <= node < BROADCAST:
            raise QueryError(f"{node} is no mote", f"motes are 0 to {BROADCAST - 1}")
    if mote == to:
        raise QueryError(f"mote {mote} has no way to itself", "name two motes")
    if by and (place is not None or to not in (None, by[-1])):
        raise QueryError("a way by motes that are named ends at the last of them", "leave mote and place out")
    if by and (by[0] == mote or any(one == other for one, other in pairwise(by))):
        raise QueryError(f"no mote of {', '.join(map(str, by))} sends to itself", "name each once in a row")
    if len(vector(mote, by)) > VECTOR_BYTES:
        raise QueryError(
            f"{len(by)} motes are too many to name", f"their differences have {VECTOR_BYTES} bytes"
        )
    if to is None and place is None and not by:
        raise QueryError(f"mote {mote} is to ping nobody", "say to which mote, or to which place")
    if place is not None and not all(abs(part) <= PLACE_MAXIMUM / 10 for part in place):
        most = f"{PLACE_MAXIMUM / 10:g}"
        raise QueryError(
            f"place {place[0]:g}, {place[1]:g} is too far away", f"x and y are -{most} to {most} m"
        )
    if not 1 <= within_s <= LONGEST_S:
        raise QueryError(f"a ping cannot be under way for {within_s} s", f"it is 1 to {LONGEST_S} s")


def vector(mote: int, by: Sequence[int]) -> bytes:
    """A path vector: each mote by its difference to the one before."""
    found = bytearray()
    for one, other in pairwise((mote, *by)):
        difference = (other - one + 0x8000) % 0x10000 - 0x8000
        rest = 2 * difference if difference >= 0 else -2 * difference - 1
        while rest > 0x7F:
            found.append(rest & 0x7F | 0x80)
            rest >>= 7
        found.append(rest)
    return bytes(found)


def arguments(pinged: Pinged) -> bytes:
    """Those of a PING_TO, or a PING_BY."""
    fixed = struct.pack("<HH", NO_NODE if pinged.to is None else pinged.to, pinged.within_s)
    if pinged.by:
        return fixed + vector(pinged.mote, pinged.by)
    if pinged.place is None:
        return fixed
    return fixed + struct.pack("<ii", *(round(part * 100) for part in pinged.place))


class Pings:
    """The latest ones by token. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_token: OrderedDict[int, Pinged] = OrderedDict()

    def add(self, pinged: Pinged) -> None:
        """One that is asked for now."""
        self._by_token.pop(pinged.token, None)
        self._by_token[pinged.token] = pinged
        if len(self._by_token) > REMEMBERED:
            self._by_token.popitem(last=False)

    def find(self, token: int) -> Pinged | None:
        """One of them."""
        return self._by_token.get(token)

    def answer(self, node: int, token: int, status: int) -> None:
        """A COMMAND_ACK: the mote's firmware may be older than PING_TO."""
        pinged = self._by_token.get(token)
        if pinged is not None and pinged.mote == node and status != CommandStatus.DONE:
            pinged.outcome = pinged.outcome or "the mote's firmware knows no ping"

    def arrival(self, body: Any) -> None:
        """An ARRIVAL. Those of pings that nobody remembers change nothing."""
        if len(body.ping) < _SHORTEST:
            return
        ping = Ping.parse(body.ping)
        pinged = self._by_token.get(ping.token)
        if pinged is None or pinged.mote != body.source or pinged.outcome == _SAID[Outcome.ARRIVED]:
            return
        if body.outcome not in _SAID:
            return
        pinged.outcome = _SAID[Outcome(body.outcome)]
        if body.outcome != Outcome.ARRIVED:
            return
        pinged.hops = body.hops
        ticks = (body.seconds - ping.seconds) * TICKS_PER_SECOND + body.ticks - ping.ticks
        pinged.took_s = round(ticks / TICKS_PER_SECOND, 3)
        passed = [node for (node,) in struct.iter_unpack("<H", ping.way[: len(ping.way) // 2 * 2])]
        pinged.way = [pinged.mote, *passed, body.node]
