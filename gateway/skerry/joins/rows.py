"""Rows of one stream as a join keeps them: time, number, key, for whom they are, and the fields that answers and conditions need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.joins.progress import Int64

UInt64 = npt.NDArray[np.uint64]
#: Hash join, nested loops, merge: STEAM 2002, 6.2.
Algorithm = Literal["HW", "NLW", "MW"]
#: In ``passes``: the key is known. The bits below say which alias's own conditions a row passes.
KEYED = np.uint64(1 << 63)
MOST_CONDITIONS = 63

_OWN = {
    "time": pa.int64(), "number": pa.int64(), "source": pa.int64(), "key": pa.int64(), "passes": pa.uint64(),
}  # fmt: skip
#: Before the names of fields, in what is written.
_FIELD = "field:"


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length. ``source``: which of its stream's sources a row is from."""

    time: Int64
    number: Int64
    source: Int64
    key: Int64
    passes: UInt64
    fields: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.time)

    def take(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Rows:
        """These of them, in this order; by a mask: where it is true."""
        if places.dtype == np.bool_:
            if places.all():
                return self
            places = np.flatnonzero(places)
        wanted = pa.array(places)
        return Rows(
            self.time[places], self.number[places], self.source[places], self.key[places], self.passes[places],
            {name: column.take(wanted) for name, column in self.fields.items()},
        )  # fmt: skip

    def slice(self, start: int, end: int) -> Rows:
        """A part of them, nothing copied."""
        part = slice(start, end)
        return Rows(
            self.time[part], self.number[part], self.source[part], self.key[part], self.passes[part],
            {name: column.slice(start, end - start) for name, column in self.fields.items()},
        )  # fmt: skip

    def field(self, name: str) -> pa.Array:
        """A field's values, or the row's own time or number. A field that nobody wanted when the rows came is NULL."""
        if name == "time":
            return pa.array(self.time)
        if name == "number":
            return pa.array(self.number)
        found = self.fields.get(name)
        return pa.nulls(len(self)) if found is None else found

    @property
    def bytes(self) -> int:
        """What they take in memory."""
        return 40 * len(self) + sum(int(column.nbytes) for column in self.fields.values())


def concatenated(parts: Sequence[Rows]) -> Rows:
    """All rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.fields)
    kinds = {name: next(part.fields[name].type for part in parts if name in part.fields) for name in names}
    fields = {
        name: pa.concat_arrays(
            [part.fields[name] if name in part.fields else pa.nulls(len(part), kinds[name]) for part in parts]
        )
        for name in names
    }
    own = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _OWN}
    return Rows(fields=fields, **own)


def no_rows(fields: dict[str, pa.DataType] | None = None) -> Rows:
    """None of them."""
    whole = np.zeros(0, np.int64)
    empty = {name: pa.nulls(0, kind) for name, kind in (fields or {}).items()}
    return Rows(whole, whole, whole, whole, np.zeros(0, np.uint64), empty)


def sorted_for(algorithm: Algorithm, rows: Rows) -> Rows:
    """In the order in which an algorithm keeps them: by key and time, by time, or as they came."""
    if algorithm == "HW":
        keys: tuple[Int64, ...] = (rows.number, rows.time, rows.key)
    elif algorithm == "MW":
        keys = (rows.number, rows.time)
    else:
        keys = (rows.number,)
    places = np.lexsort(keys)
    return rows if np.array_equal(places, np.arange(len(places))) else rows.take(places)


def encode(rows: Rows) -> bytes:
    """As Arrow's IPC stream."""
    batch = pa.RecordBatch.from_arrays(
        [*(pa.array(getattr(rows, name)) for name in _OWN), *rows.fields.values()],
        [*_OWN, *(_FIELD + name for name in rows.fields)],
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode(data: bytes | memoryview | pa.Buffer) -> Rows:
    """From Arrow's IPC stream; columns stay where the bytes are. Raises pyarrow.ArrowInvalid."""
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
    own = {name: batch.column(name).to_numpy() for name in _OWN}
    fields = {
        name.removeprefix(_FIELD): batch.column(name)
        for name in batch.schema.names
        if name.startswith(_FIELD)
    }
    return Rows(fields=fields, **own)
