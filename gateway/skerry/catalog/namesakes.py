"""Which addresses two motes of a network have: they say so where they hear each other, and else their reports tell."""

from __future__ import annotations

from typing import NamedTuple

#: What has told nothing of two for so long, in s of network time, is over: motes that hear each other say so each few minutes at least,
#: and each reports twice in that time.
OVER_S = 1200.0
#: Reports whose factory number is not that of the one before, so many in a row to and fro: one mote took another's place but once.
CHANGES = 3


class _Two(NamedTuple):
    factories: tuple[int, int]
    told: float


class Namesakes:
    """By short address. Times are UTC in s."""

    def __init__(self) -> None:
        self._told: dict[int, _Two] = {}
        #: Factory numbers of an address's reports, of several in a row of one the first.
        self._reported: dict[int, list[int]] = {}

    def report(self, nodeid: int, factory: int, now: float) -> None:
        """A mote's own report."""
        seen = self._reported.setdefault(nodeid, [])
        if seen and seen[-1] == factory:
            return
        seen.append(factory)
        del seen[: -CHANGES - 1]
        if len(seen) > CHANGES and len(set(seen)) == 2:
            self.tell(nodeid, (seen[-1], seen[-2]), now)

    def tell(self, nodeid: int, factories: tuple[int, int], now: float) -> None:
        """Two motes of these factory numbers have it; 0: unknown."""
        self._told[nodeid] = _Two((min(factories), max(factories)), now)

    def known(self, now: float, speed: float) -> dict[int, tuple[int, int]]:
        """All that are not over. ``speed``: seconds of network time in one of UTC."""
        return {
            nodeid: two.factories for nodeid, two in self._told.items() if (now - two.told) * speed < OVER_S
        }
