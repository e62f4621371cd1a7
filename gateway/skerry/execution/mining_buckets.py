"""What executors run of mining for each query, bucket and batch: rows are added to an operator for each source, or to one for all, whose
state Spark keeps between batches."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from skerry.execution.mined_rows import LAST, NUMBER, SOURCE, TIME, MinedGroup, found_schema
from skerry.execution.range_index import Int64
from skerry.mining.errors import MiningError
from skerry.sensors.table_functions import FUNCTIONS, ROWS, TableFunction

#: Bytes of a bucket's state at most: it is one value, which is written with each batch.
STATE_BYTES = 1 << 28


class _Kept(msgspec.Struct, array_like=True):
    """An operator between batches. ``rows``: of which its answer is; ``told``: so many when that came last; ``seen``: all that there have
    been; ``time_us``: their greatest time; ``row``: the last one."""

    rows: int = 0
    told: int = 0
    seen: int = 0
    time_us: int = -(1 << 62)
    operator: bytes = b""
    row: bytes = b""


class _Miner:
    """Of one source, or of all."""

    def __init__(self, group: MinedGroup, kept: _Kept) -> None:
        self._group, self.kept = group, kept
        self._operator = self._made(kept.operator or None)

    def _made(self, data: bytes | None) -> TableFunction:
        spec = self._group.spec
        return FUNCTIONS[spec["mines"]](spec["arguments"], len(spec["columns"]), data)

    def add(self, rows: pa.Table) -> Iterator[pa.Table]:
        """More of them; what has been found whenever it is to come."""
        every, kept = self._group.spec["every"], self.kept
        begin = 0
        if "rows" in every:
            first = every["rows"] - kept.seen % every["rows"]
            for end in range(first, rows.num_rows + 1, every["rows"]):
                self._take(rows.slice(begin, end - begin))
                yield from self._tell(rows.slice(end - 1, 1), kept.time_us)
                begin = end
        else:
            length = every["us"]
            times = np.maximum(np.maximum.accumulate(rows[TIME].to_numpy()), kept.time_us)
            for end in _crossings(times // length, kept.time_us // length if kept.seen else None):
                self._take(rows.slice(begin, end - begin))
                # It is of the rows before this one.
                yield from self._tell(rows.slice(end, 1), int(times[end]) // length * length)
                begin = end
        self._take(rows.slice(begin))

    def end(self) -> Iterator[pa.Table]:
        """There will be no more: what has been found since it came last."""
        kept = self.kept
        if kept.rows > kept.told or (kept.rows and FUNCTIONS[self._group.spec["mines"]].holds_back):
            yield from self._tell(_row(kept.row), kept.time_us, last=True)

    def _take(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        kept, count = self.kept, len(self._group.spec["columns"])
        columns = [rows[f"a{place}"].combine_chunks() for place in range(count)]
        self._operator.add(columns, rows[SOURCE].combine_chunks(), rows[TIME].to_numpy())
        kept.rows, kept.seen = kept.rows + rows.num_rows, kept.seen + rows.num_rows
        kept.time_us = max(kept.time_us, int(rows[TIME].to_numpy().max()))
        kept.row = _bytes(rows.slice(rows.num_rows - 1))

    def _tell(self, at: pa.Table, time_us: int, *, last: bool = False) -> Iterator[pa.Table]:
        """What has been found; ``at``: the row with which it comes."""
        kept, schema = self.kept, found_schema(self._group)
        if not kept.rows:
            return
        found = self._operator.found(over=last or self._group.spec["anew"])
        count = found.num_rows
        own = {name: found[name].combine_chunks() for name in found.column_names}
        columns = {
            NUMBER: at[NUMBER].to_pylist() * count, TIME: [time_us] * count, LAST: [last] * count, ROWS: [kept.rows] * count,
            **own, **{name: at[name].to_pylist() * count for name in at.column_names if name.startswith("=")},
        }  # fmt: skip
        kept.told = kept.rows
        if self._group.spec["anew"]:
            self._operator, kept.rows, kept.told = self._made(None), 0, 0
        if count:
            made = (columns[field.name] for field in schema)
            yield pa.table([
                one.cast(field.type) if isinstance(one, pa.Array) else pa.array(one, field.type)
                for one, field in zip(made, schema, strict=True)
            ], schema=schema)  # fmt: skip

    def save(self) -> _Kept:
        """For the next batch."""
        self.kept.operator = self._operator.to_bytes() if self.kept.rows else b""
        return self.kept


def _crossings(spans: Int64, before: int | None) -> list[int]:
    """Where a row is of a later span than all before it."""
    first = spans[0] if before is None else before
    places: list[int] = np.flatnonzero(np.diff(spans, prepend=first) > 0).tolist()
    return places


class MiningBucket:
    """One bucket of a query's sources. ``state``: as it was; None: it is new. Raises MiningError: it has failed before."""

    def __init__(self, group: MinedGroup, state: bytes | None) -> None:
        self._group = group
        kept = msgspec.msgpack.decode(state, type=dict[int, _Kept] | str) if state is not None else {}
        if isinstance(kept, str):
            raise MiningError(kept)
        self._kept = kept

    def add(self, rows: pa.Table) -> list[pa.Table]:
        """More rows, in the order of the log; what comes of them. Raises MiningError: there is more in them than is kept."""
        found: list[pa.Table] = []
        sources = rows[SOURCE].to_numpy() if self._group.by_source else np.zeros(rows.num_rows, np.int64)
        for source in np.unique(sources).tolist():
            miner = _Miner(self._group, self._kept.get(source, _Kept()))
            found += miner.add(rows.filter(pa.array(sources == source)))
            self._kept[source] = miner.save()
        return found

    def end(self) -> list[pa.Table]:
        """All sources have ended."""
        found: list[pa.Table] = []
        for source, kept in sorted(self._kept.items()):
            miner = _Miner(self._group, kept)
            found += miner.end()
            self._kept[source] = miner.save()
        return found

    @property
    def rows(self) -> int:
        """Those that answers are of."""
        return sum(kept.rows for kept in self._kept.values())

    @property
    def time_us(self) -> int:
        """The greatest time so far."""
        return max((kept.time_us for kept in self._kept.values()), default=-(1 << 62))

    def to_bytes(self) -> bytes:
        """The state. Raises MiningError: it is too large."""
        made = msgspec.msgpack.encode(self._kept)
        if len(made) > STATE_BYTES:
            raise MiningError(
                f"{self._group.algorithm} keeps {len(made):,} bytes, more than the limit of {STATE_BYTES:,}: ask for shorter "
                "ones, fewer sources, or WINDOW in place of EVERY"
            )
        return made


def failed(why: str) -> bytes:
    """The state of a bucket that has not taken some rows: what it found in others would be wrong."""
    return msgspec.msgpack.encode(why)


def _bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _row(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def packed(tables: list[pa.Table]) -> bytes:
    """Tables of one schema as one."""
    return _bytes(pa.concat_tables(tables))


def unpacked(data: bytes) -> pa.Table:
    """The contrary."""
    return _row(data)
