"""Frequent subsequences: runs of symbols that come often, and in how many of several streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from skerry.mining.errors import MiningError, check_whole
from skerry.mining.state import pack, symbols, unpack

LONGEST = 64
Run = tuple[str, ...]
FOUND = pa.schema([("symbols", pa.list_(pa.string())), ("streams", pa.int64()), ("count", pa.int64())])


class Subsequences:
    """Runs of ``shortest`` to ``longest`` neighbouring rows of a stream. ``most``: different runs that are kept at most."""

    def __init__(self, shortest: int, longest: int, most: int = 1_000_000) -> None:
        check_whole("longest", longest, 1, LONGEST)
        check_whole("shortest", shortest, 1, longest)
        check_whole("most", most, 1, 100_000_000)
        self.shortest, self.longest, self.most = shortest, longest, most
        self._counts: dict[str, Counter[Run]] = {}
        self._last: dict[str, Run] = {}

    def add(self, streams: Any, values: Any) -> None:
        """The next rows: which stream each is of, and its symbol. No run goes over NULL. Raises MiningError; then nothing was added."""
        names, found = symbols(streams), symbols(values)
        if len(names) != len(found):
            raise MiningError(f"{len(names)} names of streams are given for {len(found)} symbols")
        new: dict[str, Counter[Run]] = {}
        last = dict(self._last)
        for name, symbol in zip(names, found, strict=True):
            if name is None:
                raise MiningError("a row has no stream: leave it out")
            runs = new.setdefault(name, Counter())
            if symbol is None:
                last[name] = ()
                continue
            tail = (*last.get(name, ()), symbol)[-self.longest :]
            last[name] = tail
            for length in range(self.shortest, len(tail) + 1):
                runs[tail[-length:]] += 1
        there = sum(map(len, self._counts.values()))
        more = sum(len(runs.keys() - self._counts.get(name, Counter()).keys()) for name, runs in new.items())
        if there + more > self.most:
            raise MiningError(
                f"there are {there + more} different runs, of which {self.most} are kept: shorter ones are fewer"
            )
        for name, runs in new.items():
            self._counts.setdefault(name, Counter()).update(runs)
        self._last = last

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._counts)

    def found(self, count: int, streams: int | None = None) -> pa.Table:
        """Runs that come at least ``count`` times in each of at least ``streams`` streams, or in all where nothing is said: how many
        streams have them so often, and how often they come in these. The most streams first, then the most often. Raises MiningError."""
        check_whole("count", count, 1, 1 << 60)
        asked = max(len(self._counts), 1) if streams is None else streams
        check_whole("streams", asked, 1, max(len(self._counts), 1))
        having, total = Counter[Run](), Counter[Run]()
        for runs in self._counts.values():
            for run, times in runs.items():
                if times >= count:
                    having[run] += 1
                    total[run] += times
        rows = [(list(run), n, total[run]) for run, n in having.items() if n >= asked]
        rows.sort(key=lambda row: (-row[1], -row[2], -len(row[0]), row[0]))
        return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=FOUND)

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        counts = [
            [name, [[list(run), n] for run, n in runs.items()], self._last.get(name, ())]
            for name, runs in self._counts.items()
        ]
        return pack(
            "subsequences", {"from": self.shortest, "to": self.longest, "most": self.most, "counts": counts}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Subsequences:
        """Raises MiningError."""
        kept = unpack("subsequences", data)
        made = cls(kept["from"], kept["to"], kept["most"])
        for name, runs, last in kept["counts"]:
            made._counts[name] = Counter({tuple(run): count for run, count in runs})
            made._last[name] = tuple(last)
        return made
