"""Packets of rows → records of the log: decoded by their query's columns, each kept once."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from construct import Container

from skerry.ingest.epoch_states import EpochStates, fill
from skerry.ingest.frames import Frame, Framed
from skerry.ingest.joined_rows import JoinedRows
from skerry.ingest.known_rows import KnownRows, by_stream, keys
from skerry.ingest.mote_windows import MoteWindows
from skerry.ingest.partial_states import Partial, from_packet
from skerry.ingest.plain_rows import QueryRows, RowRecords
from skerry.ingest.pulses import Derivation, Row
from skerry.ingest.reorder import Reorder
from skerry.ingest.roll import Roll, SingleNetwork
from skerry.ingest.row_states import OVER_MS, RowEpochs, Values, epoch_of, projected, states_of
from skerry.ingest.stored_frames import Line
from skerry.planner.model.columns import projection
from skerry.planner.model.pairing import pairs_clause
from skerry.storage.log.record import RECORD, Kind, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Derived, Source, Stream, StreamEpoch, roots_of
from skerry_protocol.codec import Packet, Result, Series, decode_values
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError
from skerry_protocol.limits import PERIOD_MINIMUM_MS

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
        #: By number of the stream that they make.
        self._derivations: dict[int, tuple[Stream, Source, Derivation | MoteWindows]] = {}
        self._saved: set[int] = set()
        #: Of queries whose rows motes join with each other, by number of the stream.
        self._joins: dict[int, tuple[Stream, Source, JoinedRows]] = {}
        self._known = KnownRows()
        self._layouts: dict[int, struct.Struct] = {}
        self._undo: list[Callable[[], object]] = []
        self._roll: Roll = roll or SingleNetwork()
        self._answers = EpochStates(self._undo, self._roll)
        self._epochs = RowEpochs(self._undo)
        #: Streams of whose rows states are made, and what brings them, by number.
        self._summed: dict[int, tuple[Stream, Source]] = {}

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
        made += self._answers.ready(self._held())
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
        self._append(self._overdue(now_ms), log, now_ms)
        self.tell(log)

    def tell(self, log: StreamLog) -> None:
        """Append the epochs that are to be told by now. OSError: it is as if nothing had been asked."""
        self._undo.clear()
        made = self._answers.ready(self._held())
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
            for _ in self._derived_rows(stream, source, views, int(record["node"]), epoch, row):
                pass  # it is in the log
        for epoch in dict.fromkeys(records["epoch"].tolist()):
            places = (placed for _, placed in self._states_at(stream, source, epoch))
            if any((placed.stream.number, placed.epoch) in told for placed in places):
                self._epochs.was_told(stream, epoch)

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
                self._answers.remember(record, StreamEpoch(stream, int(record["epoch"]), None, session))

    def records(self, packets: list[Packet], source: Source) -> Records:
        """Records of the rows and partial states among these packets, without those known already."""
        rows = self._records([Brought(packets, source)])
        states = [record for packet in packets for record in self._made(packet, source)]
        return np.concatenate([rows, np.array(states, dtype=RECORD)]) if states else rows

    def _records(self, brought: Sequence[Brought]) -> Records:
        """Records of rows."""
        self._undo.clear()
        self._undo.append(self._known.begin())
        self._saved.clear()
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
                made = list(self._derived(row, query)) if query.views else ()
                self._row(row, query, query.stream, rows)
                for other in made:
                    of = queries.get(other.query) or self._query(other, one.source, queries, rows.arrival)
                    if of.stream is not None:
                        self._row(other, of, of.stream, rows)
            for made_row in self._joined(one):
                of = queries.get(made_row.query) or self._query(made_row, one.source, queries, rows.arrival)
                if of.stream is not None:
                    self._row(made_row, of, of.stream, rows)
        whole = self._whole()
        if not whole:
            return rows.records()
        return np.concatenate(
            [rows.records(), np.array([*whole, *self._answers.ready(self._held())], RECORD)]
        )

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
        size = self._layout(stream).size if stream is not None and not stream.mote_query.aggregate else 0
        if not size or len(body.values) % size or not body.values:
            self.counters.malformed += stream is not None
            self.counters.unknown += stream is None
            return
        for at in range(0, len(body.values), size):
            yield Result(body.query, body.node, body.epoch + at // size, 0, body.values[at : at + size])

    # ---- pairs of motes ----

    def _pairs_of(self, stream: Stream, source: Source) -> JoinedRows:
        if stream.number not in self._joins:
            self._joins[stream.number] = stream, source, JoinedRows(stream.mote_query)
        return self._joins[stream.number][2]

    def _unjoined(self, row: Result, stream: Stream, source: Source) -> None:
        """A mote's row that is to be joined here."""
        try:
            self._pairs_of(stream, source).take(row)
        except PacketError:
            self.counters.malformed += 1

    def _joined(self, brought: Brought) -> Iterator[Result]:
        """Rows that motes have joined, but for those that wait."""
        for packet in brought.packets:
            if packet.type is not PacketType.JOINED:
                continue
            stream = brought.source.stream_of(packet.body.query)
            if stream is None or pairs_clause(stream.mote_query) is None:
                self.counters.unknown += 1
                continue
            try:
                yield from self._pairs_of(stream, brought.source).joined(packet.body)
            except PacketError:
                self.counters.malformed += 1

    def _join(self, log: StreamLog, now_ms: int) -> None:
        """Store what meets here. OSError: some other time."""
        for number, (stream, source, pairs) in list(self._joins.items()):
            if source.stream_of(stream.query) is not stream:
                del self._joins[number]
                continue
            until, made = pairs.due(stream.query, now_ms if source.now_ms is None else source.now_ms())
            if made:
                self._undo.clear()
                self._undo.append(self._known.begin())
                rows = RowRecords(time.time_ns() // 1000)
                query = QueryRows(source, stream, self._layout(stream), rows.arrival)
                for row in made:
                    self._row(row, query, stream, rows)
                self._append(rows.records(), log, now_ms)
            pairs.done(until)

    def joined(self, query: int) -> JoinedRows | None:
        """What has come of a mote query whose rows motes join, since the start; None: nothing."""
        found = (pairs for stream, source, pairs in self._joins.values() if source.stream_of(query) is stream)
        return next(found, None)

    def _query(self, row: Result, source: Source, queries: dict[int, QueryRows], arrival: int) -> QueryRows:
        """What is to be known of a row's query; it is remembered in ``queries``."""
        stream = source.stream_of(row.query)
        if stream is None or stream.mote_query.aggregate:
            found = QueryRows(source, None, _NOTHING, arrival)
        else:
            found = QueryRows(source, stream, self._layout(stream), arrival, source.views(stream))
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

    def _derived(self, row: Result, query: QueryRows) -> Iterator[Result]:
        """What is made of a row."""
        assert query.stream is not None
        try:
            values, _, _ = decode_values(row.values, query.layout)
        except PacketError:
            return
        known = tuple(None if row.nulls >> i & 1 else value for i, value in enumerate(values))
        yield from self._derived_rows(query.stream, query.source, query.views, row.node, row.epoch, known)

    def _derived_rows(
        self, stream: Stream, source: Source, views: Sequence[Derived], node: int, epoch: int, row: Values
    ) -> Iterator[Result]:
        """Rows that a mote's row brings; of states it is remembered until its epoch is complete."""
        if any(derived.stream.mote_query.aggregate for derived in views):
            self._summed[stream.number] = stream, source
            self._epochs.take(stream, epoch, node, row)
        for derived in views:
            view = derived.stream
            if view.mote_query.aggregate:
                continue
            derivation = self._derivation(stream, view, source)
            if view.number not in self._saved:
                self._saved.add(view.number)
                self._undo.append(derivation.kept())
            if isinstance(derivation, Derivation):
                found = derivation.take(node, epoch, [row])
            else:
                own = epoch_of(view.mote_query, stream.mote_query, epoch)
                takes = own is not None and derived.has(own)
                found = (
                    derivation.take(stream.mote_query, node, own, row) if takes and own is not None else []
                )
            for made in found:
                yield self._result(view, node, made)

    def _derivation(self, stream: Stream, view: Stream, source: Source) -> Derivation | MoteWindows:
        if view.number not in self._derivations:
            pulses = view.mote_query.period_ms < PERIOD_MINIMUM_MS
            made = Derivation(stream.mote_query, view.mote_query) if pulses else MoteWindows(view.mote_query)
            self._derivations[view.number] = view, source, made
        return self._derivations[view.number][2]

    def _complete(self, log: StreamLog, now_ms: int) -> None:
        """Store windows to which nothing can be added any more. OSError: some other time."""
        for number, (view, source, derivation) in list(self._derivations.items()):
            if source.stream_of(view.query) is not view:
                del self._derivations[number]
                continue
            if not isinstance(derivation, Derivation):
                continue
            restore = derivation.kept()
            own_ms = now_ms if source.now_ms is None else source.now_ms()
            try:
                made = [self._result(view, node, row) for node, row in derivation.complete(own_ms)]
                packets = [Packet(PacketType.RESULT, row) for row in made]
                if packets:
                    self.store(packets, source, log, now_ms)
            except OSError:
                restore()
                raise

    # ---- states of rows ----

    def _whole(self) -> list[Any]:
        """Records of epochs to which all motes have sent their rows."""
        return [
            record
            for stream, source in self._summed.values()
            for epoch, rows in self._epochs.complete(stream)
            for record in self._state_records(stream, source, epoch, rows)
        ]

    def _overdue(self, now_ms: int) -> Records:
        """Records of epochs whose time is over, and of rows that have come behind that."""
        made: list[Any] = []
        for number, (stream, source) in list(self._summed.items()):
            own_ms = now_ms if source.now_ms is None else source.now_ms()
            for epoch, rows in self._epochs.over(stream, own_ms, self._over_ms(stream, source)):
                made += self._state_records(stream, source, epoch, rows)
            if source.stream_of(stream.query) is not stream and not self._epochs.held(stream):
                self._epochs.forget(number)
                del self._summed[number]
        return np.array(made, dtype=RECORD) if made else np.empty(0, RECORD)

    def _over_ms(self, stream: Stream, source: Source) -> int:
        """How far behind its samples an epoch of rows is over: whoever waits less long for what is made of them is told no later."""
        made = (derived.stream for derived in source.views(stream) if derived.stream.mote_query.aggregate)
        return min((OVER_MS, *(wait_ms for view in made for wait_ms in self._roll.waits(view).values())))

    def _held(self) -> dict[int, int]:
        """By number of the streams of states that are made of rows: when the first epoch begins, in ms, of which there are rows that have
        no state yet."""
        found: dict[int, int] = {}
        for stream, source in self._summed.values():
            for epoch in self._epochs.held(stream):
                for _, place in self._states_at(stream, source, epoch):
                    begin_ms = place.epoch * place.stream.mote_query.period_ms
                    found[place.stream.number] = min(found.get(place.stream.number, begin_ms), begin_ms)
        return found

    def _states_at(self, stream: Stream, source: Source, epoch: int) -> Iterator[tuple[Derived, StreamEpoch]]:
        """The streams of states that are made of an epoch's rows, and where these go."""
        for derived in source.views(stream):
            view = derived.stream
            own = epoch_of(view.mote_query, stream.mote_query, epoch) if view.mote_query.aggregate else None
            if own is not None and derived.has(own):
                yield derived, source.placed(view, own)

    def _state_records(
        self, stream: Stream, source: Source, epoch: int, rows: Mapping[int, Values]
    ) -> Iterator[Any]:
        for derived, place in self._states_at(stream, source, epoch):
            view = derived.stream.mote_query
            own = epoch * stream.mote_query.period_ms // view.period_ms
            for state in states_of(view, stream.mote_query, own, rows):
                yield from self._part(place, state)

    def _projected(self, stream: Stream, source: Source, state: Partial) -> Iterator[Any]:
        """Records of the states that are made of one that motes computed for several conditions."""
        for derived, place in self._states_at(stream, source, state.epoch):
            view = derived.stream.mote_query
            places = projection(view, stream.mote_query)
            if places is not None:
                yield from self._part(place, projected(view, places, place.epoch, state))

    def _result(self, view: Stream, node: int, row: Row) -> Result:
        epoch, values = row
        nulls = sum(1 << i for i, value in enumerate(values) if value is None)
        data = self._layout(view).pack(*(value or 0 for value in values))
        return Result(query=view.query, node=node, epoch=epoch, nulls=nulls, values=data)

    def _layout(self, stream: Stream) -> struct.Struct:
        layout = self._layouts.get(stream.number)
        if layout is None:
            letters = "".join(column.format.letter for column in stream.mote_query.columns)
            layout = self._layouts[stream.number] = struct.Struct("<" + letters)
        return layout

    def _made(self, packet: Packet, source: Source) -> list[Any]:
        """The records that a partial state makes; none: it is none, or of no query."""
        if packet.type is not PacketType.PARTIAL:
            return []
        stream = source.stream_of(packet.body.query)
        if stream is None or not stream.mote_query.aggregate:
            self.counters.unknown += 1
            return []
        return self._partial(source.placed(stream, packet.body.epoch), stream, source, packet.body)

    def _partial(self, place: StreamEpoch, stream: Stream, source: Source, body: Container[Any]) -> list[Any]:
        try:
            state = from_packet(stream.mote_query, body)
        except ValueError:
            self.counters.malformed += 1
            return []
        self.counters.partials += 1
        return [*self._part(place, state), *self._projected(stream, source, state)]

    def _part(self, place: StreamEpoch, state: Partial) -> list[Any]:
        """Records of a partial state of an epoch, and of what it revises."""
        record = _blank(place)
        record["kind"], record["node"], record["motes"] = Kind.PART, roots_of(place.session), state.motes
        fill(record, state)
        revised = self._answers.take(place, int(record["sample"]), replace(state, epoch=place.epoch))
        return [record, *revised]


def _blank(place: StreamEpoch) -> Any:
    """The record of an epoch of a stream, without its values."""
    record = np.zeros((), RECORD)
    record["stream"], record["epoch"] = place.stream.number, place.epoch
    record["arrival"] = arrival = time.time_ns() // 1000
    # No sample is taken after it has arrived, whatever the clocks say.
    record["sample"] = arrival if place.utc is None else min(round(place.utc * 1e6), arrival)
    return record
