"""How much the windows of a join would keep, by the rates of the sources that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skerry.joins.choice import check_limit, kept_of, limit_of, megabytes
from skerry.joins.join import Join
from skerry.joins.rows import Algorithm
from skerry.planner.model.source_plans import Term
from skerry.sensors.join_resolver import of_batches
from skerry.sensors.resolver import Resolver
from skerry.sensors.traffic import TrafficOf

#: Of a column of which no value has come, or that is calculated.
_WIDTH = 8.0


class Volume:
    """``chosen``: by alias the condition that chooses its sources; ``own``: all that its own row decides. Without ``traffic`` nothing is
    known."""

    def __init__(
        self,
        join: Join,
        aliases: Sequence[Resolver],
        chosen: Mapping[str, Term | None],
        own: Mapping[str, Term | None],
        traffic: TrafficOf | None,
    ) -> None:
        self._join = join
        rates: dict[str, float] = {}
        self._widths: dict[str, float] = {}
        #: Aliases of motes; those of whose sources some have no known rate; and those whose rows conditions leave out.
        self._motes: list[str] = []
        self._unknown: list[str] = []
        self._filtered: list[str] = []
        for one in aliases:
            name, stream = one.called, join.streams[one.called]
            # How fast motes' rows come, conditions that they ask say, too.
            known = traffic is not None and not one.table.of_motes
            found = traffic(one.table, chosen[name]) if traffic is not None and known else None
            if one.table.of_motes:
                self._motes.append(name)
            elif found is None or found.unknown:
                self._unknown.append(name)
            if found is not None and found.rate:
                rates[stream] = found.rate
                width = sum(found.widths.get(column, _WIDTH) for column in join.columns(name))
                self._widths[stream] = max(width, self._widths.get(stream, 0.0))
            condition = own[name]
            if condition is not None and not one.is_static(of_batches(condition)):
                self._filtered.append(name)
        self._rates = rates

    @property
    def whole_rates(self) -> dict[str, float]:
        """By stream, rows in a second of those whose sources all have a known rate."""
        unknown = {self._join.streams[name] for name in self._unknown}
        return {stream: rate for stream, rate in self._rates.items() if stream not in unknown}

    def checked(self, algorithm: Algorithm) -> str:
        """What would be kept, as a sentence. Raises JoinError: it is more than the limit, even of aliases no condition of whose own leaves
        rows out."""
        limit = limit_of(self._join, algorithm)
        kept = kept_of(self._join, self._rates, self._widths, keyed=algorithm == "HW")
        check_limit(self._join, [one for one in kept if one.alias not in self._filtered], limit)
        parts = [f"{one.rows:,.0f} rows of {one.alias}" for one in kept]
        total = sum(one.bytes(one.window_us + one.lateness_us) for one in kept)
        said = []
        if parts:
            most = "at most " if self._filtered else ""
            said.append(
                f"windows keep {most}about {_listed(parts)}, {megabytes(total)} of the {megabytes(limit)} that they may"
            )
        if self._unknown:
            said.append(
                f"not all sources of {_listed(self._unknown)} have brought rows for long enough to know what windows keep of them"
            )
        if self._motes:
            said.append(
                f"what windows keep of {_listed(self._motes)} is not reckoned, as motes' own conditions decide how many rows come"
            )
        return "; ".join(said) or "windows of rows keep as many as they say"


def _listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
