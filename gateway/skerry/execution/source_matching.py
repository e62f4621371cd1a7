"""Rows of sources that are no motes, matched against what users ask of them: in executors, and wherever the log is read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution import source_folding, source_newest
from skerry.execution.deliveries import Delivery
from skerry.execution.matched import HIT, Matched
from skerry.execution.range_index import Int64, Places
from skerry.execution.source_rows import JOINED_ROWS, SourceRows, read
from skerry.planner.model.source_plans import SourceNewest, SourcePlan, Term
from skerry.planner.model.source_windows import SourceFold
from skerry.planner.model.table_lookups import Lookups, lookups_from_list, lookups_to_list
from skerry.sensors.array_calls import column_of
from skerry.sensors.evaluate import arrow_type, evaluate, passes, schema_of, shown
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import SourceFiles

#: Before the names of columns in what executors give back, where others have names of their own.
_OWN = "."


@dataclass(frozen=True, slots=True)
class SourceView:
    """What users who get the same columns of the same rows have in common: a condition, the columns with their types, and the calls of
    functions whose values are given back in place of what they are of; the tables that rows are joined with before."""

    where: Term | None
    columns: tuple[tuple[str, str], ...]
    calls: tuple[Term, ...] = ()
    lookups: Lookups | None = None

    @classmethod
    def of(cls, plan: SourcePlan) -> SourceView:
        """Of a query. What its condition alone needs is not given back."""
        found = {name: kind for output in plan.outputs for name, kind in _typed(output.term)}
        calls = dict.fromkeys(call for output in plan.outputs for call in output.term.calls())
        ordered = tuple(sorted(calls, key=column_of))
        return cls(plan.where, tuple(sorted(found.items())), ordered, plan.lookups)

    def to_text(self) -> str:
        """JSON."""
        where = self.where.to_list() if self.where is not None else None
        calls = [call.to_list() for call in self.calls]
        return json.dumps([where, self.columns, calls, lookups_to_list(self.lookups)])

    @classmethod
    def from_text(cls, text: str) -> SourceView:
        """What :meth:`to_text` wrote."""
        where, columns, calls, lookups = json.loads(text)
        return cls(
            Term.from_list(where) if where is not None else None,
            tuple((name, kind) for name, kind in columns),
            tuple(map(Term.from_list, calls)),
            lookups_from_list(lookups),
        )


def _typed(term: Term) -> Iterable[tuple[str, str]]:
    """The columns that it needs, but for those of calls."""
    if term.op == "column":
        yield str(term.value), term.type
    if term.op == "CALL":
        return
    for arg in term.args:
        yield from _typed(arg)


#: What an entry of the users' index asks of such a stream.
Asked = SourceView | SourceFold | SourceNewest
_KINDS: dict[str, type[SourceView | SourceFold | SourceNewest]] = {
    "rows": SourceView, "windows": SourceFold, "newest": SourceNewest,
}  # fmt: skip


def to_text(asked: Asked) -> str:
    """With what it is, JSON."""
    kind = next(name for name, known in _KINDS.items() if isinstance(asked, known))
    return json.dumps([kind, asked.to_text()])


def from_text(text: str) -> Asked:
    """What :func:`to_text` wrote."""
    kind, written = json.loads(text)
    found: Asked = _KINDS[kind].from_text(written)
    return found


class SourceEntries:
    """The entries of all such streams in the users' index."""

    def __init__(self) -> None:
        self._by_stream: dict[int, dict[int, Asked]] = {}

    def add(self, stream: int, entry: int, view: Asked) -> None:
        """An entry that comes."""
        self._by_stream.setdefault(stream, {})[entry] = view

    def remove(self, stream: int, entry: int) -> None:
        """… or goes."""
        of_stream = self._by_stream[stream]
        del of_stream[entry]
        if not of_stream:
            del self._by_stream[stream]

    def match(self, files: SourceFiles, numbers: Int64, records: Records) -> list[Matched]:
        """By stream, the rows of some records that anybody asks for, with their numbers."""
        if not self._by_stream:
            return []
        wanted = np.isin(records["stream"], list(self._by_stream))
        rows = read(files, numbers[wanted], records[wanted])
        found = []
        for stream, table in rows.items():
            entries = self._by_stream[stream]
            joined: dict[Lookups | None, dict[int, SourceView]] = {}
            for entry, view in entries.items():
                if isinstance(view, SourceView):
                    joined.setdefault(view.lookups, {})[entry] = view
            for lookups, views in joined.items():
                for part in (table,) if lookups is None else table.parts(JOINED_ROWS):
                    matched = _matched(stream, part.with_tables(lookups), views)
                    found += [matched] if len(matched.hits) else []
            for entry, fold in entries.items():
                if not len(table.numbers):
                    continue
                if isinstance(fold, SourceFold):
                    found.append(source_folding.matched(entry, fold, table))
                elif isinstance(fold, SourceNewest):
                    found.append(source_newest.matched(entry, fold, table))
        return found


def _matched(stream: int, rows: SourceRows, entries: Mapping[int, SourceView]) -> Matched:
    count = len(rows.numbers)
    conditions: dict[Term | None, Places] = {}
    places, hits, at = list[Places](), list[tuple[int, int, int]](), 0
    needed: dict[str, str] = {}
    calls: dict[str, Term] = {}
    for entry, view in sorted(entries.items()):
        if view.where not in conditions:
            passed = passes(view.where, rows.columns, count)
            conditions[view.where] = pc.indices_nonzero(passed).to_numpy().astype(np.int32)
        mine = conditions[view.where]
        if len(mine):
            hits.append((entry, at, at + len(mine)))
            places.append(mine)
            at += len(mine)
            needed |= dict(view.columns)
            calls |= {column_of(call): call for call in view.calls}
    of_places = np.concatenate([np.empty(0, np.int32), *places])
    arrays = [_column(rows, name, kind) for name, kind in needed.items()]
    arrays += [_called(call, rows, of_places) for call in calls.values()]
    batch = pa.RecordBatch.from_arrays(
        arrays or [pa.nulls(count)], [_OWN + name for name in (*needed, *calls)] or [_OWN]
    )
    return Matched(stream, rows.numbers, batch, of_places, np.array(hits, HIT)).wanted()


def _column(rows: SourceRows, name: str, kind: str) -> pa.Array:
    return rows.columns[name] if name in rows.columns else pa.nulls(len(rows.numbers), arrow_type(kind))


def _called(call: Term, rows: SourceRows, places: Places) -> pa.Array:
    """A call's values in the rows that anybody has, once in each; NULL in others."""
    mine = np.unique(places)
    chosen, count = pa.array(mine), len(rows.numbers)
    taken = {name: rows.columns[name].take(chosen) for name in {*call.columns()} if name in rows.columns}
    back = np.zeros(count, np.int64)
    back[mine] = np.arange(len(mine))
    there = np.zeros(count, bool)
    there[mine] = True
    return evaluate(call, taken, len(mine)).take(pa.array(back, mask=~there))


def delivered(plan: SourcePlan, rows: SourceRows, places: Places | None = None) -> Delivery | None:
    """Some rows, or with None those that pass the condition once they are joined with tables, as a user sees them; None: there are
    none."""
    rows = rows if places is not None else rows.with_tables(plan.lookups)
    count = len(rows.numbers)
    if places is None:
        places = pc.indices_nonzero(passes(plan.where, rows.columns, count)).to_numpy()
    if not len(places):
        return None
    chosen = pa.array(places)
    # Where executors have evaluated calls, their values are there, and else what they are of.
    names = plan.shown_columns() | {
        column_of(call) for output in plan.outputs for call in output.term.calls()
    }
    taken = {name: rows.columns[name].take(chosen) for name in names if name in rows.columns}
    arrays = [shown(output.term, taken, len(places)) for output in plan.outputs]
    return Delivery(rows.numbers[places], pa.RecordBatch.from_arrays(arrays, schema=schema_of(plan)))


def given_back(found: Matched) -> SourceRows:
    """What executors have given back."""
    names = [name.removeprefix(_OWN) for name in found.batch.schema.names]
    return SourceRows(found.numbers, dict(zip(names, found.batch.columns, strict=True)))
