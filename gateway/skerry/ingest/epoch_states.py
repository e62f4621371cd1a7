"""The epochs of in-network aggregates: partial states merged, and told once, in order.

Each partial state is in the log as it came (PART), so that a restart merges anew what has not been told yet. An epoch is told (TOLD), all
of its groups together, when it is complete in every network that has a part in it (:mod:`skerry.ingest.attendance`), or when its time
is over (:mod:`skerry.planner.model.waits`), and when all before it have been. What comes later revises it (REVISED).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skerry.ingest.attendance import Counting, counting_of, expected, lately_ms
from skerry.ingest.partial_states import Group, Partial, merge_partials
from skerry.ingest.roll import Roll, SingleNetwork
from skerry.planner.model.waits import EVERYBODY
from skerry.storage.log.record import RECORD, Kind
from skerry.streams.stream import Stream, StreamEpoch

#: Groups of epochs that late partial states are merged into, in all.
GROUPS = 16_384
#: Stream, epoch.
Key = tuple[int, int]


@dataclass(slots=True)
class EpochState:
    """An epoch of a stream. ``motes``: how many are in it, by session; ``told``: by whom it has been told
    (:mod:`skerry.planner.model.waits`), the last revision of each group."""

    stream: Stream
    epoch: int
    sample: int
    groups: dict[Group, Partial] = field(default_factory=dict)
    motes: dict[int, int] = field(default_factory=dict)
    told: dict[int, dict[Group, int]] = field(default_factory=dict)

    def copy(self) -> EpochState:
        """One that may change without this one."""
        made = copy(self)
        made.groups, made.motes = dict(self.groups), dict(self.motes)
        made.told = {by: dict(groups) for by, groups in self.told.items()}
        return made

    def record(self, group: Group, kind: Kind, wait: int, revision: int = 0) -> Any:
        """A group as the log tells it."""
        record = np.zeros((), RECORD)
        record["stream"], record["epoch"], record["sample"] = self.stream.number, self.epoch, self.sample
        record["arrival"] = time.time_ns() // 1000
        record["kind"], record["wait"], record["revision"] = kind, wait, min(revision, 0xFFFF)
        record["motes"] = min(sum(self.motes.values()), 0xFFFF)
        fill(record, self.groups[group])
        return record


class EpochStates:
    """``undo`` takes back what a packet has changed. Not for several threads at once."""

    def __init__(self, undo: list[Callable[[], object]], roll: Roll | None = None) -> None:
        self._undo = undo
        self._roll: Roll = roll or SingleNetwork()
        self._epochs: OrderedDict[Key, EpochState] = OrderedDict()
        self._groups = 0
        #: By stream, the epochs that somebody has not been told yet.
        self._open: dict[int, set[int]] = {}
        #: The last epoch of a stream that somebody has been told.
        self._last: dict[tuple[int, int], int] = {}
        #: When epochs that have been told began, by session.
        self._past: dict[int, dict[Key, int]] = {}
        #: What :func:`expected` has found, by session, stream and epoch, and what is known of the motes; until that may change.
        self._found: dict[tuple[int, Key, int | None], int | None] = {}

    def take(self, place: StreamEpoch, sample: int, part: Partial) -> list[Any]:
        """Merge a partial state. Returns the records that revise what has been told already."""
        key = place.stream.number, place.epoch
        group = part.group(place.stream.mote_query)
        before = self._epochs.get(key)
        state = EpochState(place.stream, place.epoch, sample) if before is None else before.copy()
        state.motes[place.session] = state.motes.get(place.session, 0) + part.motes
        if group is not None:
            known = state.groups.get(group)
            parts = (part,) if known is None else (known, part)
            state.groups[group] = merge_partials(place.stream.mote_query, parts)
        if state.told:
            self._found.clear()
        made = [] if group is None else self._revised(state, group)
        self._put(key, state)
        if before is None:
            self._set_open(key, is_open=True)
        return made

    def _revised(self, state: EpochState, group: Group) -> list[Any]:
        """Records of a group that has changed, for all who have been told the epoch."""
        numbers = {by: groups.get(group, 0) + 1 for by, groups in state.told.items()}
        for by, number in numbers.items():
            state.told[by][group] = number
        waiting = self._roll.waits(state.stream).keys() - state.told.keys()
        if len({*numbers.values()}) == 1 and not waiting:
            return [state.record(group, Kind.REVISED, EVERYBODY, next(iter(numbers.values())))]
        return [state.record(group, Kind.REVISED, by, number) for by, number in numbers.items()]

    def ready(self, held: Mapping[int, int] | None = None) -> list[Any]:
        """Records of the epochs that are to be told now. ``held``: by stream, when the first epoch begins, in ms, of which there are
        rows that have no state yet: it is told when they have, and so is what is behind it."""
        held = held or {}
        made = []
        for number in [number for number, epochs in self._open.items() if epochs]:
            made += self._ready(number, held)
        return made

    def _ready(self, number: int, held: Mapping[int, int]) -> list[Any]:
        epochs = sorted(self._open[number])
        stream = self._epochs[number, epochs[0]].stream
        if number in held:
            epochs = [epoch for epoch in epochs if epoch * stream.mote_query.period_ms < held[number]]
        if not epochs or self._waits_for_others(stream, held):
            return []
        waits = self._roll.waits(stream)
        over = {by: self._last_over(number, epochs, wait_ms) for by, wait_ms in waits.items()}
        made: list[Any] = []
        blocked: set[int] = set()
        for epoch in epochs:
            state = self._epochs[number, epoch]
            due = [by for by in waits if by not in state.told and by not in blocked]
            if due and not self._is_complete(state):
                blocked.update(by for by in due if epoch > over[by])
                due = [by for by in due if by not in blocked]
            if due:
                made += self._tell((number, epoch), due, everybody=not state.told and len(due) == len(waits))
            if waits.keys() <= self._epochs[number, epoch].told.keys():
                self._set_open((number, epoch), is_open=False)
            if blocked >= waits.keys():
                break
        return made

    def _tell(self, key: Key, due: Collection[int], *, everybody: bool) -> list[Any]:
        state = self._epochs[key].copy()
        # Nobody is told an epoch behind a later one: of one of which nothing had come by then, he may learn as of a revision.
        late = any(self._last.get((key[0], by), -1) > key[1] for by in due)
        kind = Kind.REVISED if late else Kind.TOLD
        for by in due:
            state.told[by] = dict.fromkeys(state.groups, int(late))
            self._set_last((key[0], by), key[1])
        self._put(key, state)
        whom = [EVERYBODY] if everybody else list(due)
        return [
            state.record(group, kind, by, int(late))
            for by in whom
            for group in sorted(state.groups, key=_order)
        ]

    def _set_last(self, key: tuple[int, int], epoch: int) -> None:
        had = self._last.get(key, -1)
        self._last[key] = max(had, epoch)
        self._undo.append(lambda: self._last.__setitem__(key, had))

    def remember(self, record: Any, place: StreamEpoch) -> None:
        """One of the log's after a restart: a partial state, or what has been told."""
        query = place.stream.mote_query
        state, kind = stored(record, len(query.columns)), Kind(int(record["kind"]))
        if kind is Kind.PART:
            self.take(place, int(record["sample"]), state)
            return
        key, group = (place.stream.number, place.epoch), state.group(query)
        epoch = self._epochs.get(key) or EpochState(place.stream, place.epoch, int(record["sample"]))
        assert group is not None
        epoch.groups.setdefault(group, state)
        wait = int(record["wait"])
        # Whoever it may have been that was told: he is not to be told again.
        for by in self._roll.waits(place.stream) if wait == EVERYBODY else (wait,):
            epoch.told.setdefault(by, {})[group] = int(record["revision"])
            self._set_last((place.stream.number, by), place.epoch)
        self._put(key, epoch)
        self._set_open(key, is_open=not self._roll.waits(place.stream).keys() <= epoch.told.keys())

    # ---- whether an epoch is complete, or its time is over ----

    def _waits_for_others(self, stream: Stream, held: Mapping[int, int]) -> bool:
        """Whether those who read this stream have not been told all of the one that they read before."""
        return any(
            held.get(number, until_ms) < until_ms
            or any(
                epoch * self._epochs[number, epoch].stream.mote_query.period_ms < until_ms
                for epoch in self._open.get(number, ())
            )
            for number, until_ms in self._roll.predecessors(stream).items()
        )

    def _is_complete(self, state: EpochState) -> bool:
        counting = counting_of(state.stream.mote_query)
        if counting is Counting.NOTHING:
            return False
        sessions = self._roll.sessions(state.stream) or frozenset(state.motes)
        return all(self._is_all_of(session, state, counting) for session in sessions)

    def _is_all_of(self, session: int, state: EpochState, counting: Counting) -> bool:
        begin_ms = self._roll.begin_ms(session, state.stream, state.epoch)
        if begin_ms is None:
            return False
        known = self._roll.motes(session, state.stream)
        asked = session, (state.stream.number, state.epoch), known
        if asked not in self._found:
            past = () if counting is Counting.KNOWN else self._past_of(session, state, counting)
            self._found[asked] = expected(known, begin_ms, state.stream.mote_query.period_ms, past)
        wanted = self._found[asked]
        return wanted is not None and 0 < wanted <= state.motes.get(session, 0)

    def _past_of(self, session: int, state: EpochState, counting: Counting) -> Iterator[tuple[int, int]]:
        """When epochs began that have been told, and how many motes they had by now."""
        for key, begin_ms in self._past.get(session, {}).items():
            other = self._epochs.get(key)
            if other is None:
                continue
            own = key[0] == state.stream.number
            if own or (counting is Counting.ALL and counting_of(other.stream.mote_query) is Counting.ALL):
                yield begin_ms, other.motes.get(session, 0)

    def _last_over(self, number: int, epochs: list[int], wait_ms: int) -> int:
        """The last of a stream's epochs whose time is over; so is that of those before. -1: none's is."""
        return max((e for e in epochs if self._is_over(self._epochs[number, e], wait_ms)), default=-1)

    def _is_over(self, state: EpochState, wait_ms: int) -> bool:
        sessions = self._roll.sessions(state.stream) | state.motes.keys()
        times = [(session, self._roll.time_ms(session)) for session in sessions]
        # Of a session that is over nothing comes any more.
        alive = [(session, now) for session, now in times if now is not None]
        begins = [(self._roll.begin_ms(session, state.stream, state.epoch), now) for session, now in alive]
        return not alive or any(begin is not None and now >= begin + wait_ms for begin, now in begins)

    # ---- what is remembered, and taken back ----

    def _put(self, key: Key, state: EpochState) -> None:
        before = self._epochs.get(key)
        self._undo.append(lambda: self._restore(key, before))
        self._restore(key, state)
        while self._groups > GROUPS and len(self._epochs) > 1:
            oldest = next(iter(self._epochs))
            self._restore(oldest, None)
            self._open.get(oldest[0], set()).discard(oldest[1])

    def _restore(self, key: Key, state: EpochState | None) -> None:
        before = self._epochs.pop(key, None) if state is None else self._epochs.get(key)
        self._groups -= 0 if before is None else max(1, len(before.groups))
        if state is not None:
            self._epochs[key] = state
            self._groups += max(1, len(state.groups))

    def _set_open(self, key: Key, *, is_open: bool) -> None:
        number, epoch = key
        epochs = self._open.setdefault(number, set())
        if is_open == (epoch in epochs):
            return
        if is_open:
            epochs.add(epoch)
            self._undo.append(lambda: epochs.discard(epoch))
            return
        epochs.discard(epoch)
        self._undo.append(lambda: epochs.add(epoch))
        state = self._epochs[key]
        for session in state.motes:
            begin_ms = self._roll.begin_ms(session, state.stream, epoch)
            if begin_ms is not None:
                self._note(session, key, begin_ms)

    def _note(self, session: int, key: Key, begin_ms: int) -> None:
        """An epoch of which all have been told. Those that nobody goes by any more are forgotten."""
        past = self._past.setdefault(session, {})
        past[key] = begin_ms
        self._found.clear()
        for one, at in list(past.items()):
            known = self._epochs.get(one)
            if known is None or at < begin_ms - lately_ms(known.stream.mote_query.period_ms):
                del past[one]


def _order(group: Group) -> list[tuple[bool, int]]:
    """By the values of the groups, NULL last."""
    return [(value is None, value or 0) for value in group]


def fill(record: Any, state: Partial) -> None:
    """Put a state's cells into a record."""
    for i, (count, value) in enumerate(state.states):
        record["count"][i] = count
        if value is None:
            record["nulls"] |= 1 << i
        else:
            record["value"][i] = value


def stored(record: Any, cells: int) -> Partial:
    """The state that :func:`fill` put into a record."""
    overflow = int(record["nulls"])
    states = tuple(
        (int(record["count"][i]), None if overflow >> i & 1 else int(record["value"][i]))
        for i in range(cells)
    )
    return Partial(int(record["epoch"]), int(record["motes"]), states)
