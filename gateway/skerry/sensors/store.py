"""The tables of sensors that there are, and their tuples: what statements change, and queries read."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan, Term
from skerry.sensors import values
from skerry.sensors.answers import answer
from skerry.sensors.csv_tuples import counted, read_csv
from skerry.sensors.definitions import SensorTable, column_of, define
from skerry.sensors.evaluate import passes
from skerry.sensors.made_streams import TUPLE
from skerry.sensors.readings import Readings
from skerry.sensors.resolver import Resolver
from skerry.sensors.traffic import Seen
from skerry.sensors.values import Kept, ValueRefusedError
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.sensor_statements import (
    AddColumn,
    Copy,
    CreateSensors,
    Delete,
    Describe,
    DropColumn,
    DropSensors,
    Insert,
    SensorStatement,
    ShowSensors,
    Update,
)

#: Tuples of all tables at most, and of a CSV file: all are in the gateway's memory.
TUPLES_MAXIMUM = 1_000_000


@dataclass(frozen=True, slots=True)
class Tuples:
    """A table with its tuples, by their numbers, which are never given twice."""

    table: SensorTable
    rows: Mapping[int, tuple[Kept, ...]]
    last: int = 0

    def columns(self) -> dict[str, pa.Array]:
        """The static columns, in the order of the tuples' numbers."""
        return values.columns(self.table.columns, list(self.rows.values()))

    def chosen(self, where: Term | None) -> list[int]:
        """Numbers of the tuples for which a condition over static columns is true."""
        if where is None:
            return list(self.rows)
        passed = passes(where, self.columns(), len(self.rows)).to_pylist()
        return [number for number, passes_ in zip(self.rows, passed, strict=True) if passes_]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a statement: a sentence, or rows."""

    text: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


class SensorStore:
    """Not locked: its owner calls it under his lock; what it gives is not changed afterwards. ``in_use``: ids of the queries that read a
    table, all of them, or a column of it."""

    def __init__(self, in_use: Callable[[str, str | None], list[str]] = lambda *_: []) -> None:
        self._in_use = in_use
        #: What a table's stream has brought, by the table's number.
        self.seen: Callable[[int], Seen] = lambda _: Seen()
        self._by_key: dict[str, Tuples] = {}
        #: The greatest number of a stream that there has been.
        self.last_stream = 0
        #: Keys of tables that are not yet on the disk as they are, and what is there of all.
        self.changed: set[str] = set()
        self._on_disk: dict[str, Tuples] = {}

    # ---- what there is ----

    def tables(self) -> dict[str, SensorTable]:
        """By name in lower case."""
        return {key: found.table for key, found in self._by_key.items()}

    def tuples(self, key: str) -> Tuples | None:
        """A table with its tuples; None: there is no such table."""
        return self._by_key.get(key)

    def all(self) -> list[Tuples]:
        """All tables, each with its tuples."""
        return list(self._by_key.values())

    def static_rows(self, plan: SourcePlan, readings: Readings | None = None) -> pa.RecordBatch:
        """The answer to a query over static columns; ``readings``: of tables that they are joined with. QueryError: the table has gone."""
        found = self._by_key.get(plan.table)
        if found is None:
            raise QueryError(f"table {plan.table} has been dropped", "ask again")
        return answer(plan, found.columns(), len(found.rows), readings)

    def shapes(self, name: ast.Text) -> dict[str, list[float]]:
        """The arrays of a table's tuples by their names: its first TEXT and its first array. Raises QueryError."""
        found = self._by_key.get(name.text.lower())
        if found is None:
            guess = did_you_mean(name.text, list(self._by_key))
            hint = f"{guess}shapes are in a table, as in CREATE SENSORS shapes (name TEXT, points DOUBLE[])"
            raise QueryError(f"there is no table '{name.text}'", hint, name.span)
        columns, kept = found.table.columns, found.columns()
        texts = [c.name.lower() for c in columns if c.type == plans.TEXT and not c.fields]
        arrays = [c.name.lower() for c in columns if c.type.endswith("[]")]
        if not texts or not arrays:
            hint = "a table of shapes is made as in CREATE SENSORS shapes (name TEXT, points DOUBLE[])"
            raise QueryError(f"table '{found.table.name}' has no names with arrays", hint, name.span)
        rows = zip(kept[texts[0]].to_pylist(), kept[arrays[0]].to_pylist(), strict=True)
        return {label: points for label, points in rows if label is not None and points is not None}

    # ---- streams that are made of others ----

    def add_made(self, table: SensorTable, select: str) -> None:
        """A stream that a query fills, as a table under its name."""
        self._set(Tuples(table, {TUPLE: (select,)}, TUPLE))

    def check_free(self, name: ast.Name) -> None:
        """Raises QueryError where a table has this name already."""
        found = self._by_key.get(name.name.lower())
        if found is not None:
            what = "STREAM" if found.table.is_made else "SENSORS"
            hint = f"drop it first, with DROP {what} {name.name}, or take another name"
            raise QueryError(f"there is a table '{name.name}' already", hint, name.span)

    def made(self, name: ast.Name, user: str) -> SensorTable:
        """A user's stream that is to be dropped. Raises QueryError."""
        found = self._by_key.get(name.name.lower())
        if found is None or not found.table.is_made:
            names = [one.table.name for one in self._by_key.values() if one.table.is_made]
            guess = did_you_mean(name.name, [one.lower() for one in names])
            hint = f"{guess}there are {', '.join(names)}" if names else "CREATE STREAM makes one"
            raise QueryError(f"unknown stream '{name.name}'", hint, name.span)
        if found.table.owner != user:
            raise QueryError(
                f"stream '{found.table.name}' is another user's", "who created it drops it", name.span
            )
        return found.table

    def check_unread(self, table: SensorTable) -> None:
        """Raises QueryError, which names them, where queries read a stream that is made."""
        readers = self._in_use(table.key, None)
        if readers:
            raise QueryError(f"{self._who_read(readers)} stream {table.name}", "stop or drop that first")

    def _who_read(self, queries: list[str]) -> str:
        """These read, those that fill streams by the names of these."""
        makers = {one.table.made_by: one.table.name for one in self._by_key.values() if one.table.is_made}
        streams = [makers[one] for one in queries if one in makers]
        others = [one for one in queries if one not in makers]
        parts = [f"{'query' if len(others) == 1 else 'queries'} {', '.join(others)}"] if others else []
        parts += [f"{'stream' if len(streams) == 1 else 'streams'} {', '.join(streams)}"] if streams else []
        return f"{' and '.join(parts)} {'reads' if len(queries) == 1 else 'read'}"

    def drop_made(self, query: str) -> None:
        """The stream that a query has filled goes, if it fills one."""
        for key, found in [*self._by_key.items()]:
            if found.table.is_made and found.table.made_by == query:
                del self._by_key[key]
                self.changed.add(key)

    def show_made(self) -> Done:
        """What SHOW STREAMS shows."""
        rows = tuple(
            (found.table.name, found.table.owner, found.table.made_by, found.rows[TUPLE][0])
            for found in sorted(self._by_key.values(), key=lambda one: one.table.number)
            if found.table.is_made
        )
        return Done("", ("stream", "owner", "query", "select"), rows)

    # ---- statements ----

    def run(self, statement: SensorStatement, user: str, files: Path, text: str) -> Done:
        """Do what a statement says. ``files``: the folder that COPY reads. Raises QueryError: nothing has changed."""
        try:
            match statement:
                case CreateSensors():
                    done = self._create(statement, user)
                case Insert():
                    done = self._insert(statement, user)
                case Update():
                    done = self._update(statement, user)
                case Delete():
                    done = self._delete(statement, user)
                case Copy():
                    done = self._copy(statement, user, files)
                case AddColumn() | DropColumn():
                    done = self._alter(statement, user)
                case DropSensors():
                    done = self._drop(statement, user)
                case ShowSensors():
                    done = self._show()
                case Describe():
                    done = self._describe(statement)
        except QueryError as error:
            raise error.within(text) from None
        return done

    def _of(self, name: ast.Name, user: str | None = None) -> Tuples:
        """A table; with ``user`` only where it is his. Raises QueryError."""
        found = self._by_key.get(name.name.lower())
        if found is None:
            names = [tuples.table.name for tuples in self._by_key.values()]
            guess = did_you_mean(name.name, list(self._by_key))
            hint = f"{guess}there are {', '.join(names)}" if names else "make one with CREATE SENSORS"
            raise QueryError(f"unknown table of sensors '{name.name}'", hint, name.span)
        if user is not None and found.table.is_made:
            hint = f"drop it, with DROP STREAM {found.table.name}, and create it again"
            raise QueryError(
                f"what a query fills is not changed: '{found.table.name}' is a stream", hint, name.span
            )
        if user is not None and found.table.owner != user:
            hint = "who created it changes it"
            raise QueryError(f"table '{found.table.name}' is another user's", hint, name.span)
        return found

    def _create(self, statement: CreateSensors, user: str) -> Done:
        self.check_free(statement.name)
        table = define(statement, user, self.last_stream + 1)
        self.last_stream += 1
        self._set(Tuples(table, {}))
        return Done(
            f"table {table.name} has {counted(len(table.columns), 'column')} and no sensors yet: INSERT INTO {table.name} VALUES (…)"
        )

    def _insert(self, statement: Insert, user: str) -> Done:
        found = self._of(statement.name, user)
        columns = found.table.columns
        places = [self._place(found, name) for name in statement.columns] or list(range(len(columns)))
        if len({*places}) < len(places):
            raise QueryError("a column is named twice", "name each once", statement.columns[0].span)
        rows = []
        for literals, span in zip(statement.rows, statement.spans, strict=True):
            if len(literals) != len(places):
                names = ", ".join(columns[place].name for place in places)
                hint = f"give one for each of {names}"
                raise QueryError(
                    f"{counted(len(literals), 'value')} for {counted(len(places), 'column')}", hint, span
                )
            row: list[Kept] = [None] * len(columns)
            for place, literal in zip(places, literals, strict=True):
                try:
                    row[place] = values.kept(columns[place], literal.value)
                except ValueRefusedError as error:
                    raise QueryError(str(error), "", literal.span) from None
            rows.append(tuple(row))
        self._add(found, rows, statement.name)
        return Done(f"{counted(len(rows), 'row')} inserted into {found.table.name}")

    def _add(self, found: Tuples, rows: Sequence[tuple[Kept, ...]], name: ast.Name) -> None:
        there = sum(len(tuples.rows) for tuples in self._by_key.values())
        if there + len(rows) > TUPLES_MAXIMUM:
            raise QueryError(f"there are {there} sensors", f"at most {TUPLES_MAXIMUM} have room", name.span)
        more = dict(enumerate(rows, found.last + 1))
        self._set(replace(found, rows={**found.rows, **more}, last=found.last + len(rows)))

    def _place(self, found: Tuples, name: ast.Name) -> int:
        place = found.table.place(name.name)
        if place is None:
            names = [column.name for column in found.table.columns]
            hint = f"{did_you_mean(name.name, names)}{found.table.name} has {', '.join(names)}"
            raise QueryError(f"unknown column '{name.name}'", hint, name.span)
        return place

    def _update(self, statement: Update, user: str) -> Done:
        found = self._of(statement.name, user)
        assigned: dict[int, Kept] = {}
        for name, literal in statement.assignments:
            place = self._place(found, name)
            try:
                assigned[place] = values.kept(found.table.columns[place], literal.value)
            except ValueRefusedError as error:
                raise QueryError(str(error), "", literal.span) from None
        numbers = self._chosen(found, statement.where)
        rows = dict(found.rows)
        for number in numbers:
            rows[number] = tuple(assigned.get(place, value) for place, value in enumerate(rows[number]))
        if numbers:
            self._set(replace(found, rows=rows))
        return Done(f"{counted(len(numbers), 'row')} of {found.table.name} updated")

    def _delete(self, statement: Delete, user: str) -> Done:
        found = self._of(statement.name, user)
        numbers = {*self._chosen(found, statement.where)}
        if numbers:
            self._set(replace(found, rows={n: row for n, row in found.rows.items() if n not in numbers}))
        return Done(f"{counted(len(numbers), 'row')} of {found.table.name} deleted")

    def _chosen(self, found: Tuples, where: ast.Expression | None) -> list[int]:
        if where is None:
            return list(found.rows)
        resolver = Resolver(found.table, found.table.key)
        term = resolver.condition(where)
        if not resolver.is_static(term):
            raise QueryError(
                "a field of a stream is no column of a tuple", "ask for static columns", where.span
            )
        return found.chosen(term)

    def _copy(self, statement: Copy, user: str, files: Path) -> Done:
        found = self._of(statement.name, user)
        inside = f"files are read from {files}"
        try:
            path = (files / statement.file).resolve()
        except (ValueError, RuntimeError) as error:
            why = "its links lead in a circle" if isinstance(error, RuntimeError) else error
            raise QueryError(f"'{statement.file}' names no file: {why}", inside, statement.span) from None
        if not path.is_relative_to(files.resolve()):
            hint = f"{inside}: give a name in there"
            raise QueryError(f"'{statement.file}' is elsewhere", hint, statement.span)
        try:
            rows = read_csv(path, found.table, TUPLES_MAXIMUM)
        except OSError as error:
            raise QueryError(f"'{statement.file}': {error.strerror}", inside, statement.span) from None
        except (ValueError, csv.Error) as error:
            hint = f"the first line names columns of {found.table.name}, each further one is a tuple"
            raise QueryError(f"'{statement.file}': {error}", hint, statement.span) from None
        self._add(found, rows, statement.name)
        return Done(f"{counted(len(rows), 'row')} copied into {found.table.name}")

    def _alter(self, statement: AddColumn | DropColumn, user: str) -> Done:
        found = self._of(statement.name, user)
        if isinstance(statement, AddColumn):
            text = statement.column
            if found.table.place(text.name.name) is not None:
                raise QueryError(
                    f"there is a column '{text.name.name}' already", "take another name", text.name.span
                )
            table = found.table.with_column(column_of(text))
            self._set(replace(found, table=table, rows={n: (*row, None) for n, row in found.rows.items()}))
            return Done(
                f"column {text.name.name} added to {table.name}: NULL in {counted(len(found.rows), 'row')}"
            )
        place = self._place(found, statement.column)
        if found.table.columns[place].fields:
            hint = "drop the table, with DROP SENSORS"
            raise QueryError("a table of sensors keeps its stream", hint, statement.column.span)
        if len(found.table.columns) == 1:
            raise QueryError(
                "it is the last column", "drop the table, with DROP SENSORS", statement.column.span
            )
        self._check_unused(found.table, statement.column, statement.column.name.lower())
        rows = {n: row[:place] + row[place + 1 :] for n, row in found.rows.items()}
        self._set(replace(found, table=found.table.without(place), rows=rows))
        return Done(f"column {statement.column.name} of {found.table.name} dropped")

    def _drop(self, statement: DropSensors, user: str) -> Done:
        found = self._of(statement.name, user)
        self._check_unused(found.table, statement.name, None)
        del self._by_key[found.table.key]
        self.changed.add(found.table.key)
        return Done(f"table {found.table.name} dropped, with {counted(len(found.rows), 'sensor')}")

    def _check_unused(self, table: SensorTable, name: ast.Name, column: str | None) -> None:
        users = self._in_use(table.key, column)
        if users:
            raise QueryError(f"{self._who_read(users)} '{name.name}'", "stop that first", name.span)

    def _show(self) -> Done:
        rows = []
        for found in self._by_key.values():
            if found.table.is_made:
                continue
            names = ", ".join(column.name for column in found.table.columns)
            seen = self.seen(found.table.number)
            brought = (seen.rows, round(seen.rows_per_s, 3), seen.errors)
            rows.append((found.table.name, found.table.owner, len(found.rows), names, *brought))
        return Done("", ("table", "owner", "sensors", "columns", "rows", "rows_per_s", "errors"), tuple(rows))

    def _describe(self, statement: Describe) -> Done:
        table = self._of(statement.name).table
        ranges = self.seen(table.number).ranges
        rows = [
            (*row.values(), *ranges.get(row["column"].lower(), (None, None))) for row in table.described()
        ]
        return Done("", ("column", "type", "unit", "what", "least", "greatest"), tuple(rows))

    def _set(self, tuples: Tuples) -> None:
        self._by_key[tuples.table.key] = tuples
        self.changed.add(tuples.table.key)

    # ---- on disk ----

    def snapshot(self) -> tuple[dict[str, Tuples], int, set[str]]:
        """For :meth:`put_back`."""
        return dict(self._by_key), self.last_stream, set(self.changed)

    def put_back(self, snapshot: tuple[dict[str, Tuples], int, set[str]]) -> None:
        """As it was: what a statement changed could not be remembered."""
        self._by_key, self.last_stream, self.changed = snapshot

    def table_rows(self) -> list[dict[str, Any]]:
        """All tables, to be kept."""
        return [
            {"name": key, "shown": t.table.name, "owner": t.table.owner, "stream": t.table.number, "last_tuple": t.last,
             "columns": json.dumps(t.table.to_list())}
            for key, t in self._by_key.items()
        ]  # fmt: skip

    def tuple_rows(self) -> list[dict[str, Any]]:
        """All tuples, to be kept."""
        return [
            _kept(key, number, row)
            for key, found in self._by_key.items()
            for number, row in found.rows.items()
        ]

    def unsaved(self) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
        """What has changed since :meth:`saved`: a table of the state, what its rows have that go, and what takes their place."""
        for key in sorted(self.changed):
            found, there = self._by_key.get(key), self._on_disk.get(key)
            if found is None or (there is not None and there.table.number != found.table.number):
                # With its tuples.
                yield "sensor_tables", {"name": key}, []
                there = None
            if found is None:
                continue
            yield (
                "sensor_tables",
                {"name": key, "stream": -1},
                [row for row in self.table_rows() if row["name"] == key],
            )
            before = there.rows if there is not None else {}
            for number in before.keys() - found.rows.keys():
                yield "sensor_tuples", {"sensor_table": key, "tuple": number}, []
            new = [_kept(key, n, row) for n, row in found.rows.items() if before.get(n) is not row]
            yield "sensor_tuples", {"sensor_table": key, "tuple": -1}, new

    def saved(self) -> None:
        """Everything is on the disk as it is."""
        self.changed.clear()
        self._on_disk = dict(self._by_key)

    def restore(
        self, tables: Collection[Mapping[str, Any]], tuples: Collection[Mapping[str, Any]], last: int
    ) -> None:
        """What :meth:`table_rows` and :meth:`tuple_rows` said."""
        rows: dict[str, dict[int, tuple[Kept, ...]]] = {}
        for row in tuples:
            rows.setdefault(row["sensor_table"], {})[row["tuple"]] = tuple(json.loads(row["column_values"]))
        for row in tables:
            table = SensorTable.of(row["shown"], row["owner"], row["stream"], json.loads(row["columns"]))
            self._by_key[row["name"]] = Tuples(table, rows.get(row["name"], {}), row["last_tuple"])
        self.last_stream = last
        self.saved()


def _kept(key: str, number: int, row: tuple[Kept, ...]) -> dict[str, Any]:
    return {"sensor_table": key, "tuple": number, "column_values": json.dumps(row)}
