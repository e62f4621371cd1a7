"""By which ways rows come to the motes that join pairs, and whether motes have room for these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skerry.catalog.catalog import Mote
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import way_cells
from skerry.planner.model.pairing import Pairing
from skerry.sensors.paired_motes import Pair
from skerry_protocol.codes import PairsWay

#: A mote whose rows go by a way, or one that sends others' on, and the mote that joins them.
Way = tuple[int, int]
#: Ways that lead by a mote, and motes to whom it knows the way down, for joins: by board, of 6 and 4, and of 32 each, that there are.
WAYS_ROOM, TRAILS_ROOM = {"iris": 5, "cc2538": 16}, {"iris": 4, "cc2538": 32}

#: Of a way's cells, as a fifth is for what has failed in others; and what sums of rows may be off by.
_USED, _ROUNDED = 4 / 5, 1e-6


def carried_rows(period_ms: int) -> int:
    """Rows of a sample period for which a way has room that no other query uses."""
    return int(way_cells(period_ms / 1000) * _USED)


def rows_by(way: PairsWay, pairs: Iterable[Pair], host: int) -> int:
    """Rows that go by each way to a host in a sample period, where none are passed on: of its own mote, or what the root sends on."""
    return len({s for s, _ in pairs} - {host}) if way is PairsWay.FROM_ROOT else 1


def senders(way: PairsWay, pairs: Iterable[Pair], host: int, root: int) -> set[Way]:
    """By which ways a host's rows come."""
    if way is PairsWay.CLIMB:
        return set()
    if way is PairsWay.FROM_ROOT:
        return {(root, host)} if any(pair != (host, host) for pair in pairs) else set()
    return {(mote, host) for pair in pairs for mote in pair if mote != host}


@dataclass
class Ways:
    """Which ways there are, so that no mote has more than it has room for, and none carries more than its cells; ``loads``: rows of other
    queries in a second."""

    tree_of: Mapping[int, Tree]
    motes: Mapping[int, Mote]
    loads: Mapping[Way, float]
    taken: set[Way] = field(init=False)
    _known: dict[Way, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken = set(self.loads)

    def carries(self, way: Way, rows: int, period_ms: int) -> bool:
        """Whether it has room for so many rows of a sample period, too."""
        most = way_cells(period_ms / 1000) * _USED
        return rows + self.loads.get(way, 0) * period_ms / 1000 <= most + _ROUNDED

    def led(
        self, pairing: Pairing, period_ms: int, pairs: Sequence[Pair], host: int, base: dict[Pair, str]
    ) -> list[Pair]:
        """Those of a host's pairs for whose rows there is room on the way; ``base`` hears of the others."""
        kept: list[Pair] = []
        tree, most = self.tree_of[host], carried_rows(period_ms)
        for pair in pairs:
            ways, rows = (
                senders(pairing.way, [pair], host, tree.root),
                rows_by(pairing.way, (*kept, pair), host),
            )
            if not all(self.carries(way, rows, period_ms) for way in ways):
                base[pair] = f"a way to mote {host} carries {most} rows of all queries in a sample period"
                continue
            more = self.taken | ways
            full = None if more == self.taken else self.full(more)
            if full is not None:
                base[pair] = f"mote {full} has room for no more ways"
                continue
            self.taken = more
            kept.append(pair)
        return kept

    def full(self, ways: Collection[Way]) -> int | None:
        """A mote by which too many of them lead."""
        return min(self._over(ways), default=None)

    def over(self, ways: Iterable[Way]) -> int:
        """For how many of them, and of those that are taken, motes have no room."""
        return sum(self._over(self.taken.union(ways)).values())

    def _over(self, ways: Collection[Way]) -> dict[int, int]:
        """By mote for how many too many."""
        led: dict[int, int] = defaultdict(int)
        found: dict[int, set[int]] = defaultdict(set)
        for way in ways:
            for mote in self._between(way):
                led[mote] += 1
        for host in {host for source, host in ways if self._between((source, host))}:
            for mote in self.tree_of[host].way(host):
                found[mote].add(host)
        over: dict[int, int] = defaultdict(int)
        for mote, count in led.items():
            if count > (room := self._room(WAYS_ROOM, mote)):
                over[mote] += count - room
        for mote, hosts in found.items():
            if len(hosts) > (room := self._room(TRAILS_ROOM, mote)):
                over[mote] += len(hosts) - room
        return over

    def _between(self, way: Way) -> tuple[int, ...]:
        """Motes by which it leads; none: it leads nowhere."""
        found = self._known.get(way)
        if found is None:
            source, host = way
            tree = self.tree_of.get(host)
            there = tree is not None and tree.up(source) is not None and tree.up(host) is not None
            found = self._known[way] = tree.between(source, host) if tree is not None and there else ()
        return found

    def _room(self, by_board: Mapping[str, int], mote: int) -> int:
        board = self.motes[mote].board if mote in self.motes else None
        return by_board.get(board or "", min(by_board.values()))
