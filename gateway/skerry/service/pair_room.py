"""What a mote that joins pairs of one query has room for: rows in windows, rows that wait to be joined, and rows that wait for ways."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skerry.joins.placement.plans import needed
from skerry.planner.model.pairing import Pairing, delay, host_bytes, sending_bytes
from skerry.sensors.paired_motes import Pair
from skerry.service.pair_ways import Ways
from skerry_protocol.codes import PairsWay

#: A mote's places are counted in a byte.
_ROWS_MAXIMUM = 255
#: Motes that join pairs of one query whose rows go to them by ways.
HOSTS_MAXIMUM = 16


def rows_of(pairing: Pairing, period_ms: int, pairs: Sequence[Pair]) -> int:
    """That a host of these pairs keeps: those in windows, by role, and those that wait."""
    roles = {("s", s) for s, _ in pairs} | {("t", t) for _, t in pairs}
    waiting = delay(period_ms, pairing.way) + 2 + pairing.epochs
    return len(roles) * pairing.rows + len({mote for pair in pairs for mote in pair}) * waiting


@dataclass(frozen=True)
class Room:
    """``room``: bytes that a host has for rows."""

    pairing: Pairing
    period_ms: int
    room: int

    def over(self, pairs: Sequence[Pair], *, passes_on: bool = False) -> int:
        """Of a host of these pairs: rows for which there is none. ``passes_on``: rows of others wait there for ways, too."""
        rows, waiting = rows_of(self.pairing, self.period_ms, pairs), 0
        if self.pairing.way is PairsWay.SENT:
            epochs = delay(self.period_ms, self.pairing.way)
            waiting = sending_bytes(self.pairing.width, epochs, passes_on=passes_on)
        most = (self.room - waiting - host_bytes(0, self.pairing.width)) // self._row
        return max(0, rows - min(most, _ROWS_MAXIMUM))

    @property
    def _row(self) -> int:
        return host_bytes(1, self.pairing.width) - host_bytes(0, self.pairing.width)

    def fitting(self, pairs: Sequence[Pair], host: int) -> list[Pair]:
        """Those for whose rows a host has room: without the motes that are in fewest of them."""
        kept = list(pairs)
        while kept and self.over(kept):
            count = Counter(mote for pair in kept for mote in pair if mote != host)
            least = min(count, key=lambda mote: (count[mote], -mote), default=host)
            kept = [pair for pair in kept if least not in pair]
        return kept

    def over_all(self, places: Mapping[Pair, int], root: int, ways: Ways) -> int:
        """For how many rows, ways and hosts motes have no room; pairs at the root are the gateway's."""
        hosts: dict[int, list[Pair]] = defaultdict(list)
        for pair, host in places.items():
            if host != root:
                hosts[host].append(pair)
        rows = sum(self.over(pairs) for pairs in hosts.values())
        sent = needed({pair: host for pair, host in places.items() if host != root})
        return rows + ways.over(sent) + max(0, len(hosts) - HOSTS_MAXIMUM)
