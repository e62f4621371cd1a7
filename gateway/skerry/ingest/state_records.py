"""Records of partial states: of those that motes send, and of those that are made here of all motes' rows
(:mod:`skerry.ingest.row_states`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skerry.ingest.epoch_states import EpochStates, fill
from skerry.ingest.partial_states import Partial
from skerry.ingest.roll import Roll
from skerry.ingest.row_states import OVER_MS, RowEpochs, Values, epoch_of, projected, states_of
from skerry.planner.model.columns import projection
from skerry.storage.log.record import RECORD, Kind
from skerry.streams.stream import Derived, Source, Stream, StreamEpoch, roots_of


class StateRecords:
    """``undo`` takes back what has changed since it was empty; ``roll``: which motes are waited for. Not for several threads at once."""

    def __init__(self, undo: list[Callable[[], object]], roll: Roll) -> None:
        self._roll = roll
        self._answers = EpochStates(undo, roll)
        self._epochs = RowEpochs(undo)
        #: Streams of whose rows states are made, and what brings them, by number.
        self._summed: dict[int, tuple[Stream, Source]] = {}

    # ---- states ----

    def ready(self) -> list[Any]:
        """Records of the epochs that are to be told now."""
        return self._answers.ready(self._held())

    def remember(self, record: Any, place: StreamEpoch) -> None:
        """One of the log's after a restart."""
        self._answers.remember(record, place)

    def of(self, state: Partial, stream: Stream, source: Source) -> list[Any]:
        """Records that a state brings which motes have sent, and those of what is made of it: motes may compute one for several
        conditions."""
        made = [*self._part(source.placed(stream, state.epoch), state)]
        for derived, place in self._states_at(stream, source, state.epoch):
            view = derived.stream
            places = projection(view.mote_query, stream.mote_query)
            if places is not None:
                made += self._part(place, projected(view.mote_query, places, place.epoch, state))
        return made

    def _part(self, place: StreamEpoch, state: Partial) -> Iterator[Any]:
        """Records of a partial state of an epoch, and of what it revises."""
        record = _blank(place)
        record["kind"], record["node"], record["motes"] = Kind.PART, roots_of(place.session), state.motes
        fill(record, state)
        yield record
        yield from self._answers.take(place, int(record["sample"]), replace(state, epoch=place.epoch))

    # ---- states of rows ----

    def take_row(self, stream: Stream, source: Source, epoch: int, node: int, row: Values) -> None:
        """A mote's row, of which states are made when its epoch is complete."""
        self._summed[stream.number] = stream, source
        self._epochs.take(stream, epoch, node, row)

    def was_told(self, stream: Stream, epoch: int) -> None:
        """After a restart: states of an epoch of rows are in the log."""
        self._epochs.was_told(stream, epoch)

    def whole(self) -> list[Any]:
        """Records of epochs to which all motes have sent their rows."""
        return [
            record
            for stream, source in self._summed.values()
            for epoch, rows in self._epochs.complete(stream)
            for record in self._state_records(stream, source, epoch, rows)
        ]

    def overdue(self, now_ms: int) -> list[Any]:
        """Records of epochs whose time is over, and of rows that have come behind that. ``now_ms``: network time, where a source does not
        say its own."""
        made: list[Any] = []
        for number, (stream, source) in list(self._summed.items()):
            own_ms = now_ms if source.now_ms is None else source.now_ms()
            for epoch, rows in self._epochs.over(stream, own_ms, self._over_ms(stream, source)):
                made += self._state_records(stream, source, epoch, rows)
            if source.stream_of(stream.query) is not stream and not self._epochs.held(stream):
                self._epochs.forget(number)
                del self._summed[number]
        return made

    def places(self, stream: Stream, source: Source, epoch: int) -> Iterator[StreamEpoch]:
        """Where the states go that are made of an epoch's rows."""
        for _, place in self._states_at(stream, source, epoch):
            yield place

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
                for place in self.places(stream, source, epoch):
                    begin_ms = place.epoch * place.stream.mote_query.period_ms
                    found[place.stream.number] = min(found.get(place.stream.number, begin_ms), begin_ms)
        return found

    def _states_at(self, stream: Stream, source: Source, epoch: int) -> Iterator[tuple[Derived, StreamEpoch]]:
        """The streams of states that are made of an epoch's rows or states, and where these go."""
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


def _blank(place: StreamEpoch) -> Any:
    """The record of an epoch of a stream, without its values."""
    record = np.zeros((), RECORD)
    record["stream"], record["epoch"] = place.stream.number, place.epoch
    record["arrival"] = arrival = time.time_ns() // 1000
    # No sample is taken after it has arrived, whatever the clocks say.
    record["sample"] = arrival if place.utc is None else min(round(place.utc * 1e6), arrival)
    return record
