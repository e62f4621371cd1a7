"""What a join of motes' rows comes to, counted as it comes up: rows of motes all of whose rows come, and answers of each pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from skerry.joins.placement.learning import Counts, Role

Pair = tuple[int, int]
#: Both motes and epochs: the name of an answer.
Name = tuple[int, int, int, int]


class JoinTally:
    """Of one mote query, of epochs behind the one in which something came first: that one would count more than its like."""

    def __init__(self, pairs: Collection[Pair], complete: Collection[int]) -> None:
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

    def settle(self, until: int, rows: Iterable[tuple[int, str, int]] = ()) -> None:
        """All of epochs before that one is there; ``rows``: by mote, role and epoch, of motes all of whose rows come."""
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
        rows = {role: self._rows[role] for role in roles if role[0] in self._complete}
        return Counts(epochs, self._pairs, rows, dict(self._answers))
