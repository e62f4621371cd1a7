"""Packets of rows → records of the log: decoded by their query's columns, each kept once."""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from construct import Container

from skerry.ingest.epoch_states import EpochStates, fill
from skerry.ingest.frames import Frame, Framed
from skerry.ingest.mote_windows import MoteWindows
from skerry.ingest.partial_states import Partial, from_packet
from skerry.ingest.pulses import Derivation, Row
from skerry.ingest.reorder import Reorder
from skerry.ingest.roll import Roll, SingleNetwork
from skerry.ingest.row_states import OVER_MS, RowEpochs, Values, epoch_of, projected, states_of
from skerry.ingest.stored_frames import Line
from skerry.planner.model.columns import projection
from skerry.storage.log.record import RECORD, Int64, Kind, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Derived, Source, Stream, StreamEpoch, roots_of
from skerry_protocol.codec import Packet, decode_values
from skerry_protocol.packets import PERIOD_MINIMUM_MS, PacketError, PacketType

#: Keys of rows kept to recognise repetitions: an hour of 54 motes at one row a second.
KEYS = 200_000
#: Rows of a stream of which is made again, after a restart, what was under way.
RESUMED = 50_000


def _by_stream(records: Records) -> Iterator[tuple[int, Int64]]:
    """Numbers of the streams of records, and where the records of each are."""
    for number in np.unique(records["stream"]).tolist():
        yield number, np.flatnonzero(records["stream"] == number)


def _keys(records: Records, streams: dict[int, Stream]) -> list[tuple[int, ...]]:
    """What tells each from other rows of the same stream; () for states, and for what is of streams that nobody knows."""
    keys: list[tuple[int, ...]] = [()] * len(records)
    for number, places in _by_stream(records):
        stream = streams.get(number)
        if stream is None or stream.mote_query.aggregate:
            continue
        mine = records[places]
        # Of a join an epoch has several rows, told apart by the stored rows that they were made from.
        columns = [mine["node"], mine["epoch"], *mine["value"].T[: stream.mote_query.numbered]]
        told = zip(*(column.tolist() for column in columns), strict=True)
        for place, key in zip(places.tolist(), told, strict=True):
            keys[place] = (number, *key)
    return keys


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
        self._keys: OrderedDict[tuple[int, ...], None] = OrderedDict()
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
        states, rows = [], []
        for one in brought:
            partials = [packet for packet in one.packets if packet.type is PacketType.PARTIAL]
            if partials:
                states.append(replace(one, packets=partials))
            if len(partials) < len(one.packets):
                others = [packet for packet in one.packets if packet.type is not PacketType.PARTIAL]
                rows.append(replace(one, packets=others))
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
        tail = log.tail(KEYS)
        self._remember_stored(tail, streams, session_of)
        told = set(zip(tail["stream"].tolist(), tail["epoch"].tolist(), strict=True))
        for number, places in _by_stream(tail):
            stream = streams.get(number)
            source = source_of(stream) if stream is not None else None
            if stream is not None and source is not None and not stream.mote_query.aggregate:
                self._resume(tail[places[-RESUMED:]], stream, source, told)
        if self._reorder is not None:
            self._reorder.forget([key in self._keys for key in _keys(self._reorder.records, streams)])
            self._remember_stored(self._reorder.records, streams, session_of)
        self._undo.clear()

    def _resume(
        self, records: Records, stream: Stream, source: Source, told: Collection[tuple[int, int]]
    ) -> None:
        """What is made of a stream's rows goes on where it was: pulses that have begun, counts and epochs that are not told yet.
        ``told``: streams and epochs that are in the log."""
        width = len(stream.mote_query.columns)
        views = source.views(stream)
        for record in records if views else ():
            nulls, epoch = int(record["nulls"]), int(record["epoch"])
            values = record["value"][:width].tolist()
            row = tuple(None if nulls >> i & 1 else value for i, value in enumerate(values))
            for _ in self._derived_rows(stream, source, views, int(record["node"]), epoch, row):
                pass  # it is in the log
        for epoch in dict.fromkeys(records["epoch"].tolist()) if views else ():
            places = (placed for _, placed in self._states_at(stream, source, epoch))
            if any((placed.stream.number, placed.epoch) in told for placed in places):
                self._epochs.was_told(stream, epoch)

    def _remember_stored(
        self, records: Records, streams: dict[int, Stream], session_of: Callable[[int], int | None] | None
    ) -> None:
        """Rows and states that are on the disk."""
        self._keys.update(dict.fromkeys(key for key in _keys(records, streams) if key))
        while len(self._keys) > KEYS:
            self._keys.popitem(last=False)
        for number, places in _by_stream(records):
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

    def _remember(self, key: tuple[int, ...]) -> bool:
        if key in self._keys:
            return False
        self._keys[key] = None
        self._undo.append(partial(self._keys.pop, key, None))
        if len(self._keys) > KEYS:
            self._keys.popitem(last=False)
        return True

    def records(self, packets: list[Packet], source: Source) -> Records:
        """Records of the RESULT and PARTIAL packets among these, without those known already."""
        return self._records([Brought(packets, source)])

    def _records(self, brought: Sequence[Brought]) -> Records:
        self._undo.clear()
        self._saved.clear()
        made = []
        for one in brought:
            source = one.source
            for packet in self._rows(one.packets, source):
                for row in (packet, *self._derived(packet, source)):
                    made += self._made(row, source)
        whole = self._whole()
        made += [*whole, *self._answers.ready(self._held())] if whole else []
        return np.array(made, dtype=RECORD) if made else np.empty(0, RECORD)

    def _rows(self, packets: Sequence[Packet], source: Source) -> Iterator[Packet]:
        """The packets, with a RESULT for each row of a SERIES."""
        for packet in packets:
            if packet.type is not PacketType.SERIES:
                yield packet
                continue
            body = packet.body
            stream = source.stream_of(body.query)
            size = self._layout(stream).size if stream is not None and not stream.mote_query.aggregate else 0
            if not size or len(body["values"]) % size or not body["values"]:
                self.counters.malformed += stream is not None
                self.counters.unknown += stream is None
                continue
            for at in range(0, len(body["values"]), size):
                values = body["values"][at : at + size]
                row = Container(
                    query=body.query, node=body.node, epoch=body.epoch + at // size, nulls=0, values=values
                )
                yield Packet(PacketType.RESULT, row)

    def _derived(self, packet: Packet, source: Source) -> Iterator[Packet]:
        """What is made of a row."""
        stream = source.stream_of(packet.body.query) if packet.type is PacketType.RESULT else None
        views = [] if stream is None or stream.mote_query.aggregate else source.views(stream)
        if stream is None or not views:
            return
        try:
            values, _, _ = decode_values(packet.body["values"], self._layout(stream))
        except PacketError:
            return
        row = tuple(None if packet.body.nulls >> i & 1 else value for i, value in enumerate(values))
        yield from self._derived_rows(stream, source, views, packet.body.node, packet.body.epoch, row)

    def _derived_rows(
        self, stream: Stream, source: Source, views: Sequence[Derived], node: int, epoch: int, row: Values
    ) -> Iterator[Packet]:
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
                yield self._packet(view, node, made)

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
                packets = [self._packet(view, node, row) for node, row in derivation.complete(own_ms)]
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

    def _packet(self, view: Stream, node: int, row: Row) -> Packet:
        epoch, values = row
        nulls = sum(1 << i for i, value in enumerate(values) if value is None)
        data = self._layout(view).pack(*(value or 0 for value in values))
        return Packet(
            PacketType.RESULT, Container(query=view.query, node=node, epoch=epoch, nulls=nulls, values=data)
        )

    def _layout(self, stream: Stream) -> struct.Struct:
        layout = self._layouts.get(stream.number)
        if layout is None:
            letters = "".join(column.format.letter for column in stream.mote_query.columns)
            layout = self._layouts[stream.number] = struct.Struct("<" + letters)
        return layout

    def _made(self, packet: Packet, source: Source) -> list[Any]:
        """The records that a packet makes."""
        if packet.type not in (PacketType.RESULT, PacketType.PARTIAL):
            return []
        stream = source.stream_of(packet.body.query)
        if stream is None or stream.mote_query.aggregate != (packet.type is PacketType.PARTIAL):
            self.counters.unknown += 1
            return []
        place = source.placed(stream, packet.body.epoch)
        if packet.type is PacketType.PARTIAL:
            return self._partial(place, stream, source, packet.body)
        record = _blank(place)
        return [record] if self._row(record, stream, packet.body) else []

    def _row(self, record: Any, stream: Stream, body: Container[Any]) -> bool:
        layout = self._layout(stream)
        try:
            values, combined, left_out = decode_values(body["values"], layout)
        except PacketError:
            self.counters.malformed += 1
            return False
        # Of a join an epoch has several rows, told apart by the stored rows that they were made from.
        if not self._remember((stream.number, body.node, body.epoch, *values[: stream.mote_query.numbered])):
            self.counters.duplicates += 1
            return False
        record["node"], record["nulls"] = body.node, body.nulls
        record["value"][: len(values)] = values
        # A tally's counts end where 16 bits do.
        record["motes"], record["revision"] = min(combined, 0xFFFF), left_out
        return True

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
