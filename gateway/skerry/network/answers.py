"""How many motes have answered a mote query."""

from __future__ import annotations

from construct import Container

from skerry_protocol.packets import PacketType


class Answers:
    """Of the queries of one session; forgotten when a query ends. A partial state tells of how many motes it is, and not of which: of
    an aggregate those count that were in its fullest epoch, of which states that came again may make too many."""

    def __init__(self) -> None:
        self._motes: dict[int, set[int]] = {}
        #: By query: the epoch that came last, its motes so far, and the most of any.
        self._epochs: dict[int, tuple[int, int, int]] = {}

    def hear(self, kind: PacketType, body: Container[int]) -> None:
        """A row, or a partial state."""
        if kind is not PacketType.PARTIAL:
            self._motes.setdefault(body.query, set()).add(body.node)
            return
        epoch, count, most = self._epochs.get(body.query, (-1, 0, 0))
        if body.epoch < epoch:
            return
        count = body.motes + (count if body.epoch == epoch else 0)
        self._epochs[body.query] = body.epoch, count, max(most, count)

    def forget(self, query: int) -> None:
        """The query is stopped, or its id is used anew."""
        self._motes.pop(query, None)
        self._epochs.pop(query, None)

    def of(self, query: int) -> int:
        """How many motes have answered."""
        *_, most = self._epochs.get(query, (0, 0, 0))
        return max(most, len(self._motes.get(query, ())))
