"""How full motes' flash is and how worn, by their latest FLASH packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Flash:
    """What a mote that keeps tuples and rows in flash says of it.

    ``reported``: UTC in s. Sizes in bytes; ``evicted``: tuples that gave way to others since the mote was first flashed;
    ``erased_most``: erasures of the page that was erased most often, ``erased_mean``: of a page on average; ``tuples``: how many it
    stores of each index, by the index's number; ``own``: of those of which all are its own zone's the revision of the owners.
    """

    nodeid: int
    reported: float
    pages: int
    capacity: int
    used: int
    evicted: int
    erased_most: int
    erased_mean: float
    tuples: Mapping[int, int]
    own: Mapping[int, int]

    @property
    def fill(self) -> float:
        """Share of the capacity that is taken."""
        return self.used / self.capacity if self.capacity else 0.0


class FlashReports:
    """Of each mote that has sent one."""

    def __init__(self) -> None:
        self._by_mote: dict[int, Flash] = {}

    def hear(self, body: Mapping[str, Any], now: float) -> None:
        """The body of a decoded FLASH packet; ``now``: UTC in s."""
        same = ("pages", "capacity", "used", "evicted", "erased_most")
        self._by_mote[body["node"]] = Flash(
            nodeid=body["node"],
            reported=now,
            erased_mean=body["erased_sum"] / max(body["pages"], 1),
            tuples={one["index"]: one["tuples"] for one in body["indexes"]},
            own={one["index"]: one["revision"] for one in body["indexes"] if one["own"]},
            **{name: body[name] for name in same},
        )

    def of(self, nodeid: int) -> Flash | None:
        """One mote's; None: it has not told."""
        return self._by_mote.get(nodeid)

    def tuples(self, index: int) -> dict[int, int]:
        """How many tuples of an index motes store, by mote."""
        return {node: flash.tuples.get(index, 0) for node, flash in sorted(self._by_mote.items())}

    def followed(self, index: int, revision: int, since: float) -> set[int]:
        """Motes that store no tuple of an index that is another one's by the owners of a revision: they say so, or have told since then,
        UTC in s, that they have none."""
        return {
            node
            for node, flash in self._by_mote.items()
            if flash.own.get(index) == revision or (index not in flash.tuples and flash.reported > since)
        }

    def described(self) -> list[dict[str, Any]]:
        """All, by address, as plain values."""
        flashes = [self._by_mote[nodeid] for nodeid in sorted(self._by_mote)]
        return [
            {name: value for name, value in asdict(flash).items() if name not in ("tuples", "own")}
            | {
                "tuples": sum(flash.tuples.values()),
                "fill": round(flash.fill, 4),
                "erased_mean": round(flash.erased_mean, 2),
            }
            for flash in flashes
        ]
