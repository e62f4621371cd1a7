"""Questions about indexes on their way: which motes are asked, what they have answered, and which have to be asked again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from skerry.index.questions import Points, encoded, owners
from skerry.planner.features.indexing import Index
from skerry.sensors.index_tables import StoredTuple
from skerry_protocol.packets import BROADCAST

#: Questions that are under way at once: motes answer four, and flood as many commands.
AT_ONCE = 3
#: A mote of which nothing has come for so long, in s of network time, is asked again, and so many times in all. A question takes up to
#: 16 s from hop to hop in a network at rest.
SILENT_S, TIMES = 64.0, 3
#: What a tuple has before its values: mote, session, epoch, which are NULL.
_HEAD = struct.Struct("<HHIB")
#: What sends a question: to a mote, its token and arguments.
Send = Callable[[int, int, bytes], None]


@dataclass
class _Part:
    """What one mote has answered: its records by their numbers, and how many there are."""

    records: dict[int, bytes] = field(default_factory=dict)
    count: int | None = None
    asked: int = 0
    since: float = 0.0

    @property
    def whole(self) -> bool:
        return self.count is not None and len(self.records) == self.count


@dataclass
class IndexAsk:
    """A question. ``box``: None where no value can be asked for."""

    index: Index
    box: Points | None
    parts: dict[int, _Part] = field(default_factory=dict)
    tokens: set[int] = field(default_factory=set)
    over: bool = False

    def __post_init__(self) -> None:
        nodes = [] if self.box is None else owners(self.box, self.index.owners)
        self.parts = {node: _Part() for node in nodes}
        self.over = not nodes

    @property
    def missing(self) -> list[int]:
        """Motes that have not answered in full."""
        return sorted(node for node, part in self.parts.items() if not part.whole)

    @property
    def complete(self) -> bool:
        """Whether all have."""
        return not self.missing

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "index": self.index.name,
            "asked": sorted(self.parts),
            "of": len(self.index.owners),
            "over": self.over,
            "complete": self.over and self.complete,
            "missing": self.missing,
        }

    def tuples(self) -> list[StoredTuple]:
        """What has come, each once, in an order of its own."""
        layout = struct.Struct("<" + "".join(axis.entry.format.letter for axis in self.index.axes))
        size, found = _HEAD.size + layout.size, dict[tuple[int, int, int], StoredTuple]()
        for part in self.parts.values():
            for record in part.records.values():
                for at in range(0, len(record) - size + 1, size):
                    node, session, epoch, nulls = _HEAD.unpack_from(record, at)
                    integers = layout.unpack_from(record, at + _HEAD.size)
                    values = tuple(None if nulls >> i & 1 else v for i, v in enumerate(integers))
                    found[session, epoch, node] = StoredTuple(node, session, epoch, values)
        return [found[name] for name in sorted(found)]


class IndexAsks:
    """Those that are not over. Not locked: its owner calls it under his lock."""

    def __init__(self, next_token: Callable[[], int]) -> None:
        self._next_token = next_token
        self._waiting: list[IndexAsk] = []

    def add(self, ask: IndexAsk) -> None:
        """A new one, which goes with one of the next :meth:`advance`."""
        if not ask.over:
            self._waiting.append(ask)

    def drop(self, ask: IndexAsk) -> None:
        """Nobody wants to know any more."""
        self._waiting = [other for other in self._waiting if other is not ask]

    def hear(self, body: Any, now: float) -> None:
        """A STORED record. Those of questions that nobody asked change nothing."""
        for ask in self._waiting[:AT_ONCE]:
            part = ask.parts.get(body.node)
            if body.token not in ask.tokens or part is None:
                continue
            part.records[body.part] = bytes(body.tuples)
            part.since = now
            if body.last:
                part.count = body.part + 1
            ask.over = ask.complete
        self._waiting = [ask for ask in self._waiting if not ask.over]

    def advance(self, now: float, send: Send) -> None:
        """Ask what is to be asked now; network time in s."""
        for ask in self._waiting[:AT_ONCE]:
            silent = [
                node
                for node, part in ask.parts.items()
                if not part.whole and (not part.asked or now - part.since >= SILENT_S)
            ]
            if silent and all(ask.parts[node].asked >= TIMES for node in ask.missing):
                ask.over = True
                continue
            again = [node for node in silent if ask.parts[node].asked < TIMES]
            self._send(ask, again, now, send)
        self._waiting = [ask for ask in self._waiting if not ask.over]

    def _send(self, ask: IndexAsk, nodes: Iterable[int], now: float, send: Send) -> None:
        nodes, box = list(nodes), ask.box
        if not nodes or box is None:
            return
        arguments = ask.index.number.to_bytes(2, "little") + encoded(box)
        # All that are asked at once by one flood; each that has to be asked again by its own.
        targets = [BROADCAST] if len(nodes) == len(ask.parts) else nodes
        for target in targets:
            token = self._next_token()
            ask.tokens.add(token)
            send(target, token, arguments)
        for node in nodes:
            part = ask.parts[node]
            part.asked, part.since = part.asked + 1, now
