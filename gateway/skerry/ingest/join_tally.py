"""What a join of motes' rows comes to, counted as it comes up: rows of motes all of whose rows in a role come, what motes say of others,
and answers of each pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from skerry.joins.placement.learning import Counts, Role

Pair = tuple[int, int]
#: Both motes and epochs: the name of an answer.
Name = tuple[int, int, int, int]


class JoinTally:
    """Of one mote query, of epochs behind the one in which something came first: that one would count more than its like."""

    def __init__(self, pairs: Collection[Pair], complete: Collection[Role]) -> None:
        self._pairs, self._complete = tuple(pairs), frozenset(complete)
        self._first: int | None = None
        self._until = 0
        #: By the epoch at which it is joined.
        self._answered: dict[int, set[Name]] = defaultdict(set)
        self.clear()

    def clear(self) -> None:
        """Begin anew, so that what is counted is of a local span of time."""
        if self._first is not None:
            self._first = self._until - 1
        self._rows: Counter[Role] = Counter()
        self._answers: Counter[Pair] = Counter()
        #: By mote and the last epoch that each of its counts is of: epochs, rows as s, and as t.
        self._told: dict[tuple[int, int], tuple[int, int, int]] = {}

    def came(self, epoch: int) -> None:
        """Something of an epoch has come."""
        if self._first is None:
            self._first, self._until = epoch, epoch + 1

    def answered(self, s: int, s_epoch: int, t: int, t_epoch: int) -> None:
        """Two rows match. One that comes twice counts once."""
        at = max(s_epoch, t_epoch)
        self.came(at)
        if at >= self._until:
            self._answered[at].add((s, s_epoch, t, t_epoch))

    def told(self, mote: int, epoch: int, epochs: int, s: int, t: int) -> None:
        """A mote says how many rows it has had in so many epochs, up to that one. What comes twice counts once."""
        self.came(epoch)
        if self._first is not None and epoch - epochs >= self._first:
            self._told[mote, epoch] = epochs, s, t

    def settle(self, until: int, rows: Iterable[tuple[int, str, int]] = ()) -> None:
        """All of epochs before that one is there; ``rows``: by mote, role and epoch, where all of these come."""
        if self._first is None or until <= self._until:
            return
        for mote, role, epoch in rows:
            if self._until <= epoch < until:
                self._rows[mote, role] += 1
        for epoch in [epoch for epoch in self._answered if epoch < until]:
            self._answers.update((s, t) for s, _, t, _ in self._answered.pop(epoch))
        self._until = until

    def counts(self) -> Counts:
        """Up to now."""
        epochs = max(0, self._until - 1 - self._first) if self._first is not None else 0
        roles = {(mote, role) for pair in self._pairs for mote, role in zip(pair, "st", strict=True)}
        rows = {role: self._rows[role] for role in roles & self._complete}
        told: dict[Role, tuple[int, int]] = {}
        for (mote, _), (of, *had) in self._told.items():
            for name, count in zip("st", had, strict=True):
                if (mote, name) in roles - rows.keys():
                    before = told.get((mote, name), (0, 0))
                    told[mote, name] = before[0] + count, before[1] + of
        return Counts(epochs, self._pairs, rows, dict(self._answers), told)
