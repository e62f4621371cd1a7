"""How many motes have answered a mote query."""

from __future__ import annotations

from collections.abc import Iterable

from construct import Container


class Answers:
    """Of the queries of one session; forgotten when a query ends. A partial state tells of how many motes it is, and not of which: of
    an aggregate those count that were in its fullest epoch, of which states that came again may make too many."""

    def __init__(self) -> None:
        self._motes: dict[int, set[int]] = {}
        #: By query: the epoch that came last, its motes so far, and the most of any.
        self._epochs: dict[int, tuple[int, int, int]] = {}

    def hear_rows(self, query: int, motes: Iterable[int]) -> None:
        """Rows of these motes."""
        known = self._motes.get(query)
        if known is None:
            known = self._motes[query] = set()
        known.update(motes)

    def hear_state(self, body: Container[int]) -> None:
        """A partial state."""
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
