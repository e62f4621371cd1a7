"""Tables of sensors that are no motes: statements that change them, and what queries over them are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from skerry.execution.join_sets import member_of
from skerry.joins.join import Join
from skerry.planner.model.joined_tables import Tables as Schemas
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinPlan, Term
from skerry.planner.model.source_windows import SourceGrouping
from skerry.planner.model.table_lookups import TableLookup
from skerry.sensors.definitions import SensorTable
from skerry.sensors.looking_up import found_by
from skerry.sensors.made_streams import table_of
from skerry.sensors.planning import planned
from skerry.sensors.store import Done, SensorStore, Tuples
from skerry.sensors.traffic import Traffic
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries, UserQuery
from skerry.sources.addresses import address_of, wrong
from skerry.sources.statistics import SourceStatistics
from skerry.sources.stream_type import schemes
from skerry.sql import sensor_statements, stream_statements
from skerry.sql.errors import QueryError
from skerry.sql.sensor_statements import Copy, Insert, Update
from skerry.sql.stream_statements import CreateStream, DropStream, ShowStreams
from skerry.sql.units import duration_text
from skerry.storage.state import StorageError
from skerry.tables.journal import Tables
from skerry.tables.lookup_checks import trouble_of

#: The folder in the data directory that COPY and sources read files from.
FILES = "streams"
#: Of rows that come together so many are looked at for addresses that cannot be opened.
_CHECKED = 1_000
#: What answers wait for that are not there with their rows.
_WAITS = {
    "left": "LEFT JOIN: a row of {one} that meets none of {other} is answered, with NULLs, once progress is past its window",
    "asof": "ASOF JOIN: a row of {one} is answered with the latest one of {other} once progress is past its time, if there is one",
    "asof left": "ASOF LEFT JOIN: a row of {one} is answered with the latest one of {other}, or NULLs, once progress is past its time",
}
#: Of several such joins, one behind the other.
_WAIT_TOGETHER = (
    "what is not there, and what is the latest, is answered once progress is {us} past the row of {one}"
)


class SensorService:
    """Methods are called under ``lock``, or take it."""

    def __init__(
        self,
        lock: threading.RLock,
        data: Path,
        queries: Queries,
        persistence: Persistence,
        store: SensorStore,
        statistics: SourceStatistics,
        sources: Sequence[str],
        tables: Tables,
        schemas: Callable[[], Schemas],
    ) -> None:
        """``sources``: what may be opened (:mod:`skerry.sources.addresses`); ``tables``: that streams may be joined with, ``schemas``:
        those of files by name in lower case."""
        self._lock, self._queries, self._persistence = lock, queries, persistence
        self.store, self.files, self._statistics, self._allowed = store, data / FILES, statistics, sources
        self._tables, self._schemas = tables, schemas
        #: Tables that are indexes of what motes store, by name in lower case.
        self.indexes: Callable[[], dict[str, SensorTable]] = dict
        store.seen = lambda number: statistics.seen(number, time.time())

    def run(self, sql: str, user: str) -> Done | None:
        """Do what a statement about such tables says; None: it is none. Raises QueryError, StorageError: nothing has changed."""
        if not sensor_statements.is_one(sql):
            return None
        statement = sensor_statements.parse(sql)
        with self._lock:
            before = self.store.snapshot()
            named = statement.name.name.lower() if isinstance(statement, Insert | Update | Copy) else None
            of_before = self.store.tuples(named) if named is not None else None
            done = self.store.run(statement, user, self.files, sql)
            if of_before is not None and named is not None:
                done = replace(done, text=done.text + self._wrong(of_before, self.store.tuples(named)))
            if self.store.changed:
                try:
                    self._persistence.save()
                except StorageError:
                    self.store.put_back(before)
                    raise
            return done

    def _wrong(self, before: Tuples, after: Tuples | None) -> str:
        """What is told of addresses that have come and cannot be opened."""
        stream = after.table.stream if after is not None else None
        if after is None or stream is None:
            return ""
        place = after.table.place(stream.name)
        assert place is not None
        new = (row for number, row in after.rows.items() if before.rows.get(number) != row)
        asked = dict.fromkeys(filter(None, (address_of(row, place) for row in islice(new, _CHECKED))))
        known = schemes()
        said = [text for one in asked if (text := wrong(one, known, self._allowed, self.files)) is not None]
        several = f"{len(said)} addresses, the first one" if len(said) > 1 else "an address"
        return f"; {several} cannot be opened: {said[0]}" if said else ""

    def stream_statement(self, sql: str, user: str) -> Done | SensorTable | None:
        """What SHOW STREAMS shows, or the stream that is to be dropped; None: it says neither. Raises QueryError."""
        statement = stream_statements.parse(sql)
        with self._lock:
            match statement:
                case ShowStreams():
                    return self.store.show_made()
                case DropStream(name):
                    try:
                        return self.store.made(name, user)
                    except QueryError as error:
                        raise error.within(sql) from None
        return None

    def make(self, query: UserQuery) -> Done:
        """The table of the stream that a query fills, from now on. Raises QueryError: its name is taken."""
        plan, statement = query.plan.sources, stream_statements.parse(query.sql)
        assert plan is not None
        assert isinstance(statement, CreateStream)
        try:
            self.store.check_free(statement.name)
        except QueryError as error:
            raise error.within(query.sql) from None
        table = table_of(plan, query.user, query.id)
        self.store.add_made(table, statement.select.strip())
        return Done(
            f"stream {table.name} has {len(plan.outputs)} fields, and query {query.id} fills it: SELECT … FROM {table.name}"
        )

    def explain(self, plan: QueryPlan) -> dict[str, Any]:
        """What would be opened for a query, and its notes."""
        described = self._explained(plan)
        sources, notes = plan.sources, list(plan.notes)
        lookups = sources.lookups.tables if sources is not None and sources.lookups is not None else ()
        if sources is not None and sources.made.lower() in self.store.tables():
            notes.append(f"there is a table '{sources.made}' already, so that CREATE STREAM would be refused")
        lines = [described["text"], *map(_said, lookups), *(f"note: {note}" for note in notes)]
        tables = [one.shown for one in lookups]
        return {**described, "tables": tables, "notes": notes, "text": "\n".join(lines)}

    def _explained(self, plan: QueryPlan) -> dict[str, Any]:
        """What would be opened for a query."""
        sources = plan.sources
        assert sources is not None
        if sources.join is not None:
            described = self._explain_join(sources.join, sources.grouping)
            past = "\nwhat has come of these answers it: no source is opened, and it ends"
            return described if plan.history is None else {**described, "text": described["text"] + past}
        found = self.store.tuples(sources.table)
        assert found is not None
        count, all_ = len(found.chosen(sources.chosen)), len(found.rows)
        if sources.stream is None:
            text = f"static columns of {found.table.name} answer it: no source is opened, and it ends"
        elif plan.history is not None:
            text = f"what has come of {count} of the {all_} sources of {found.table.name} answers it: none is opened, and it ends"
        else:
            text = f"{count} of the {all_} sources of {found.table.name} are opened, if no other query has opened them"
        return {
            "table": found.table.name,
            "stream": sources.stream,
            "sources": count,
            "of": all_,
            "text": text,
        }

    def _explain_join(self, join: JoinPlan, grouping: SourceGrouping | None) -> dict[str, Any]:
        """What would be opened for a join, or for what is mined, and how it would run; ``grouping``: what is made of its answers."""
        lines, aliases, spec = [join.reason], list[dict[str, Any]](), join.executed()
        joined = member_of(spec).join if "aliases" in spec else None
        kind = joined.kind if joined is not None else "mined"
        if kind == "rows":
            lines = ["a stream of its own: each row that is asked for"]
        if joined is not None:
            lines += _waits(joined)
        if kind not in ("rows", "mined"):
            lines.append(f"rows may be late by LATENESS {duration_text(spec['lateness_us'] / 1000)}")
        for one in join.tables:
            if one.motes is not None:
                aliases.append({"alias": one.alias, "table": one.table, "motes": one.motes})
                lines.append(f"{one.alias}: motes are asked {one.motes}")
                continue
            found = self.store.tuples(one.table)
            assert found is not None
            count, all_ = len(found.chosen(one.chosen)), len(found.rows)
            aliases.append({"alias": one.alias, "table": found.table.name, "sources": count, "of": all_})
            lines.append(f"{one.alias}: {count} of the {all_} sources of {found.table.name}")
        if join.questions and kind == "mined":
            lines.append("rows of motes are mined at the gateway")
        elif join.questions:
            lines.append(
                "rows of motes join at the gateway; motes whose rows can join no other send them all the same"
            )
        lines += [join.keeps] if join.keeps else []
        if grouping is not None and grouping.frame is not None:
            wait = duration_text(grouping.wait_ms)
            lines.append(
                f"windows are of its answers: one is there when the time of an answer is {wait} behind its end"
            )
        return {"kind": kind, "algorithm": join.algorithm, "aliases": aliases, "text": "\n".join(lines)}

    def plan(self, sql: str) -> QueryPlan | None:
        """The plan of a query over such a table; None: it is over none. Raises QueryError."""
        with self._lock:
            statics = self._queries.statics.all()
            tables = {**self.store.tables(), **self.indexes()}
            plan = planned(sql, tables, self.store.shapes, self._traffic, statics, self._schemas)
            lookups = plan.sources.lookups if plan is not None and plan.sources is not None else None
            why = trouble_of(lookups, self._tables) if lookups is not None else None
            if why is not None:
                hint = "join it by what tells its rows apart, or mend the table"
                raise QueryError(why, hint)
            return plan

    def _traffic(self, table: SensorTable, chosen: Term | None) -> Traffic:
        found = self.store.tuples(table.key)
        return self._statistics.traffic(table.number, found.chosen(chosen) if found is not None else [])


def _said(lookup: TableLookup) -> str:
    """How rows find those of a table."""
    of = f"table {lookup.shown}" + ("" if lookup.shown == lookup.called else f" as {lookup.called}")
    by = found_by(lookup)
    how = f"found by {', '.join(by)}" if by else "each row is compared with all of its rows"
    return f"then joined with {of}: {how}" + ("; NULLs where there is none" if lookup.left else "")


def _waits(join: Join) -> list[str]:
    """What answers wait for."""
    if len(join.steps) > 1:
        us = duration_text(Decimal(join.reach_us) / 1000)
        return [_WAIT_TOGETHER.format(us=us, one=join.aliases[0])]
    said = _WAITS.get(join.kind)
    return [said.format(one=join.aliases[0], other=join.aliases[1])] if said is not None else []
