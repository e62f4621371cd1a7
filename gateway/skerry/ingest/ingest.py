"""Packets of rows → records of the log: decoded by their query's columns, each kept once."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skerry.ingest.derived_rows import DerivedRows
from skerry.ingest.frames import Frame, Framed
from skerry.ingest.joined_rows import JoinedRows
from skerry.ingest.known_rows import KnownRows, by_stream, keys
from skerry.ingest.pairs_of_motes import PairsOfMotes
from skerry.ingest.partial_states import from_packet
from skerry.ingest.plain_rows import Layouts, QueryRows, RowRecords
from skerry.ingest.reorder import Reorder
from skerry.ingest.roll import Roll, SingleNetwork
from skerry.ingest.row_states import Values
from skerry.ingest.state_records import StateRecords
from skerry.ingest.stored_frames import Line
from skerry.planner.model.pairing import pairs_clause
from skerry.storage.log.record import RECORD, Kind, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Derived, Source, Stream, StreamEpoch
from skerry_protocol.codec import Packet, Result, Series, decode_values
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError

#: Rows of the log by which repetitions are recognised after a restart.
TAIL = 200_000
_NOTHING = struct.Struct("")
#: Rows of a stream of which is made again, after a restart, what was under way.
RESUMED = 50_000


@dataclass
class IngestCounters:
    """Rows refused, and partial states taken in, since the start."""

    duplicates: int = 0
    unknown: int = 0
    malformed: int = 0
    partials: int = 0


@dataclass(frozen=True)
class Brought:
    """Packets of one root. ``line``: what is written down of its partial states, so that they are known when they come again."""

    packets: Sequence[Packet]
    source: Source
    line: Line | None = None


class Ingest:
    """Makes records of what roots bring. ``reorder``: holds rows back that do not come in order; ``roll``: which motes are waited for.
    Not for several threads at once."""

    def __init__(self, reorder: Reorder | None = None, roll: Roll | None = None) -> None:
        self.counters = IngestCounters()
        self._reorder = reorder
        self._known = KnownRows()
        self._layouts = Layouts()
        self._undo: list[Callable[[], object]] = []
        self._states = StateRecords(self._undo, roll or SingleNetwork())
        self._derived = DerivedRows(self._undo, self._layouts)
        self._pairs = PairsOfMotes()

    def store(
        self, packets: list[Packet], source: Source, log: StreamLog, now_ms: int = 0, line: Line | None = None
    ) -> None:
        """See :meth:`store_all`."""
        self.store_all([Brought(packets, source, line)], log, now_ms)

    def store_all(self, brought: Sequence[Brought], log: StreamLog, now_ms: int = 0) -> None:
        """Take in what several roots have brought; when it returns, its rows are durable. ``now_ms``: network time.

        OSError: partial states could not be stored, and rows perhaps not, and it is as if those had not come. Their senders repeat them,
        and a row that is remembered but not stored would be taken for a duplicate, a merged state be merged again.
        """
        states, rows, partial = [], [], PacketType.PARTIAL
        for one in brought:
            partials = [packet for packet in one.packets if packet.type is partial]
            if partials:
                states.append(replace(one, packets=partials))
            if len(partials) < len(one.packets):
                rows.append(one)
        with self._counted():
            self._append(self._records(rows), log, now_ms)
        if states:
            with self._counted():
                self._store_states(states, log)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What could not be stored does not count."""
        counters = replace(self.counters)
        try:
            yield
        except OSError:
            self.counters = counters
            raise

    def _store_states(self, brought: Sequence[Brought], log: StreamLog) -> None:
        self._undo.clear()
        made: list[Any] = []
        #: Of each line the frames that brought states, and where their records are.
        told: list[tuple[Line, list[Frame], list[int]]] = []
        for one in brought:
            frames: list[Frame] = []
            own: list[int] = []
            for packet in one.packets:
                records = self._made(packet, one.source)
                if records and isinstance(packet, Framed):
                    frames.append(packet.frame)
                    own.append(len(made))
                made += records
            if one.line is not None and frames:
                told.append((one.line, frames, own))
        if not made:
            return
        made += self._states.ready()
        states = np.array(made, dtype=RECORD)
        numbers = log.numbers(states)
        with self._rollback_on_error():
            for line, frames, own in told:
                line.intend(frames, states[own], numbers[own])
            log.append(states)
        for line, _, _ in told:
            line.done()

    def release(self, log: StreamLog, now_ms: int) -> None:
        """Append to the log what was held back until now: rows to be put in order, epochs whose time is over. ``now_ms``: network time.
        OSError: it is as if nothing had been asked."""
        self._undo.clear()
        self._append(np.empty(0, RECORD), log, now_ms)
        self._complete(log, now_ms)
        self._join(log, now_ms)
        self._undo.clear()
        overdue = self._states.overdue(now_ms)
        self._append(np.array(overdue, RECORD) if overdue else np.empty(0, RECORD), log, now_ms)
        self.tell(log)

    def tell(self, log: StreamLog) -> None:
        """Append the epochs that are to be told by now. OSError: it is as if nothing had been asked."""
        self._undo.clear()
        made = self._states.ready()
        if made:
            with self._rollback_on_error():
                log.append(np.array(made, dtype=RECORD))

    def _append(self, records: Records, log: StreamLog, now_ms: int) -> None:
        with self._rollback_on_error():
            if self._reorder is not None:
                self._reorder.take(records, now_ms, log)
            elif len(records):
                log.append(records)

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """What could not be stored is not remembered."""
        try:
            yield
        except OSError:
            for undo in reversed(self._undo):
                undo()
            raise

    def restore(
        self,
        log: StreamLog,
        streams: dict[int, Stream],
        source_of: Callable[[Stream], Source | None] = lambda _: None,
        session_of: Callable[[int], int | None] | None = None,
    ) -> None:
        """After a restart: what is already in the log, or held back. ``source_of``: what brings a stream now; ``session_of``: the present
        session of a root, None where it has none, and as each stream says where nothing is said."""
        tail = log.tail(TAIL)
        self._remember_stored(tail, streams, session_of)
        told: set[tuple[int, int]] | None = None
        for number, places in by_stream(tail):
            stream = streams.get(number)
            source = source_of(stream) if stream is not None else None
            if stream is None or source is None or stream.mote_query.aggregate or not source.views(stream):
                continue
            if told is None:
                told = set(zip(tail["stream"].tolist(), tail["epoch"].tolist(), strict=True))
            self._resume(tail[places[-RESUMED:]], stream, source, told)
        if self._reorder is not None:
            held = keys(self._reorder.records, streams)
            self._reorder.forget([key is not None and key in self._known for key in held])
            self._remember_stored(self._reorder.records, streams, session_of)
        self._undo.clear()

    def _resume(
        self, records: Records, stream: Stream, source: Source, told: Collection[tuple[int, int]]
    ) -> None:
        """What is made of a stream's rows goes on where it was: pulses that have begun, counts and epochs that are not told yet.
        ``told``: streams and epochs that are in the log."""
        width = len(stream.mote_query.columns)
        views = source.views(stream)
        for record in records:
            nulls, epoch = int(record["nulls"]), int(record["epoch"])
            values = record["value"][:width].tolist()
            row = tuple(None if nulls >> i & 1 else value for i, value in enumerate(values))
            for _ in self._made_of(stream, source, views, int(record["node"]), epoch, row):
                pass  # it is in the log
        for epoch in dict.fromkeys(records["epoch"].tolist()):
            places = self._states.places(stream, source, epoch)
            if any((place.stream.number, place.epoch) in told for place in places):
                self._states.was_told(stream, epoch)

    def _remember_stored(
        self, records: Records, streams: dict[int, Stream], session_of: Callable[[int], int | None] | None
    ) -> None:
        """Rows and states that are on the disk."""
        self._known.remember(records, streams)
        for number, places in by_stream(records):
            stream = streams.get(number)
            if stream is None or not stream.mote_query.aggregate:
                continue
            present = stream.session if session_of is None else session_of(stream.root)
            if present != stream.session:
                # What was of a session that was over before has been told.
                continue
            for record in records[places]:
                part = record["kind"] == Kind.PART
                brought = session_of(int(record["node"])) if part and session_of is not None else None
                session = stream.session if brought is None else brought
                self._states.remember(record, StreamEpoch(stream, int(record["epoch"]), None, session))

    def records(self, packets: list[Packet], source: Source) -> Records:
        """Records of the rows and partial states among these packets, without those known already."""
        rows = self._records([Brought(packets, source)])
        states = [record for packet in packets for record in self._made(packet, source)]
        return np.concatenate([rows, np.array(states, dtype=RECORD)]) if states else rows

    def _records(self, brought: Sequence[Brought]) -> Records:
        """Records of rows."""
        self._undo.clear()
        self._undo.append(self._known.begin())
        self._derived.begin()
        rows = RowRecords(time.time_ns() // 1000)
        for one in brought:
            queries: dict[int, QueryRows] = {}
            for row in self._rows(one.packets, one.source):
                query = queries.get(row.query) or self._query(row, one.source, queries, rows.arrival)
                if query.stream is None:
                    self.counters.unknown += 1
                    continue
                if pairs_clause(query.stream.mote_query) is not None:
                    self._unjoined(row, query.stream, one.source)
                    continue
                made = list(self._made_of_row(row, query)) if query.views else ()
                self._row(row, query, query.stream, rows)
                for other in made:
                    of = queries.get(other.query) or self._query(other, one.source, queries, rows.arrival)
                    if of.stream is not None:
                        self._row(other, of, of.stream, rows)
            for made_row in self._joined(one):
                of = queries.get(made_row.query) or self._query(made_row, one.source, queries, rows.arrival)
                if of.stream is not None:
                    self._row(made_row, of, of.stream, rows)
        whole = self._states.whole()
        if not whole:
            return rows.records()
        return np.concatenate([rows.records(), np.array([*whole, *self._states.ready()], RECORD)])

    def _rows(self, packets: Sequence[Packet], source: Source) -> Iterator[Result]:
        """The rows in packets: each RESULT, and all of a SERIES."""
        result, series = PacketType.RESULT, PacketType.SERIES
        for packet in packets:
            if packet.type is result:
                yield packet.body
            elif packet.type is series:
                yield from self._of_series(packet.body, source)

    def _of_series(self, body: Series, source: Source) -> Iterator[Result]:
        stream = source.stream_of(body.query)
        size = self._layouts.of(stream).size if stream is not None and not stream.mote_query.aggregate else 0
        if not size or len(body.values) % size or not body.values:
            self.counters.malformed += stream is not None
            self.counters.unknown += stream is None
            return
        for at in range(0, len(body.values), size):
            yield Result(body.query, body.node, body.epoch + at // size, 0, body.values[at : at + size])

    # ---- pairs of motes ----

    def _unjoined(self, row: Result, stream: Stream, source: Source) -> None:
        """A mote's row that is to be joined here."""
        try:
            self._pairs.take(row, stream, source)
        except PacketError:
            self.counters.malformed += 1

    def _joined(self, brought: Brought) -> Iterator[Result]:
        """Rows that motes have joined, but for those that wait."""
        for packet in brought.packets:
            if packet.type not in (PacketType.JOINED, PacketType.PASSED):
                continue
            stream = brought.source.stream_of(packet.body.query)
            if stream is None or pairs_clause(stream.mote_query) is None:
                self.counters.unknown += 1
                continue
            if packet.type is PacketType.PASSED:
                self._pairs.passed(packet.body, stream, brought.source)
                continue
            try:
                yield from self._pairs.joined(packet.body, stream, brought.source)
            except PacketError:
                self.counters.malformed += 1

    def _join(self, log: StreamLog, now_ms: int) -> None:
        """Store what meets here. OSError: some other time."""
        for due in self._pairs.due(now_ms):
            if due.rows:
                self._undo.clear()
                self._undo.append(self._known.begin())
                rows = RowRecords(time.time_ns() // 1000)
                query = QueryRows(due.source, due.stream, self._layouts.of(due.stream), rows.arrival)
                for row in due.rows:
                    self._row(row, query, due.stream, rows)
                self._append(rows.records(), log, now_ms)
            due.pairs.done(due.until)

    def joined(self, query: int) -> JoinedRows | None:
        """What has come of a mote query whose rows motes join, since the start; None: nothing."""
        return self._pairs.find(query)

    # ---- rows ----

    def _query(self, row: Result, source: Source, queries: dict[int, QueryRows], arrival: int) -> QueryRows:
        """What is to be known of a row's query; it is remembered in ``queries``."""
        stream = source.stream_of(row.query)
        if stream is None or stream.mote_query.aggregate:
            found = QueryRows(source, None, _NOTHING, arrival)
        else:
            found = QueryRows(source, stream, self._layouts.of(stream), arrival, source.views(stream))
        queries[row.query] = found
        return found

    def _row(self, row: Result, query: QueryRows, stream: Stream, rows: RowRecords) -> None:
        """Take a row in, if it is new."""
        try:
            values, combined, left_out = decode_values(row.values, query.layout)
        except PacketError:
            self.counters.malformed += 1
            return
        number, numbered = stream.number, stream.mote_query.numbered
        told = values[:numbered] if numbered else ()
        if not self._known.add((number, row.node, row.epoch, *told)):
            self.counters.duplicates += 1
            return
        sample = query.sample(row.epoch)
        rows.add(number, row.node, row.epoch, row.nulls, sample, values, combined, left_out)

    def _made_of_row(self, row: Result, query: QueryRows) -> Iterator[Result]:
        """What is made of a row."""
        assert query.stream is not None
        try:
            values, _, _ = decode_values(row.values, query.layout)
        except PacketError:
            return
        known = tuple(None if row.nulls >> i & 1 else value for i, value in enumerate(values))
        yield from self._made_of(query.stream, query.source, query.views, row.node, row.epoch, known)

    def _made_of(
        self, stream: Stream, source: Source, views: Sequence[Derived], node: int, epoch: int, row: Values
    ) -> Iterator[Result]:
        """Rows that a mote's row brings; of states it is remembered until its epoch is complete."""
        if any(derived.stream.mote_query.aggregate for derived in views):
            self._states.take_row(stream, source, epoch, node, row)
        for derived in views:
            if not derived.stream.mote_query.aggregate:
                yield from self._derived.take(stream, source, derived, node, epoch, row)

    def _complete(self, log: StreamLog, now_ms: int) -> None:
        """Store windows to which nothing can be added any more. OSError: some other time."""
        for ended in self._derived.ended(now_ms):
            try:
                self.store(ended.packets, ended.source, log, now_ms)
            except OSError:
                ended.restore()
                raise

    # ---- states ----

    def _made(self, packet: Packet, source: Source) -> list[Any]:
        """The records that a partial state makes; none: it is none, or of no query."""
        if packet.type is not PacketType.PARTIAL:
            return []
        stream = source.stream_of(packet.body.query)
        if stream is None or not stream.mote_query.aggregate:
            self.counters.unknown += 1
            return []
        try:
            state = from_packet(stream.mote_query, packet.body)
        except ValueError:
            self.counters.malformed += 1
            return []
        self.counters.partials += 1
        return self._states.of(state, stream, source)
