"""Packets of rows → records of the log: decoded by their query's columns, each kept once."""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from construct import Container

from skerry.plan.model import MoteQuery
from skerry.plan.partials import Partial, from_packet, merge_partials
from skerry.streams.derive import Derivation, Row
from skerry.streams.log import StreamLog
from skerry.streams.record import RECORD, Records
from skerry.streams.reorder import Reorder
from skerry_protocol.codec import Packet, decode_values
from skerry_protocol.packets import PacketError, PacketType

#: Keys of rows kept to recognise repetitions: an hour of 54 motes at one row a second.
KEYS = 200_000
#: Epochs and groups of aggregates kept to merge late partial states into.
EPOCHS = 4096

#: Stream, epoch, group.
Epoch = tuple[int, int, tuple[int | None, ...]]


@dataclass(frozen=True)
class Stream:
    """A mote query in one session of the root: what a record's ``stream`` number means.

    ``since_ms``, ``until_ms``: network times between which its rows count; None: it still runs.
    """

    number: int
    session: int
    query: int
    mote_query: MoteQuery
    since_ms: int = 0
    until_ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "number": self.number,
            "session": self.session,
            "query": self.query,
            "mote_query": self.mote_query.to_dict(),
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Stream:
        """The inverse."""
        query = MoteQuery.from_dict(data["mote_query"])
        return cls(data["number"], data["session"], data["query"], query, data["since_ms"], data["until_ms"])


@dataclass
class IngestCounters:
    """Rows taken in and refused."""

    rows: int = 0
    duplicates: int = 0
    unknown: int = 0
    malformed: int = 0
    partials: int = 0


class Ingest:
    """Makes records. ``stream_of`` finds the stream of a query id in the present session, ``utc`` the UTC in s of a network
    time in ms, None while that is not known. ``reorder``: holds rows back that do not come in order. ``views``: the
    streams whose rows are made of a stream's."""

    def __init__(
        self,
        stream_of: Callable[[int], Stream | None],
        utc: Callable[[int], float | None],
        reorder: Reorder | None = None,
        views: Callable[[Stream], list[Stream]] = lambda _: [],
    ) -> None:
        self.counters = IngestCounters()
        self._stream_of = stream_of
        self._utc = utc
        self._reorder = reorder
        self._views = views
        #: By number of the stream that they make.
        self._derivations: dict[int, tuple[Stream, Derivation]] = {}
        self._saved: set[int] = set()
        self._keys: OrderedDict[tuple[int, ...], None] = OrderedDict()
        self._epochs: OrderedDict[Epoch, tuple[Partial, int]] = OrderedDict()
        self._layouts: dict[int, struct.Struct] = {}
        self._undo: list[Callable[[], object]] = []

    def store(self, packets: list[Packet], log: StreamLog, now_ms: int = 0) -> None:
        """Take packets in; when it returns, their rows are durable. ``now_ms``: network time.

        OSError: they could not be stored, and it is as if they had not come. Their sender repeats them, and a row
        that is remembered but not stored would be taken for a duplicate, a merged state be merged again.
        """
        counters = replace(self.counters)
        records = self.records(packets)
        try:
            if self._reorder is not None:
                self._reorder.take(records, now_ms, log)
            elif len(records):
                log.append(records)
        except OSError:
            for undo in reversed(self._undo):
                undo()
            self.counters = counters
            raise

    def release(self, log: StreamLog, now_ms: int) -> None:
        """Append the rows to the log that were held back until now. OSError: some other time."""
        if self._reorder is not None:
            self._reorder.take(np.empty(0, RECORD), now_ms, log)
        self._complete(log, now_ms)

    def restore(self, log: StreamLog, streams: dict[int, Stream]) -> None:
        """After a restart: what is already in the log, or held back."""
        tail = log.tail(KEYS)
        self.remember(tail, streams)
        for record in tail:
            self._resume(record, streams)
        if self._reorder is not None:
            self._reorder.forget(lambda record: self._key(record, streams) in self._keys)
            self.remember(self._reorder.records, streams)
        self._undo.clear()

    def _resume(self, record: np.void, streams: dict[int, Stream]) -> None:
        """What is made of rows goes on where it was: pulses that have begun, counts that are not told yet."""
        stream = streams.get(int(record["stream"]))
        if stream is None or stream.mote_query.aggregate:
            return
        width, nulls = len(stream.mote_query.columns), int(record["nulls"])
        values = record["value"][:width].tolist()
        row = [None if nulls >> i & 1 else value for i, value in enumerate(values)]
        for view in self._views(stream):
            self._derivation(stream, view).take(int(record["node"]), int(record["epoch"]), [row])

    @staticmethod
    def _key(record: np.void, streams: dict[int, Stream]) -> tuple[int, ...]:
        """What tells rows of the same stream apart."""
        stream = streams.get(int(record["stream"]))
        numbers = record["value"][: stream.mote_query.numbered].tolist() if stream is not None else []
        return (int(record["stream"]), int(record["node"]), int(record["epoch"]), *numbers)

    def remember(self, records: Records, streams: dict[int, Stream]) -> None:
        """Rows that are there already."""
        for record in records:
            stream = streams.get(int(record["stream"]))
            if stream is None:
                continue
            if not stream.mote_query.aggregate:
                self._remember(self._key(record, streams))
                continue
            overflow = int(record["nulls"])
            states = tuple(
                (int(record["count"][i]), None if overflow >> i & 1 else int(record["value"][i]))
                for i in range(len(stream.mote_query.columns))
            )
            state = Partial(int(record["epoch"]), int(record["motes"]), states)
            key = stream.number, state.epoch, state.group(stream.mote_query)
            self._epochs[key] = (state, int(record["revision"]))

    def _remember(self, key: tuple[int, ...]) -> bool:
        if key in self._keys:
            return False
        self._keys[key] = None
        self._undo.append(partial(self._keys.pop, key, None))
        if len(self._keys) > KEYS:
            self._keys.popitem(last=False)
        return True

    def records(self, packets: list[Packet]) -> Records:
        """Records of the RESULT and PARTIAL packets among these, without those known already."""
        self._undo.clear()
        self._saved.clear()
        rows = (row for packet in self._rows(packets) for row in (packet, *self._derived(packet)))
        made = [record for packet in rows if (record := self._record(packet)) is not None]
        return np.array(made, dtype=RECORD) if made else np.empty(0, RECORD)

    def _rows(self, packets: list[Packet]) -> Iterator[Packet]:
        """The packets, with a RESULT for each row of a SERIES."""
        for packet in packets:
            if packet.type is not PacketType.SERIES:
                yield packet
                continue
            body = packet.body
            stream = self._stream_of(body.query)
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

    def _derived(self, packet: Packet) -> Iterator[Packet]:
        """What is made of a row."""
        stream = self._stream_of(packet.body.query) if packet.type is PacketType.RESULT else None
        views = [] if stream is None or stream.mote_query.aggregate else self._views(stream)
        if stream is None or not views:
            return
        try:
            values, _, _ = decode_values(packet.body["values"], self._layout(stream))
        except PacketError:
            return
        row = [None if packet.body.nulls >> i & 1 else value for i, value in enumerate(values)]
        for view in views:
            derivation = self._derivation(stream, view)
            if view.number not in self._saved:
                self._saved.add(view.number)
                self._undo.append(partial(derivation.restore, derivation.saved()))
            for made in derivation.take(packet.body.node, packet.body.epoch, [row]):
                yield self._packet(view, packet.body.node, made)

    def _derivation(self, stream: Stream, view: Stream) -> Derivation:
        if view.number not in self._derivations:
            self._derivations[view.number] = view, Derivation(stream.mote_query, view.mote_query)
        return self._derivations[view.number][1]

    def _complete(self, log: StreamLog, now_ms: int) -> None:
        """Store windows to which nothing can be added any more. OSError: some other time."""
        for number, (view, derivation) in list(self._derivations.items()):
            if self._stream_of(view.query) is not view:
                del self._derivations[number]
                continue
            saved = derivation.saved()
            try:
                packets = [self._packet(view, node, row) for node, row in derivation.complete(now_ms)]
                if packets:
                    self.store(packets, log, now_ms)
            except OSError:
                derivation.restore(saved)
                raise

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

    def _record(self, packet: Packet) -> Any:
        if packet.type not in (PacketType.RESULT, PacketType.PARTIAL):
            return None
        stream = self._stream_of(packet.body.query)
        if stream is None or stream.mote_query.aggregate != (packet.type is PacketType.PARTIAL):
            self.counters.unknown += 1
            return None
        record = np.zeros((), RECORD)
        record["stream"], record["epoch"] = stream.number, packet.body.epoch
        record["arrival"] = arrival = time.time_ns() // 1000
        utc = self._utc(packet.body.epoch * stream.mote_query.period_ms)
        # No sample is taken after it has arrived, whatever the clocks say.
        record["sample"] = arrival if utc is None else min(round(utc * 1e6), arrival)
        filled = self._row if packet.type is PacketType.RESULT else self._partial
        return record if filled(record, stream, packet.body) else None

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
        self.counters.rows += 1
        return True

    def _partial(self, record: Any, stream: Stream, body: Container[Any]) -> bool:
        try:
            state = from_packet(stream.mote_query, body)
        except ValueError:
            self.counters.malformed += 1
            return False
        self.counters.partials += 1
        key, revision = (stream.number, body.epoch, state.group(stream.mote_query)), 0
        if key in self._epochs:
            before = self._epochs[key]
            state, revision = merge_partials(stream.mote_query, (before[0], state)), before[1] + 1
            self._undo.append(partial(self._epochs.__setitem__, key, before))
        else:
            self.counters.rows += 1
            self._undo.append(partial(self._epochs.pop, key, None))
        self._epochs[key] = (state, revision)
        if len(self._epochs) > EPOCHS:
            self._epochs.popitem(last=False)
        record["motes"], record["revision"] = state.motes, revision
        for i, (count, value) in enumerate(state.states):
            record["count"][i] = count
            if value is None:
                record["nulls"] |= 1 << i
            else:
                record["value"][i] = value
        return True
