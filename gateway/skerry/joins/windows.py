"""Windows between the aliases of a join, as a graph: how far apart rows of an answer may be, and how long each is kept.

Windows may be the same for all pairs, differ, or be missing between some (STEAM 2002, 6.2). What bounds two aliases without a window of
their own is the shortest way between them: in any answer they are no further apart than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

#: Farther apart than any two times in µs.
UNBOUNDED = 1 << 62


class WindowError(ValueError):
    """Windows that bound no join; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class Window:
    """Between two aliases: at most ``us`` µs between their rows' times, and the earlier among the last ``rows`` of its source. None: no
    such bound."""

    us: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.us is None and self.rows is None:
            raise WindowError("a window has neither a time nor rows: say WINDOW 10 s or WINDOW 5 ROWS")
        if self.us is not None and not 0 <= self.us < UNBOUNDED:
            raise WindowError(
                f"a window of {self.us} µs: it must be 0 or longer, and less than 146,000 years"
            )
        if self.rows is not None and self.rows < 1:
            raise WindowError(f"a window of {self.rows} ROWS: it must hold 1 row or more")


Pair = frozenset[str]


def uniform(aliases: Sequence[str], window: Window) -> dict[Pair, Window]:
    """The same window between all pairs."""
    return {frozenset(pair): window for pair in combinations(aliases, 2)}


class WindowGraph:
    """The windows of a join. Raises WindowError where they leave it without a bound."""

    def __init__(
        self, aliases: Sequence[str], windows: Mapping[Pair, Window], *, alone: bool = False
    ) -> None:
        """``alone``: one alias is joined with nobody."""
        self.aliases = tuple(aliases)
        self.windows = dict(windows)
        if not alone:
            self._check()
        #: By two aliases' places: rows of an answer are no further apart in µs. :data:`UNBOUNDED`: only rows bound them.
        self.distance = self._distances(len(self.aliases))

    def _check(self) -> None:
        if len(self.aliases) < 2:
            raise WindowError(f"a join of {len(self.aliases)} streams: it takes two aliases or more")
        twice = sorted({alias for alias in self.aliases if self.aliases.count(alias) > 1})
        if twice:
            raise WindowError(f"alias {twice[0]!r} stands for two streams: give each its own name")
        for pair in self.windows:
            unknown = sorted(pair - set(self.aliases))
            if unknown:
                raise WindowError(
                    f"{unknown[0]!r} in WINDOW({', '.join(sorted(pair))}) is no alias of this join: they are {', '.join(self.aliases)}"
                )
            if len(pair) != 2:
                raise WindowError(f"WINDOW({', '.join([*pair] * 2)}): a window is between two aliases")
        parts = self.parts()
        if len(parts) > 1:
            *named, last = (f"of {' and '.join(part)}" for part in parts)
            one, other = parts[0][-1], parts[1][0]
            raise WindowError(
                f"no window bounds how far apart rows {', '.join(named)} and {last} may be: add one between them, such as "
                f"WINDOW({one}, {other}) = 10 min"
            )

    def parts(self) -> list[list[str]]:
        """The aliases that windows hold together, in the order in which they were given; one part: the join is bounded."""
        return [[self.aliases[place] for place in part] for part in self._parts(self.windows)]

    def _parts(self, pairs: Iterable[Pair]) -> list[list[int]]:
        part = list(range(len(self.aliases)))
        for one, other in map(self.places, pairs):
            low, high = sorted((part[one], part[other]))
            part = [low if found == high else found for found in part]
        return [[place for place, found in enumerate(part) if found == each] for each in sorted(set(part))]

    def places(self, pair: Pair) -> tuple[int, int]:
        """Two aliases' places in the join, the lower one first."""
        one, other = sorted(self.aliases.index(alias) for alias in pair)
        return one, other

    def bounds(self, count: int) -> list[list[int]]:
        """Between so many aliases from the first on, of which rows may be missing: the window of two, else the shortest way over these."""
        found = self._distances(count)
        for pair, window in self.windows.items():
            one, other = self.places(pair)
            if window.us is not None and other < count:
                found[one][other] = found[other][one] = window.us
        return found

    def _distances(self, count: int) -> list[list[int]]:
        """Of all pairs of so many aliases from the first on, by no way over others, by Floyd and Warshall."""
        places = range(count)
        found = [[0 if one == other else UNBOUNDED for other in places] for one in places]
        for pair, window in self.windows.items():
            one, other = self.places(pair)
            if window.us is not None and other < count:
                found[one][other] = found[other][one] = window.us
        for over in places:
            for one in places:
                for other in places:
                    found[one][other] = min(found[one][other], found[one][over] + found[over][other])
        return found

    @property
    def has_rows(self) -> bool:
        """Whether any window counts rows."""
        return any(window.rows is not None for window in self.windows.values())

    def retention(self, place: int) -> int:
        """For how long in µs progress may have gone past a row of this alias that is still needed: the longest of the shortest ways from
        it. :data:`UNBOUNDED`: rows that come later displace it, not time. Where there is nobody to meet, it is below any time."""
        return max(self.distance[place]) if len(self.aliases) > 1 else -UNBOUNDED

    @property
    def is_complete(self) -> bool:
        """Whether each pair has a window."""
        return len(self.windows) == len(self.aliases) * (len(self.aliases) - 1) // 2
