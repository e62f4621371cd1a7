"""Epochs of several networks as one: network time counts from each root's boot, and no two boot together.

In-network aggregates of equal mote queries in several networks are partial states of one answer. Those of the first network that has
the query keep their epochs; a state of another one goes into the epoch that begins nearest to its own in UTC, at most half a period
away. Roots' crystals drift apart: a pairing of epochs is kept until it is three quarters of a period off, so that the jitter with which
UTC is known does not move it to and fro. It moves by one epoch then, and an epoch may have no state, or two, of that root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skerry.network.network import Network
from skerry.streams.stream import Stream, StreamEpoch

#: How far off a pairing may come to be, in periods.
_OFF = 0.75


class Alignment:
    """``networks``: in the order in which they lead. Not locked."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        #: What is added to an epoch, by leading session, session and period in ms.
        self._shifts: dict[tuple[int, int, int], int] = {}

    def place(self, network: Network, stream: Stream, epoch: int) -> StreamEpoch:
        """Where a partial state of a network's stream belongs."""
        running = {n: same for n in self._networks if (same := running_as(n, stream)) is not None}
        sessions = frozenset(n.session for n in running if n.reachable)
        leading = next(iter(running), network)
        placed, place = stream, epoch
        if leading is not network:
            shifted = epoch + self._shift(leading, network, stream.mote_query.period_ms, epoch)
            if shifted >= 0:
                placed, place = running[leading], shifted
        utc = leading.clock.utc(place * stream.mote_query.period_ms)
        if placed is stream:
            utc = network.clock.utc(epoch * stream.mote_query.period_ms)
        return StreamEpoch(placed, place, utc, network.session, sessions)

    def running(self, stream: Stream) -> list[Network]:
        """The networks that have a part in the epochs of a stream, and whose roots can be heard."""
        return [n for n in self._networks if n.reachable and running_as(n, stream) is not None]

    def begin_ms(self, session: int, stream: Stream, epoch: int) -> int | None:
        """When an epoch of a stream begins, by the network time of a session that has a part in it; None: that is not known."""
        period_ms = stream.mote_query.period_ms
        if session == stream.session:
            return epoch * period_ms
        shift = self._shifts.get((stream.session, session, period_ms))
        return None if shift is None else (epoch - shift) * period_ms

    def _shift(self, leading: Network, network: Network, period_ms: int, epoch: int) -> int:
        key = leading.session, network.session, period_ms
        begins = network.clock.utc(epoch * period_ms)
        then = None if begins is None else leading.clock.network(begins)
        if then is None:
            return self._shifts.get(key, 0)
        exact = then * 1000 / period_ms - epoch
        kept = self._shifts.get(key)
        if kept is None or abs(exact - kept) > _OFF:
            kept = self._shifts[key] = round(exact)
        return kept

    def rows(self) -> list[dict[str, int]]:
        """The pairings of the present sessions, to be kept."""
        present = {network.session for network in self._networks}
        return [
            {"leading_session": leading, "session": own, "period_ms": period_ms, "shift": shift}
            for (leading, own, period_ms), shift in self._shifts.items()
            if {leading, own} <= present
        ]

    def restore(self, rows: Iterable[Mapping[str, int]]) -> None:
        """What :meth:`rows` said."""
        self._shifts = {
            (row["leading_session"], row["session"], row["period_ms"]): row["shift"] for row in rows
        }


def running_as(network: Network, stream: Stream) -> Stream | None:
    """A network's latest stream of the same mote query, one that goes on before one that does not; None: it has none, or no epoch
    of it can be paired with another's."""
    same = [s for s in network.current.values() if s.mote_query == stream.mote_query]
    if not same or not network.clock.known:
        return None
    return max(same, key=lambda s: (s.until_ms is None, s.number))
