"""Which alarms what goes on in the background raises, and ends."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from skerry.catalog import Catalog
from skerry.catalog.invariants import invariant_text
from skerry.network.root import Root
from skerry.service.alarms import Alarms

#: Rows that wait for Spark for so long, in s, are an alarm.
STALLED_S = 60.0


class Watch:
    """Told now and then how things are, from any thread. ``stalled_s``: instead of :data:`STALLED_S`."""

    def __init__(self, alarms: Alarms, stalled_s: float = STALLED_S) -> None:
        self._alarms, self._stalled_s = alarms, stalled_s
        #: How far the proxy had come when it last moved, and when that was.
        self._moved = (0, time.monotonic())

    def root(self, root: Root) -> None:
        """Whether its rows come."""
        self._tell(f"link {root.link.url}", root.trouble())

    def delivery(self, done: int, through: int, rows: int, state: str) -> None:
        """How far the proxy has come in the log, as its batches and its readers see it; ``state``: Spark's."""
        now = time.monotonic()
        if done != self._moved[0] or through >= rows:
            self._moved = (done, now)
            self._alarms.off("delivery")
        elif now - self._moved[1] > self._stalled_s:
            self._alarms.on(
                "delivery", f"rows wait in the log: Spark has taken none for {self._stalled_s:g} s ({state})"
            )

    def spark(self, trouble: str | None) -> None:
        """Why Spark does not run; None: it does, or begins."""
        self._tell("spark", trouble)

    def source_reading(self, trouble: str | None) -> None:
        """Why the process that reads sources does not run; None: it does, or nobody needs it."""
        self._tell("source_reading", trouble)

    def api_workers(self, trouble: str | None) -> None:
        """Why processes that are to serve readers do not; None: they do."""
        self._tell("api_workers", trouble)

    def history(self, trouble: str | None) -> None:
        """Why the log is not compacted; None: it is."""
        self._tell("history", None if trouble is None else f"the log is not compacted: {trouble}")

    def clock(self, doubt: str | None) -> None:
        """Why this machine's clock decides over no row; None: it does."""
        self._tell("clock", doubt)

    def windows(self, lacking: str | None) -> None:
        """Why windows from before the start lack rows; None: they do not."""
        self._tell(
            "windows", None if lacking is None else f"windows from before the start lack rows: {lacking}"
        )

    def motes(self, catalog: Catalog, roots: Collection[int]) -> None:
        """Whether each has an address of its own, and none has reset itself. ``roots``: addresses of the roots."""
        self._tell("namesakes", _named(catalog.namesakes(time.time()), catalog, roots))
        found = [
            f"mote {nodeid} reports through roots {a} and {b} in turn"
            for nodeid, (a, b) in catalog.clashes(time.time()).items()
        ]
        why = "there seem to be two of that number; rows of both are kept, but give one of them another"
        self._tell("motes", f"{'; '.join(found)}: {why}" if found else None)
        broken = [
            f"mote {nodeid}: {invariant_text(name)}" for nodeid, name in sorted(catalog.broken().items())
        ]
        why = "a fault of the firmware, which started anew and lost the rows that waited; please report it"
        self._tell("invariants", f"{'; '.join(broken)}: {why}" if broken else None)

    def _tell(self, name: str, trouble: str | None) -> None:
        if trouble is None:
            self._alarms.off(name)
        else:
            self._alarms.on(name, trouble)


def _named(namesakes: Mapping[int, tuple[int, int]], catalog: Catalog, roots: Collection[int]) -> str | None:
    """Which motes of a network have one address, what comes of that and what is to be done; None: none have."""
    found = []
    for nodeid, factories in namesakes.items():
        root = catalog.mote(nodeid) if nodeid in roots else None
        others = [factory for factory in factories if root is None or factory != root.factory]
        if nodeid in roots:
            found.append(
                f"mote {nodeid:d} of factory number {' or '.join(map(_factory, others))} has the root's number: it is in no network, and "
                "nothing comes from those behind it that hear no other mote"
            )
        else:
            found.append(
                f"mote {nodeid:d} is two, of factory numbers {' and '.join(map(_factory, factories))}: rows of that number are of either, "
                "of an epoch's two the first is kept, and aggregates count both"
            )
    return f"{'; '.join(found)}; give one of them another number" if found else None


def _factory(number: int) -> str:
    """As it stands on a chip's label, or what stands for it."""
    return f"{number:08x}" if number else "unknown"
