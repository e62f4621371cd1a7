"""Which rows of a stream meet which of tables: each row probes a table's sorted keys; what follows is asked of the pairs only."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.filters import Indices
from skerry.execution.joined import Pairs
from skerry.execution.residual import Rows
from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import TEXT_LEAF, Expr, Kind
from skerry.planner.model.joined_tables import (
    EPOCH,
    NUMBER_LIMIT,
    TIME,
    ColumnKind,
    Probe,
    TableColumn,
    reads_stream,
    tables_in,
)
from skerry.planner.model.plans import QueryPlan
from skerry.tables.columns import Column, TableError
from skerry.tables.store import LOOK_S, Table
from skerry.tables.versions import TableVersions

Int64 = npt.NDArray[np.int64]
#: A table of so many times fewer rows than the batch has is searched for, not searched.
FEW = 4
#: Sorted columns that a batch remembers.
REMEMBERED = 8


@dataclass(frozen=True)
class _Keys:
    """A table's rows that a query may want, by key: ``values`` ascending, ``rows`` where they stand. Of texts, values are places in
    ``texts``, where each stands once."""

    values: Int64
    rows: Int64
    texts: pa.Array | None = None


#: Columns of the stream's past beside those that a query reads: numbers in the log, sessions, motes, and network times in ms.
ROW, SESSION, NODE, NETWORK = " row", " session", " node", " network"
#: See :class:`skerry.storage.history.past_table.EarlierRows`.
Earlier = Callable[[Int64, Int64], tuple[Table, int]]
#: Pairs of a batch with one table at most.
PAIRS_MAXIMUM = 20_000_000
#: Behind every row that a log will ever have.
_NEXT = 1 << 62
#: A column that is read: what its table is called, its name, and whether it is read as text.
Read = tuple[str, str, bool]
#: Readings that a query remembers of whether it can be joined with them.
_MISFITS_KEPT = 64
#: Readings of one table whose keys a query keeps sorted: that of older rows, and that of new ones.
_KEYS_KEPT = 2


class Pairing:
    """Which rows of a stream meet which of its tables', as one query joins them. ``read``: the columns that it reads, by what their tables
    are called and their names, and whether as texts; ``tables`` finds a table by name, as it is now; it raises TableError when that is not
    there. ``past``: what a table of the stream's own past is for rows of the stream, by their numbers in the log and sample times.
    ``versions``: which reading of a table each row meets; None: all meet it as it is now."""

    def __init__(
        self,
        probes: Sequence[Probe],
        read: Collection[Read],
        period_ms: int,
        tables: Callable[[str], Table],
        past: Mapping[str, Earlier] | None = None,
        versions: TableVersions | None = None,
    ) -> None:
        self.probes, self._period_ms = probes, period_ms
        self._tables, self._past, self._versions = tables, past or {}, versions
        self._read = frozenset(read)
        #: The tables that change: the stream's past does not.
        self.names = sorted(
            {probe.table.schema.name for probe in probes if probe.table.called not in self._past}
        )
        self._of_epochs = {called for called, name, _ in self._read if name == EPOCH}
        #: By what a table is called, and its version.
        self._keys: dict[str, dict[int, _Keys]] = {}
        self._misfits: dict[tuple[str, int], str | None] = {}

    @classmethod
    def of(
        cls,
        plan: QueryPlan,
        tables: Callable[[str], Table],
        past: Mapping[str, Earlier] | None = None,
        versions: TableVersions | None = None,
    ) -> Pairing:
        """A plan's."""
        leaves = {
            node for expr in plan.joined_exprs() for node in expr.walk() if node.final[:1] == ("table",)
        }
        read = {(str(node.final[1]), str(node.final[2]), node.kind is Kind.TEXT) for node in leaves}
        return cls(plan.probes, read, plan.period_ms, tables, past, versions)

    def to_text(self) -> str | None:
        """JSON for :meth:`from_text`; None: only the gateway has what it is joined with, the stream's past."""
        if any(probe.table.past_ms is not None for probe in self.probes):
            return None
        probes = [probe.to_list() for probe in self.probes]
        text: str = json.dumps([probes, sorted(self._read), self._period_ms], separators=(",", ":"))
        return text

    @classmethod
    def from_text(cls, text: str, versions: TableVersions) -> Pairing:
        """What :meth:`to_text` wrote, where there are only the versions that have been noted."""
        probes, read, period_ms = json.loads(text)
        return cls(
            [Probe.from_list(probe) for probe in probes],
            {(called, name, texts) for called, name, texts in read},
            period_ms,
            _nowhere,
            None,
            versions,
        )

    def found(self, rows: Rows, places: Indices) -> list[Pairs]:
        """All pairs of some rows of the stream, which have numbers in the log. Raises TableError."""
        pairs = []
        for at, piece in self.pieces(rows, places):
            left, chosen = self.pairs(rows, piece, at)
            by_table = [chosen[probe.table.called] for probe in self.probes] if len(left) else []
            pairs.append(Pairs(left, [table.version for table, _ in by_table], [at for _, at in by_table]))
        return pairs

    def check(self) -> None:
        """Raises TableError when a table is not there for the rows that come next, or has not the columns any more that the query was
        planned with."""
        for probe in self.probes:
            if probe.table.called not in self._past:
                self._table(probe, None if self._versions is None else _NEXT)

    def pieces(self, rows: Rows, places: Indices) -> list[tuple[int | None, Indices]]:
        """Rows that meet the same readings of all tables: the number of the first, and their places."""
        if self._versions is None or not self.names or not len(places):
            return [(None, places)]
        numbers = _numbers(rows)[places]
        changes = self._versions.changes(self.names, int(numbers[0]), int(numbers[-1]))
        if not changes:
            return [(int(numbers[0]), places)]
        bounds = [0, *np.searchsorted(numbers, changes).tolist(), len(places)]
        return [
            (int(numbers[begin]), places[begin:end])
            for begin, end in itertools.pairwise(bounds)
            if begin < end
        ]

    def readings(self, probe: Probe, first: int, end: int) -> list[tuple[int, Table]]:
        """From which of rows ``first`` .. ``end`` - 1 of the log on which reading of a table is met. Raises TableError."""
        assert self._versions is not None
        changes = self._versions.changes([probe.table.schema.name], first, end - 1)
        found: list[tuple[int, Table]] = []
        for at in (first, *changes):
            table = self._table(probe, at)
            if not found or found[-1][1].version != table.version:
                found.append((at, table))
        return found

    def pairs(
        self, rows: Rows, places: Indices, at: int | None
    ) -> tuple[Int64, dict[str, tuple[Table, Int64]]]:
        """Places of rows of the stream, and by table the rows that belong to them. ``at``: the number of a row that meets what all of
        them do; None: the tables as they are now."""
        left: Indices = places
        chosen: dict[str, tuple[Table, Int64]] = {}
        for probe in self.probes:
            earlier = self._past.get(probe.table.called)
            reach_ms = 0
            if earlier is None:
                table = self._table(probe, at)
            else:
                table, reach_ms = earlier(_numbers(rows)[places], rows.utc_ms[places])
            keys = self._keys_of(probe, table)
            if keys.texts is not None:
                outer = texts_of(probe.outer, chosen, len(left))
                pairs, found = _from_stream(_places_in(keys.texts, outer), keys)
            elif not chosen and len(keys.values) * FEW < len(left):
                pairs, found = self._from_table(probe, keys, rows, places)
            else:
                evaluate = self.evaluator(rows, left, chosen, [probe.outer])
                pairs, found = _from_stream(evaluate(probe.outer, self._period_ms), keys)
            if earlier is not None and len(pairs):
                behind = self._behind(probe, table, reach_ms, rows, left[pairs], found)
                pairs, found = pairs[behind], found[behind]
            left = left[pairs]
            chosen = {called: (of, at[pairs]) for called, (of, at) in chosen.items()}
            chosen[probe.table.called] = table, found
            rest = [part for part in probe.then if not _of_table_only(probe, part)]
            if rest and len(left):
                evaluate = self.evaluator(rows, left, chosen, rest)
                passing = np.ones(len(left), np.bool_)
                for part in rest:
                    passing &= evaluate.truth(part, self._period_ms)
                left = left[passing]
                chosen = {called: (of, at[passing]) for called, (of, at) in chosen.items()}
        return left.astype(np.int64), chosen

    def _behind(
        self, probe: Probe, table: Table, reach_ms: int, rows: Rows, left: Indices, found: Int64
    ) -> npt.NDArray[np.bool_]:
        """Which pairs are of a row and one that had come before it, and was sampled before it, at most so long ago: by network
        time, or, of different sessions, at most ``reach_ms`` of UTC."""
        assert probe.table.past_ms is not None
        ago = rows.utc_ms[left] - table.columns[TIME].values[found]
        most: int | Int64 = reach_ms
        if rows.sessions is not None:
            same = table.columns[SESSION].values[found] == rows.sessions[left]
            ago = np.where(same, rows.sample_ms[left] - table.columns[NETWORK].values[found], ago)
            most = np.where(same, probe.table.past_ms, reach_ms)
        behind: npt.NDArray[np.bool_] = (ago > 0) & (ago <= most)
        behind &= table.columns[ROW].values[found] < _numbers(rows)[left]
        if probe.table.called in self._of_epochs and rows.sessions is not None:
            behind &= same
        return behind

    def _from_table(self, probe: Probe, keys: _Keys, rows: Rows, places: Indices) -> tuple[Int64, Int64]:
        """Which of the rows meet which of the table's, found from the table's side: the rows are sorted once for all queries
        that probe with the same, so that each costs what it matches."""
        key = id(places), probe.outer, self._period_ms
        kept = rows.sorted.get(key)
        if kept is None or kept[0] is not places:
            evaluate = self.evaluator(rows, places, {}, [probe.outer])
            values, known = evaluate(probe.outer, self._period_ms)
            where = np.flatnonzero(known)
            order = where[np.argsort(values[where], kind="stable")]
            if len(rows.sorted) >= REMEMBERED:
                rows.sorted.clear()
            kept = rows.sorted[key] = places, values[order], order
        _, values, order = kept
        first = np.searchsorted(values, keys.values, side="left")
        count = np.searchsorted(values, keys.values, side="right") - first
        pairs = order[_expanded(first, count)]
        found = np.repeat(keys.rows, count)
        sequence = np.argsort(pairs, kind="stable")
        return pairs[sequence], found[sequence]

    def _table(self, probe: Probe, at: int | None) -> Table:
        """The reading that a row of the log meets; None: as it is now. Raises TableError where there is none yet that the query can use."""
        name = probe.table.schema.name
        if at is not None and self._versions is not None:
            for table in self._versions.candidates(name, at):
                if self._misfit(probe, table) is None:
                    return table
        table = self._tables(name)
        what = self._misfit(probe, table)
        if what is not None:
            raise TableError(f"table {name} has changed: {what}")
        if at is not None and self._versions is not None:
            # Until it is noted from which row on, and then it is one of the candidates.
            raise TableError(f"table {name} has changed, and is looked at again within {LOOK_S:g} s")
        return table

    def _misfit(self, probe: Probe, table: Table) -> str | None:
        """Why a query cannot be joined with a reading of a table; None: it can."""
        key = probe.table.called, table.version
        if key not in self._misfits:
            if len(self._misfits) > _MISFITS_KEPT:
                self._misfits.clear()
            self._misfits[key] = self._found_misfit(probe, table)
        return self._misfits[key]

    def _found_misfit(self, probe: Probe, table: Table) -> str | None:
        for wanted in probe.table.schema.columns:
            texts = [
                as_text
                for called, name, as_text in self._read
                if (called, name) == (probe.table.called, wanted.name)
            ]
            if not texts:
                continue
            kind = wanted.kind
            if kind is ColumnKind.BLANK:
                # It is read as what it was compared with.
                kind = ColumnKind.TEXT if any(texts) else ColumnKind.NUMBER
            what = _changed(table.columns.get(wanted.name), replace(wanted, kind=kind))
            if what is not None:
                return f"column {wanted.name} {what}"
        return None

    def _keys_of(self, probe: Probe, table: Table) -> _Keys:
        """Sorted once for each reading of the table; conditions on the table alone are asked then."""
        of_table = self._keys.setdefault(probe.table.called, {})
        kept = of_table.pop(table.version, None)
        if kept is not None:
            of_table[table.version] = kept
            return kept
        alone = [part for part in probe.then if _of_table_only(probe, part)]
        everything = np.arange(table.rows)
        evaluate = Evaluator({}, np.zeros(table.rows, np.int64))
        self._bring(evaluate, {probe.table.called: (table, everything)}, [probe.inner, *alone])
        values, known = evaluate(probe.inner, self._period_ms)
        texts: pa.Array | None = None
        if probe.inner.kind is Kind.TEXT:
            column = texts_of(probe.inner, {probe.table.called: (table, everything)}, table.rows)
            texts = column.unique().drop_null()
            values, known = _places_in(texts, column)
        chosen = known.copy()
        for part in alone:
            chosen &= evaluate.truth(part, self._period_ms)
        rows = np.flatnonzero(chosen)
        order = np.argsort(values[rows], kind="stable")
        found = of_table[table.version] = _Keys(values[rows][order], rows[order], texts)
        while len(of_table) > _KEYS_KEPT:
            of_table.pop(next(iter(of_table)), None)
        return found

    def evaluator(
        self, rows: Rows, left: Indices, chosen: dict[str, tuple[Table, Int64]], exprs: list[Expr]
    ) -> Evaluator:
        evaluate = rows.evaluate.at(left)
        self._bring(evaluate, chosen, exprs)
        return evaluate

    def _bring(self, evaluate: Evaluator, chosen: dict[str, tuple[Table, Int64]], exprs: list[Expr]) -> None:
        for node in dict.fromkeys(node for expr in exprs for node in expr.walk()):
            if node.final[:1] == ("table",) and node.final[1] in chosen:
                column, at = column_in(chosen, node)
                if column.text is not None:
                    evaluate.add_texts(node, column.text.take(pa.array(at)))
                    continue
                values, known = column.vector(node.digits)
                evaluate.add(node, (values[at], known[at]))


def _changed(column: Column | None, wanted: TableColumn) -> str | None:
    """Why a column cannot be read as a query was planned with it; None: it can."""
    if column is None:
        return "is gone"
    if column.of_kind(wanted.kind) is None:
        return "is no longer of its kind"
    if column.most * 10 ** max(0, wanted.digits - column.described.digits) > NUMBER_LIMIT:
        places = f"the {wanted.digits} decimal places that it had"
        return f"has numbers beyond {NUMBER_LIMIT:.0e} in the last of {places}: ask the query anew"
    return None


def _from_stream(outer: Vector, keys: _Keys) -> tuple[Int64, Int64]:
    """The same, found from the rows' side."""
    values, known = outer
    first = np.searchsorted(keys.values, values, side="left")
    count = np.where(known, np.searchsorted(keys.values, values, side="right") - first, 0)
    return np.repeat(np.arange(len(values)), count), keys.rows[_expanded(first, count)]


def _places_in(texts: pa.Array, column: pa.Array) -> Vector:
    """Where each text of a column stands among others; not known where it does not."""
    places = pc.index_in(column, value_set=texts)
    known = places.is_valid().to_numpy(zero_copy_only=False)
    return places.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), known


def _expanded(first: Int64, count: Int64) -> Int64:
    """``first[i]``, ``first[i] + 1``, … ``count[i]`` of them, one i after the other."""
    total = int(count.sum())
    if total > PAIRS_MAXIMUM:
        raise TableError(f"a batch would give {total:,} rows: join it by more, or with less of the past")
    return np.arange(total) - np.repeat(np.cumsum(count) - count - first, count)


def _nowhere(name: str) -> Table:
    raise TableError(f"no reading of table {name} that the query can use is noted")


def _numbers(rows: Rows) -> Int64:
    assert rows.numbers is not None
    return rows.numbers


def column_in(chosen: dict[str, tuple[Table, Int64]], leaf: Expr) -> tuple[Column, Int64]:
    table, at = chosen[str(leaf.final[1])]
    column = table.columns[str(leaf.final[2])]
    if leaf.kind is Kind.TEXT:
        column = column.of_kind(ColumnKind.TEXT) or column
    return column, at


def texts_of(expr: Expr, chosen: dict[str, tuple[Table, Int64]], rows: int) -> pa.Array:
    """A column of texts, or a text of the query's own for each row."""
    if expr.final[:1] == (TEXT_LEAF,):
        return pa.repeat(pa.scalar(str(expr.final[1]), pa.string()), rows)
    column, at = column_in(chosen, expr)
    assert column.text is not None
    return column.text.take(pa.array(at))


def _of_table_only(probe: Probe, part: Expr) -> bool:
    return tables_in(part) == {probe.table.called} and not reads_stream(part)
