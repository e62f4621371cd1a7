"""Partial states of epochs, and of groups in them, as one, and when it is told.

A root sends the state of an epoch when its network has had the time for it; what comes later revises it. If several networks run the
same mote query, an epoch's state is told once all of them have said theirs: until then it is in the log, and held. Who says nothing is
waited for no longer than :data:`PATIENCE_S` beyond a period.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from skerry.ingest.partial_states import Partial, merge_partials
from skerry.storage.log.record import HELD, RECORD, Records
from skerry.streams.stream import Stream, StreamEpoch
from skerry_protocol.packets import Aggregate

#: Epochs and groups that late partial states are merged into.
EPOCHS = 4096
#: How much longer than its period an epoch is held at most, in s.
PATIENCE_S = 5.0

#: Stream, epoch, group.
Epoch = tuple[int, int, tuple[int | None, ...]]


@dataclass(slots=True)
class Told:
    """The state of an epoch. ``revision`` None: it is held, since ``held`` (monotonic)."""

    state: Partial
    revision: int | None
    held: float
    record: Any


@dataclass
class Merging:
    """``undo`` takes back what a packet has changed; ``speed``: s of network time in one of this machine's. Not for several threads at
    once."""

    undo: list[Callable[[], object]]
    speed: float = 1.0
    _epochs: OrderedDict[Epoch, Told] = field(default_factory=OrderedDict)
    #: Epochs that are held, by stream, and how far sessions have come with it.
    _held: dict[int, dict[Epoch, Stream]] = field(default_factory=dict)
    _said: dict[int, dict[int, int]] = field(default_factory=dict)

    def take(self, record: Any, place: StreamEpoch, state: Partial) -> list[Any]:
        """Fill a partial state's record; returns it with those that are not to be held any longer."""
        stream = place.stream
        key = stream.number, place.epoch, state.group(stream.mote_query)
        self._say(stream.number, place)
        before = self._epochs.get(key)
        if before is not None:
            state = merge_partials(stream.mote_query, (before.state, state))
        revision: int | None = None
        if before is not None and before.revision is not None:
            revision = before.revision + 1
        elif self._complete(stream, place.epoch, place):
            revision = 0
        _fill(record, state, revision)
        held = time.monotonic() if before is None else before.held
        self._set(key, Told(state, revision, held, record), stream)
        return [record, *self._ready(stream, place)]

    def remember(self, record: Any, stream: Stream) -> None:
        """One of the log's after a restart."""
        overflow = int(record["nulls"])
        states = tuple(
            (int(record["count"][i]), None if overflow >> i & 1 else int(record["value"][i]))
            for i in range(len(stream.mote_query.columns))
        )
        state = Partial(int(record["epoch"]), int(record["motes"]), states)
        revision = None if int(record["node"]) == HELD else int(record["revision"])
        key = stream.number, state.epoch, state.group(stream.mote_query)
        self._set(key, Told(state, revision, time.monotonic(), record.copy()), stream)

    def overdue(self, now: float) -> Records:
        """Records of epochs that have been held for long enough; ``now`` in s, monotonic."""
        made = [
            self._release(key, stream)
            for held in list(self._held.values())
            for key, stream in list(held.items())
            if now - self._epochs[key].held > stream.mote_query.period_ms / 1000 / self.speed + PATIENCE_S
        ]
        return np.array(made, dtype=RECORD) if made else np.empty(0, RECORD)

    def _say(self, number: int, place: StreamEpoch) -> None:
        said = self._said.setdefault(number, {})
        had = said.get(place.session, -1)
        if place.epoch > had:
            said[place.session] = place.epoch
            self.undo.append(partial(said.__setitem__, place.session, had))

    def _complete(self, stream: Stream, epoch: int, place: StreamEpoch) -> bool:
        """Whether all have said what they have of an epoch; of groups they may say more until they say some of a later one."""
        if place.sessions <= {place.session}:
            return True
        grouped = any(column.aggregate is Aggregate.GROUP for column in stream.mote_query.columns)
        said = self._said.get(stream.number, {})
        return all(said.get(session, -1) >= epoch + grouped for session in place.sessions)

    def _ready(self, stream: Stream, place: StreamEpoch) -> list[Any]:
        held = self._held.get(stream.number, {})
        return [self._release(key, stream) for key in list(held) if self._complete(stream, key[1], place)]

    def _release(self, key: Epoch, stream: Stream) -> Any:
        before = self._epochs[key]
        record = before.record.copy()
        record["node"], record["arrival"] = 0, time.time_ns() // 1000
        self._set(key, Told(before.state, 0, before.held, record), stream)
        return record

    def _set(self, key: Epoch, told: Told, stream: Stream) -> None:
        before = self._epochs.get(key)
        self.undo.append(partial(self._restore, key, before, stream))
        self._restore(key, told, stream)
        if len(self._epochs) > EPOCHS:
            oldest, _ = self._epochs.popitem(last=False)
            self._held.get(oldest[0], {}).pop(oldest, None)

    def _restore(self, key: Epoch, told: Told | None, stream: Stream) -> None:
        held = self._held.setdefault(stream.number, {})
        held.pop(key, None)
        if told is None:
            self._epochs.pop(key, None)
            return
        self._epochs[key] = told
        if told.revision is None:
            held[key] = stream


def _fill(record: Any, state: Partial, revision: int | None) -> None:
    record["motes"] = state.motes
    if revision is None:
        record["node"] = HELD
    else:
        record["revision"] = min(revision, 0xFFFF)
    for i, (count, value) in enumerate(state.states):
        record["count"][i] = count
        if value is None:
            record["nulls"] |= 1 << i
        else:
            record["value"][i] = value
