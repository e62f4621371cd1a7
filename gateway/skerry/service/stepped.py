"""A gateway in virtual time: ``python -m skerry.service.stepped``.

It is the gateway, but for what lives by this machine's clock: HTTP, Spark and threads. Whoever starts it tells the time and what the root
has said, and is told what the root is to hear and which rows users get (:mod:`skerry.service.step_messages`), so that the same is the
same to the bit when it is repeated.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from skerry.catalog.static_attributes import Statics
from skerry.expressions.ranges import doubt
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sensors.store import Done
from skerry.service.gateway import Gateway
from skerry.service.join_text import WITH_SPARK, for_motes
from skerry.service.queries import UnknownQueryError, UserQuery
from skerry.service.query_service import Stopped
from skerry.service.reader import Reader
from skerry.service.step_messages import UTC_OF_START, Begin, End, Ended, QueryReport, Step, Told
from skerry.sql import index_statements
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry.sql.errors import QueryError
from skerry.sql.row_text import json_text
from skerry.tables.store import TableStore

#: Virtual s between two looks at how queries are.
NOTED_S = 1.0


class Clock:
    """In place of this process's: s since the start, which only :class:`~skerry.service.step_messages.Step` moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def rule(self) -> None:
        """From now on it is what this process asks for the time."""
        time.time = lambda: UTC_OF_START + self.now
        time.time_ns = lambda: round((UTC_OF_START + self.now) * 1e9)
        time.monotonic = lambda: self.now
        time.clock_gettime = lambda _: self.now


@dataclasses.dataclass
class _Reading:
    """A query, what is told of it in the end, and how far its rows have been told."""

    query: UserQuery
    asked: QueryReport
    reader: Reader | None


class SteppedGateway:
    """One, with one root. ``attributes``: static ones that motes were given values of."""

    def __init__(self, data: Path, tables: Path | None, clock: Clock, attributes: Sequence[str] = ()) -> None:
        self._clock, self._out, self._wanted = clock, bytearray(), list[tuple[str, str]]()
        self._gateway = Gateway(["emulated"], data, tables=tables, joins_itself=False)
        self._gateway.inventory.attributes.expect(attributes, "anonymous")
        self._link = self._gateway.roots[0].link
        self._link.attach(self._out.extend)
        self._readings: dict[str, _Reading] = {}
        #: In the order they were asked in; None: a statement that stops others.
        self._asked: list[str | None] = []
        self._noted = 0.0
        #: By query, where its rows were joined when that was last told.
        self._joined: dict[str, str] = {}

    @property
    def statics(self) -> Statics:
        """Static attributes that users have made."""
        return self._gateway.inventory.attributes.made()

    def step(self, step: Step) -> Told:
        """A while goes by."""
        self._clock.now = step.now
        self._wanted += step.ask
        told = Told()
        self._gateway.links.take([step.data])
        self._ask(told)
        for number in step.stop:
            self._stop(number)
        self._gateway.delivery.deliver()
        self._read(told)
        if self._clock.now - self._noted >= NOTED_S:
            self._noted = self._clock.now
            self._note_all()
            self._note_joins(told)
        told.data = bytes(self._out)
        self._out.clear()
        return told

    def _ask(self, told: Told) -> None:
        while self._wanted and self._gateway.queries.known and told.error is None:
            sql, user = self._wanted.pop(0)
            try:
                answer = self._gateway.queries.ask(sql, user)
            except (QueryError, UnknownQueryError) as error:
                told.error = str(error) if isinstance(error, QueryError) else error.args[0]
                return
            if isinstance(answer, Stopped | Done):
                self._asked.append(None)
                continue
            self._asked.append(answer.id)
            told.notes += answer.plan.notes
            never = doubt(answer.plan.where)
            told.notes += [never] if never is not None else []
        for query in self._gateway.queries.all():
            if query.id not in self._readings:
                self._add(query)

    def _add(self, query: UserQuery) -> None:
        columns = [output.name for output in query.plan.outputs]
        keeps = query.plan.into is not None or query.srt is not None
        self._readings[query.id] = _Reading(
            query,
            QueryReport(query.id, query.user, query.sql, self._clock.now, query.started_by, columns, list(query.plan.notes)),
            None if keeps else self._gateway.delivery.reader(query, None),
        )  # fmt: skip

    def _stop(self, number: int) -> None:
        """One that has ended by itself, or is not asked yet, is no error: it was not to run any more."""
        query = self._asked[number] if number < len(self._asked) else None
        if query is None:
            return
        self._note(self._readings[query])
        try:
            self._gateway.queries.stop(query)
        except UnknownQueryError:
            return

    def _read(self, told: Told) -> None:
        for reading in self._readings.values():
            while reading.reader is not None:
                try:
                    portion = reading.reader.read()
                except UnknownQueryError:
                    reading.asked.stopped, reading.reader = True, None
                    break
                for delivery in portion.deliveries:
                    told.rows += [(reading.query.id, _plain(row)) for _, row in delivery.values()]
                if not portion.more:
                    break

    def _note_all(self) -> None:
        for reading in self._readings.values():
            self._note(reading)

    def _note_joins(self, told: Told) -> None:
        """Where motes join, as it begins and when that changes."""
        status = {joined["query"]: joined for joined in self._gateway.pairs.status()}
        for query, joined in status.items():
            self._readings[query].asked.joined = joined
        for query, text in self._gateway.pairs.told().items():
            if self._joined.get(query) != text:
                self._joined[query] = text
                told.joined.append(status[query])
                told.notes.append(f"query {query} at {self._clock.now:.0f} s: {text}")

    def _note(self, reading: _Reading) -> None:
        """What is known of it while it runs: afterwards the gateway does not."""
        query, asked = reading.query, reading.asked
        if asked.stopped:
            return
        asked.finished, asked.paused = query.finished, self._gateway.delivery.paused(query)
        if not query.past_only:
            asked.mote_queries = sorted(set(asked.mote_queries) | self._gateway.queries.mote_queries(query))
            asked.refused = self._gateway.queries.refused(query) or asked.refused

    def end(self) -> Ended:
        """Of what was asked, and how it goes."""
        self._note_all()
        alarms = [str(alarm["text"]) for alarm in self._gateway.alarms.active()]
        self._gateway.close()
        return Ended([reading.asked for reading in self._readings.values()], alarms)


def _plain(row: dict[str, object]) -> dict[str, object]:
    """As JSON says it."""
    plain: dict[str, object] = json.loads(json_text(row))
    return plain


def trouble(statements: list[str], tables: Path, statics: Statics) -> str | None:
    """What is wrong with the first that is wrong; None: nothing that can be known before motes are. What comes behind one that makes a
    storage point or an index is looked at when it is asked."""
    store = TableStore(tables)
    for sql in statements:
        try:
            if index_statements.is_one(sql):
                index_statements.parse(sql)
                break
            joined = for_motes(sql)
            if joined is not None:
                _check_joined(sql, joined, statics)
                continue
            planned = plan_query(sql, tables=store.schemas(), statics=statics)
        except QueryError as error:
            return str(error)
        if isinstance(planned, CreatePoint) or (isinstance(planned, QueryPlan) and planned.into):
            break
        if isinstance(planned, CreateSrt):
            continue
    return None


def _check_joined(sql: str, joined: str, statics: Statics) -> None:
    """A join that is to be joined where it is cheapest; ``joined``: the same, at the base. Raises QueryError where motes cannot, with what
    would be right for them."""
    try:
        plan_query(joined, statics=statics)
    except QueryError as error:
        hint = f"{error.hint}; else {WITH_SPARK}" if error.hint else WITH_SPARK
        message = f"motes cannot join these rows: {error.message}"
        raise QueryError(message, hint, error.span, sql) from None


def main() -> None:
    """Lines from standard input, answers on standard output, until :class:`~skerry.service.step_messages.End` or the input's."""
    logging.basicConfig(format="skerry gateway: %(message)s", level=logging.WARNING)
    lines, encode = sys.stdin.buffer, msgspec.json.encode
    clock = Clock()
    clock.rule()
    begin = msgspec.json.decode(lines.readline(), type=Begin)
    random.seed(begin.seed)
    data = Path(begin.data)
    tables = Path(begin.tables) if begin.tables is not None else data / "tables"

    def say(answer: msgspec.Struct) -> None:
        sys.stdout.buffer.write(encode(answer) + b"\n")
        sys.stdout.buffer.flush()

    gateway = SteppedGateway(data, tables, clock, begin.attributes)
    error = trouble(begin.statements, tables, gateway.statics)
    say(Told(error=error))
    if error is not None:
        gateway.end()
        return
    for line in lines:
        message = msgspec.json.decode(line, type=Step | End)
        if isinstance(message, End):
            say(gateway.end())
            return
        say(gateway.step(message))


if __name__ == "__main__":
    main()
