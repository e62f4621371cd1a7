"""The process that the past's engine runs in: DuckDB, and what finishes what it folds.

``python -m skerry.storage.history.engine.process FD``: a socket to the gateway. It ends when the gateway hangs up.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from skerry.execution.residual import to_array, type_of
from skerry.expressions import extension_aggregates
from skerry.expressions.evaluate import Vector
from skerry.expressions.expression import Kind
from skerry.planner.model.plans import Output, QueryPlan
from skerry.sql.errors import QueryError
from skerry.storage.history.damaged_files import DamagedError
from skerry.storage.history.engine import mined_past
from skerry.storage.history.engine.cluster import ClusterLink, ClusterQuestion
from skerry.storage.history.engine.expressions import ROW
from skerry.storage.history.engine.finishing import Groups, Numbered
from skerry.storage.history.engine.joined_past import JoinedPast
from skerry.storage.history.engine.joins import places_of
from skerry.storage.history.engine.messages import (
    Answered,
    Begin,
    Cancel,
    ClusterAnswer,
    Failed,
    Forget,
    Question,
    Refused,
    Sources,
    Stop,
)
from skerry.storage.history.engine.moments import Moments
from skerry.storage.history.engine.running import Running
from skerry.storage.history.engine.selects import (
    LATE,
    Range,
    columns_needed,
    group_selects,
    ordered_select,
    rows_select,
)
from skerry.storage.history.engine.source_past import SourcePast
from skerry.storage.history.engine.sources import check_files, open_past, open_readings, versions
from skerry.storage.history.engine.tables import open_tables
from skerry.storage.history.engine.windows import windows
from skerry.storage.history.sorting import check_room
from skerry.storage.log.stream_log import RowsGoneError

log = logging.getLogger(__name__)

#: Answers that are kept for their readers' next piece.
KEPT = 16
#: Bytes of those that are in memory, at most, but for the newest.
KEPT_BYTES = 256 * 2**20
#: Parts of a past grow and shrink by this.
_STEP = 16
#: What else has the machine to do goes first.
_NICE = 10
_BATCH_ROWS = 65_536
#: Rows of the log that are mined at a time.
_MINED_ROWS = 1 << 20
Select = Callable[[Range], exp.Select]


class Worker:
    """Answers questions, each in a thread of its own."""

    def __init__(self, connection: Connection, begin: Begin) -> None:
        self._connection, self._limits = connection, begin.limits
        self._saying = threading.Lock()
        self._lock = threading.Lock()
        self._cluster = ClusterLink(self._say)
        self._directory = Path(begin.directory)
        #: A connection is asked by one thread at a time.
        self._reading = threading.Lock()
        Path(begin.directory).mkdir(parents=True, exist_ok=True)
        self._database = duckdb.connect(
            config={
                "threads": begin.limits.threads,
                "memory_limit": f"{begin.limits.memory}B",
                "temp_directory": begin.directory,
                "max_temp_directory_size": f"{begin.limits.disk}B",
            }
        )
        self._database.execute(
            "SET parquet_metadata_cache = true; SET enable_external_file_cache = false; SET enable_progress_bar = false"
        )
        #: By key: answers that are known as a whole, or connections with a table that has them; how many rows a part has.
        self._whole: OrderedDict[int, Numbered | duckdb.DuckDBPyConnection] = OrderedDict()
        self._spans: OrderedDict[int, int] = OrderedDict()
        #: Questions that are being answered, by number.
        self._running: dict[int, Running] = {}
        self._loaded: set[str] = set()

    def serve(self) -> None:
        """Until the gateway hangs up."""
        while True:
            try:
                word = self._connection.recv()
            except (EOFError, OSError):
                return
            match word:
                case Question():
                    running = Running(word.key)
                    with self._lock:
                        self._running[word.number] = running
                    threading.Thread(target=self._take, args=(word, running), daemon=True).start()
                case Cancel(number):
                    with self._lock:
                        answered = self._running.get(number)
                    if answered is not None:
                        answered.give_up()
                case ClusterAnswer() as answer:
                    self._cluster.answered(answer)
                case Forget(key):
                    self._forget(key)
                case Stop():
                    return

    def _say(self, word: object) -> None:
        with self._saying:
            try:
                self._connection.send(word)
            except OSError:
                return

    def _take(self, question: Question, running: Running) -> None:
        try:
            answer: object = self._answer(question, running)
        except Exception as error:
            answer = self._failure(question.number, running, error)
        with self._lock:
            del self._running[question.number]
        self._say(answer)

    def _failure(self, number: int, running: Running, error: Exception) -> Refused | Failed:
        """What is said in place of an answer."""
        if running.given_up:
            return Failed(number, "nobody waits for it", given_up=True)
        if running.late:
            seconds = f"{self._limits.seconds:g} s"
            error = _over(
                f"its answer takes longer than {seconds}, the most that one about the past may take"
            )
        elif isinstance(error, duckdb.OutOfMemoryException):
            memory, disk = (f"{size / 2**20:,.0f} MiB" for size in (self._limits.memory, self._limits.disk))
            needs = f"its answer needs more than {memory} of memory and {disk} of temporary files"
            error = _over(f"{needs}, the most that questions about the past may take")
        if isinstance(error, QueryError):
            return Refused(number, error.message, error.hint)
        if isinstance(error, DamagedError):
            return Failed(number, str(error), damaged=True)
        if isinstance(error, RowsGoneError | FileNotFoundError):
            return Failed(number, str(error), moved=True)
        return Failed(number, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")

    def _forget(self, key: int) -> None:
        with self._lock:
            kept = self._whole.pop(key, None)
            self._spans.pop(key, None)
            for running in self._running.values():
                if running.key == key:
                    running.give_up()
        if isinstance(kept, duckdb.DuckDBPyConnection):
            kept.close()

    # ---- answers ----

    def _answer(self, question: Question, running: Running) -> Answered:
        self._load(question.extensions)
        plan, last = question.plan, max(question.sources.end - 1, 0)
        assert plan.history is not None
        with self._lock:
            kept = self._whole.get(question.key)
            if kept is not None:
                self._whole.move_to_end(question.key)
        if isinstance(kept, tuple):
            return _next_piece(question, kept, last)
        if plan.sources is not None:
            return self._of_sources(question, running)
        if kept is not None:
            return self._of_table(question, kept)
        with self._connected(question, running) as past:
            whole = self._computed(question, past)
            if whole is not None:
                self._keep(question.key, whole)
                return _next_piece(question, whole, last)
            end, timing = question.sources.end, question.timing
            if plan.history.recorded:
                return self._of_parts(question, past, lambda part: rows_select(plan, part, end, timing))
            past.keep(rows_select(plan, Range(0, end), end, timing), "answer", _in_order(plan))
            self._keep(question.key, past.connection)
            return self._of_table(question, past.connection)

    def _of_sources(self, question: Question, running: Running) -> Answered:
        """Of rows that are no motes', and what table functions find in any."""
        if question.plan.sources is not None and question.plan.sources.of_motes:
            return self._mined_of_motes(question, running)
        connection = self._database.cursor()
        try:
            with running.on(connection, self._limits.seconds):
                past = _past_of(question)(question, lambda: running.ends)
                whole = past.whole()
                if whole is not None:
                    self._keep(question.key, whole)
                    return _next_piece(question, whole, max(question.sources.end - 1, 0))
                rows, position, more = past.piece()
                return _piece(question.number, rows, position, more=more)
        finally:
            connection.close()

    def _mined_of_motes(self, question: Question, running: Running) -> Answered:
        """What table functions find in what motes have reported."""
        plan, first, end = question.plan, question.sources.first, question.sources.end
        assert plan.sources is not None

        def rows() -> mined_past.Rows:
            for start in range(first, end, _MINED_ROWS):
                part = Range(start if start > first else 0, min(start + _MINED_ROWS, end))
                found = past.table(rows_select(plan, part, end, question.timing), _MINED_ROWS)
                yield mined_past.of_motes(*_numbered(plan, _sorted(plan, found)))

        with self._connected(question, running) as past:
            answer = mined_past.mined(plan.sources, rows(), question.most)
        whole = np.full(answer.num_rows, max(end - 1, 0), np.int64), answer
        self._keep(question.key, whole)
        return _next_piece(question, whole, max(end - 1, 0))

    def _computed(self, question: Question, past: _Past) -> Numbered | None:
        """An answer that is known as a whole; None: it comes in pieces."""
        plan = question.plan
        if plan.window is not None:
            return _windows(question, past)
        if plan.aggregate:
            return _groups(question, past)
        return _ordered(question, past) if plan.order is not None else None

    def _keep(self, key: int, whole: Numbered | duckdb.DuckDBPyConnection) -> None:
        """For the next piece. Tables' rows DuckDB puts on the disk where memory has no room."""
        gone = []
        with self._lock:
            self._whole[key] = whole
            while len(self._whole) > 1 and (len(self._whole) > KEPT or self._kept_bytes() > KEPT_BYTES):
                gone.append(self._whole.popitem(last=False)[1])
        for one in gone:
            if isinstance(one, duckdb.DuckDBPyConnection):
                one.close()

    def _kept_bytes(self) -> int:
        return sum(one[1].nbytes for one in self._whole.values() if isinstance(one, tuple))

    @contextmanager
    def _connected(self, question: Question, running: Running) -> Iterator[_Past]:
        """The past as relations, whose questions are interrupted when nobody waits for them any more, or they take too long."""
        connection = self._database.cursor()
        names = columns_needed(question.plan)
        directory = self._directory / f"cluster-{question.number}"
        cluster = ClusterQuestion(self._cluster, question, running, directory)
        try:
            before = versions(question.sources)
            with running.on(connection, self._limits.seconds):
                open_past(connection, question.sources, names)
                if question.plan.history is not None and not question.plan.history.recorded:
                    open_readings(connection, question.sources, names, question.plan.period_ms)
                open_tables(connection, question)
                yield _Past(connection, cluster, question.sources, self._limits.cluster_rows, running)
            if versions(question.sources) != before:
                # Some of its rows may be there twice, or not at all.
                self._forget(question.key)
                raise FileNotFoundError("files were replaced meanwhile")
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise
        except duckdb.Error:
            # Which file it is DuckDB does not always say.
            check_files(question.sources, names)
            raise
        finally:
            cluster.close()
            with self._lock:
                kept = any(one is connection for one in self._whole.values())
            if not kept:
                connection.close()

    def _load(self, folders: tuple[str, ...]) -> None:
        with self._lock:
            for folder in folders:
                if folder not in self._loaded:
                    self._loaded.add(folder)
                    extension_aggregates.load(Path(folder), ())

    def _of_parts(self, question: Question, past: _Past, select: Select) -> Answered:
        """The next rows, of a part of the past that has about as many as one piece holds."""
        end, start = question.sources.end, max(question.position + 1, question.sources.first)
        with self._lock:
            span = self._spans.pop(question.key, end)
        while start < end:
            stop = min(start + span, end)
            part = Range(start if start > question.sources.first else 0, stop)
            # Of a join, one row may bring more than there is in a piece: rows of one number stay together.
            least = 1 if question.plan.probes else question.piece
            most = question.piece if stop - start > least else sys.maxsize
            found = past.at_most(select(part), most, stop - start)
            if found is None:
                span = max(least, (stop - start) // _STEP)
                continue
            if found.num_rows or stop == end:
                with self._lock:
                    self._spans[question.key] = (
                        span if found.num_rows * _STEP > question.piece else span * _STEP
                    )
                    if len(self._spans) > _STEP * KEPT:
                        self._spans.popitem(last=False)
                rows = _numbered(question.plan, _sorted(question.plan, found))
                return _piece(question.number, rows, stop - 1, more=stop < end)
            start, span = stop, span * _STEP
        nothing = _numbered(question.plan, past.table(select(Range(end, end - 1)), 0))
        return _piece(question.number, nothing, max(end - 1, question.position), more=False)

    def _of_table(self, question: Question, connection: duckdb.DuckDBPyConnection) -> Answered:
        """The next rows of an answer that a table has, in the order of the log."""
        order = f"ORDER BY {_in_order(question.plan)}"
        text = f'SELECT * FROM answer WHERE "{ROW}" > {question.position} {order} LIMIT {question.piece}'
        with self._reading:
            found = connection.sql(text).to_arrow_table()
            more = found.num_rows == question.piece
            if more and question.plan.probes:
                found = _whole_rows(connection, found, order)
        last = int(found.column(ROW)[-1].as_py()) if more else max(question.sources.end - 1, 0)
        return _piece(question.number, _numbered(question.plan, found), last, more=more)


def _past_of(question: Question) -> type[SourcePast]:
    """What answers about sources that are no motes."""
    sources = question.plan.sources
    if sources is None or sources.join is None:
        return SourcePast
    return mined_past.MinedPast if "mines" in sources.join.executed() else JoinedPast


def _in_order(plan: QueryPlan) -> str:
    return ", ".join(f'"{name}"' for name in (ROW, *places_of(plan)))


def _sorted(plan: QueryPlan, table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in (ROW, *places_of(plan))])


def _whole_rows(connection: duckdb.DuckDBPyConnection, found: pa.Table, order: str) -> pa.Table:
    """Pairs without those of the last row of the log, some of which may be missing; where there are no others, all of them."""
    numbers = found.column(ROW).to_numpy()
    complete = int(np.searchsorted(numbers, numbers[-1]))
    if complete:
        return found.slice(0, complete)
    return connection.sql(f'SELECT * FROM answer WHERE "{ROW}" = {int(numbers[-1])} {order}').to_arrow_table()


def _over(limit: str) -> QueryError:
    """What is said where a limit was reached."""
    return QueryError(limit, "ask for a shorter HISTORY, for fewer rows with WHERE, or for fewer groups")


class _Past:
    """The relations of one question. ``many``: so many rows are for the cluster; None: there is none."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        cluster: ClusterQuestion,
        sources: Sources,
        many: int | None,
        running: Running,
    ) -> None:
        self.connection = connection
        self._cluster, self._sources, self._many, self._running = cluster, sources, many, running

    def ends(self) -> bool:
        """Whether its answer is to end."""
        return self._running.ends

    def register(self, name: str, table: pa.Table) -> None:
        """One more relation."""
        self.connection.register(name, table)
        self._cluster.register(name, table)

    def table(self, select: exp.Select, rows: int | None = None) -> pa.Table:
        """All rows of a question about so many, None: about all."""
        files = self._of_cluster(select, rows)
        if files is None:
            return self.connection.sql(select.sql("duckdb")).to_arrow_table()
        return pa.concat_tables([pq.read_table(file) for file in files])

    def keep(self, select: exp.Select, name: str, order: str) -> None:
        """Make a table of all rows of a question."""
        files = self._of_cluster(select, None)
        source = f"({select.sql('duckdb')})" if files is None else f"read_parquet({files})"
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {source} ORDER BY {order}"
        )

    def at_most(self, select: exp.Select, most: int, rows: int) -> pa.Table | None:
        """The rows of a question about so many; None: they are more than ``most``."""
        limited = select.limit(most + 1) if most < sys.maxsize else select
        files = self._of_cluster(limited, rows)
        if files is not None:
            found = pa.concat_tables([pq.read_table(file) for file in files])
            return found if found.num_rows <= most else None
        reader = self.connection.sql(select.sql("duckdb")).to_arrow_reader(_BATCH_ROWS)
        batches, count = [], 0
        for batch in reader:
            batches.append(batch)
            count += batch.num_rows
            if count > most:
                reader.close()
                return None
        return pa.Table.from_batches(batches, schema=reader.schema)

    def _of_cluster(self, select: exp.Select, rows: int | None) -> list[str] | None:
        """Files with the cluster's answer; None: it is for DuckDB."""
        if self._many is None:
            return None
        there = sum(file.rows for file in self._sources.files)
        if min(there, there if rows is None else rows) < self._many:
            return None
        found = self._cluster.files(select)
        if isinstance(found, list):
            return found
        if self._running.ends:
            raise duckdb.InterruptException(found)
        # The answer is the same, and comes later.
        log.warning("the cluster has no answer: %s; it is made here", found)
        return None


def _groups(question: Question, past: _Past) -> Numbered:
    selects = group_selects(question.plan, question.sources.end, question.timing)
    tables = [
        past.table(select)
        for select in (
            selects.groups,
            *([selects.motes] if selects.motes else []),
            *selects.values.values(),
        )
    ]
    motes = tables[1] if selects.motes else None
    values = dict(zip(selects.values, tables[len(tables) - len(selects.values) :], strict=True))
    groups = Groups(question.plan, tables[0], selects.names, motes, values, question.most)
    return groups.rows(max(question.sources.end - 1, 0))


def _windows(question: Question, past: _Past) -> Numbered:
    plan, timing, end = question.plan, question.timing, question.sources.end
    moments = Moments(plan, timing, question.sources, past.ends)
    past.register(LATE, pa.table({ROW: moments.late}))
    return windows(plan, end, timing, question.since_ms, past.table, moments)


def _ordered(question: Question, past: _Past) -> Numbered:
    plan, end = question.plan, question.sources.end
    assert plan.order is not None
    most = min(plan.order.limit or question.most + 1, question.most + 1)
    found = past.table(ordered_select(plan, end, most, question.timing))
    check_room(plan.order, found.num_rows, question.most)
    # Who stops among them begins again: all have the number of the last row there is.
    numbers = np.full(found.num_rows, max(end - 1, 0), np.int64)
    return numbers, _outputs(plan, found)


def _numbered(plan: QueryPlan, table: pa.Table) -> Numbered:
    return table.column(ROW).to_numpy(), _outputs(plan, table)


def _outputs(plan: QueryPlan, table: pa.Table) -> pa.RecordBatch:
    """A query's columns in SI."""
    arrays = [_array(table.column(f"o{i}"), output) for i, output in enumerate(plan.outputs)]
    schema = pa.schema([(output.name, type_of(output)) for output in plan.outputs])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(column: pa.ChunkedArray, output: Output) -> pa.Array:
    if output.expr.kind is Kind.TEXT:
        return column.cast(pa.string()).combine_chunks()
    return to_array(*_vector(column), output)


def _vector(column: pa.ChunkedArray) -> Vector:
    known = column.is_valid().to_numpy()
    filled = column.fill_null(0) if column.null_count else column
    return filled.cast(pa.int64()).to_numpy(), known


def _next_piece(question: Question, whole: Numbered, last: int) -> Answered:
    """What is behind a position of an answer that is known as a whole: rows of one number together. ``last``: where it ends."""
    numbers, columns = whole
    begin = int(numbers.searchsorted(question.position, "right"))
    more = begin + question.piece < len(numbers)
    if more:
        reached = numbers[begin + question.piece - 1]
        end = int(numbers.searchsorted(reached, "right"))
        more = end < len(numbers)
    else:
        end = len(numbers)
    rows = numbers[begin:end], columns.slice(begin, end - begin)
    return _piece(question.number, rows, int(numbers[end - 1]) if more else last, more=more)


def _piece(number: int, rows: Numbered, position: int, *, more: bool) -> Answered:
    numbers, columns = rows
    batch = pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int64()), *columns.columns],
        schema=pa.schema([pa.field("", pa.int64()), *columns.schema]),
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return Answered(number, sink.getvalue().to_pybytes(), position, more)


def main() -> None:
    """The process."""
    # Ctrl-C is the gateway's, which then hangs up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    connection = Connection(int(sys.argv[1]))
    begin = connection.recv()
    assert isinstance(begin, Begin)
    Worker(connection, begin).serve()
    # Threads that still answer are not waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
