"""In which order the rows of a window, or of a past, come, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.expressions.expression import Expr, render

#: Most rows of LIMIT.
LIMIT_MAXIMUM = 1_000_000
#: Most rows of a past (HISTORY … ONLY) that are put in order: what they need in memory stays below 100 MB.
PAST_MAXIMUM = 100_000


@dataclass(frozen=True, slots=True)
class Ordering:
    """By ``keys``, the first that tells rows apart: an expression, and whether the greatest comes first. NULL comes last.

    ``limit``: rows that are kept of each window, or of the past; None: all.
    """

    keys: tuple[tuple[Expr, bool], ...]
    limit: int | None

    def __str__(self) -> str:
        keys = [f"{render(expr)} DESC" if descending else render(expr) for expr, descending in self.keys]
        return ", ".join(keys) + (f", and keeps the first {self.limit:,}" if self.limit is not None else "")

    def exprs(self) -> list[Expr]:
        """What is ordered by."""
        return [expr for expr, _ in self.keys]
