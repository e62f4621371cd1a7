"""What rows that are joined with tables need to know of these: which reading of each they meet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import pyarrow as pa


class Reading(Protocol):
    """A table as it was read once. ``version`` differs between all readings of a gateway's tables."""

    @property
    def version(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def typed(self, name: str, kind: str) -> pa.Array | None:
        """A column as one of this type (:mod:`skerry.planner.model.source_plans`); None: there is none, or it is of another."""
        ...


class Readings(Protocol):
    """Readings by the rows of the log that meet them: the same whenever that is asked, and in whichever process."""

    def changes(self, names: Collection[str], first: int, last: int) -> list[int]:
        """Rows behind ``first``, up to ``last``, from which on one of these tables is another, ascending."""
        ...

    def met(self, name: str, row: int) -> Iterator[Reading]:
        """The reading that a row of the log meets, and then those that it meets where that is of no use to its query."""
        ...
