"""Questions about indexes on their way: which motes are asked, what they have answered, and which have to be asked again."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.index.questions import Names, Points, encoded, holders, share
from skerry.planner.features.indexing import Index, IndexPart
from skerry.sensors.index_states import ONLY, Counted, StateQuestion, Told
from skerry.sensors.index_tables import StoredTuple
from skerry_protocol.limits import BROADCAST, INDEX_NUMBERS

#: Questions that are under way at once: motes answer four, and flood as many commands.
AT_ONCE = 3
#: A mote of which nothing has come for so long, in s of network time, is asked again, and so many times in all. A question takes up to
#: 16 s from hop to hop in a network at rest.
SILENT_S, TIMES = 64.0, 3
#: What a tuple has before its values: mote, session, epoch, which are NULL.
_HEAD = struct.Struct("<HHIB")
#: What sends a question: to a mote, its token and arguments.
Send = Callable[[int, int, bytes], None]
#: Mote, session and epoch, which name a tuple, and its values that a part has.
Found = dict[tuple[int, int, int], tuple[int | None, ...]]


@dataclass
class _Answer:
    """What one mote has answered: its records by the token of the question and their numbers, and by token how many there are. Each time
    it is asked it begins anew, and what it stores may have changed: only records of one time are an answer in full."""

    records: dict[tuple[int, int], bytes] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    asked: int = 0
    since: float = 0.0
    #: When it was asked first.
    told: float = 0.0

    @property
    def whole(self) -> bool:
        come = Counter(token for token, _ in self.records)
        return any(come[token] == count for token, count in self.counts.items())

    def wholes(self) -> Iterator[list[bytes]]:
        """All records of each time in which it has answered in full."""
        for token, count in self.counts.items():
            records = [self.records[token, i] for i in range(count) if (token, i) in self.records]
            if len(records) == count:
                yield records

    def is_silent(self, now: float) -> bool:
        """Whether nothing has come of it for long, or it has not been asked; network time, which begins anew with a session of the root."""
        return not self.asked or not 0 <= now - self.since < SILENT_S


@dataclass(frozen=True)
class _Step:
    """A part that is asked. ``number``: of it in the index; ``box``: what is asked of its columns, ``share`` of all that may be there."""

    part: IndexPart
    number: int
    box: Points
    motes: list[int]
    size: int

    @property
    def share(self) -> float:
        return share(self.box)


class IndexAsk:
    """A question. ``box``: None where no value can be asked for; ``needed``: columns that the answer needs. Of several parts one is asked
    after the other, each for the tuples that those before had; that from which least is to be expected comes first. ``gone``: motes that
    are not waited for; where they answer all the same, their tuples count. ``states``: what motes tell in place of tuples, all of one part.
    """

    def __init__(
        self,
        index: Index,
        box: Points | None,
        needed: frozenset[int] | None = None,
        names: Names | None = None,
        gone: Collection[int] = (),
        states: StateQuestion | None = None,
    ) -> None:
        self.index, self._names, self._gone = index, names or Names(), frozenset(gone)
        self.states = states
        wanted = range(len(index.axes)) if needed is None else needed
        steps = [] if box is None else [_step(index, number, box) for number in range(len(index.parts))]
        concerned = [step for step in steps if not set(wanted).isdisjoint(step.part.columns)]
        # Who wants to know of no column asks where a tuple takes least.
        concerned = concerned or sorted(steps, key=lambda step: step.size)[:1]
        self._steps = sorted(concerned, key=_weight)
        #: By mote: it stores for one part alone.
        self.parts = {node: _Answer() for step in self._steps for node in step.motes}
        self.tokens = set[int]()
        #: What motes have told of states, by those whose are put together: no two are of one mote.
        self._united: dict[frozenset[int], Sequence[Counted]] = {}
        #: Whether who has not answered is known to whoever keeps that.
        self.looked_at = False
        self._at = 0
        self.over = not self._steps

    @property
    def step(self) -> _Step:
        """That which is under way."""
        return self._steps[self._at]

    @property
    def missing(self) -> list[int]:
        """Motes that were to answer, and have not in full."""
        asked = [node for step in self._steps[: self._at + 1] for node in step.motes]
        return sorted(node for node in asked if not self._is_whole(node))

    @property
    def complete(self) -> bool:
        """Whether all have."""
        return not self.missing

    def arguments(self) -> bytes:
        """What motes are told."""
        if self.states is not None:
            return self.states.arguments(self.index)
        number = self.index.number + self.step.number * INDEX_NUMBERS
        return number.to_bytes(2, "little") + encoded(self.step.box, self._names)

    def go_on(self) -> None:
        """To the next part, as nothing more is waited for in this one."""
        if self.states is not None:
            self.over = True
            return
        found = self._found(self._steps[: self._at + 1])
        if not found or self._at + 1 == len(self._steps):
            self.over = True
            return
        self._at += 1
        self._names = self._names.of((node, epoch) for node, _, epoch in found)

    @property
    def waited_for(self) -> list[int]:
        """Those that have not answered in full, of whom an answer may come."""
        motes = self.step.motes
        there = [node for node in motes if node not in self._gone] or motes
        return [node for node in there if not self._is_whole(node)]

    def _is_whole(self, node: int) -> bool:
        return self.parts[node].whole or any(node in nodes for nodes in self._united)

    def unite(self, nodes: frozenset[int], states: Sequence[Counted]) -> None:
        """States of these motes have come together. Of those that are of one mote, as it has another parent or was asked again, what is of
        more motes counts."""
        others = [other for other in self._united if other & nodes]
        if len(frozenset[int]().union(*others)) < len(nodes):
            for other in others:
                del self._united[other]
            self._united[nodes] = states

    def check(self) -> None:
        """Go on where all have answered."""
        if not self.over and not self.waited_for:
            self.go_on()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "index": self.index.name,
            "asked": sorted(self.parts),
            "of": len(self.index.holding),
            "over": self.over,
            "complete": self.over and self.complete,
            "missing": self.missing,
            "told": self._told(),
        }

    def steps(self) -> list[str]:
        """What is asked in which order, for people."""
        lines, left = [], 1.0
        for number, step in enumerate(self._steps, 1):
            left *= step.share
            which = f"mote{'s' * (len(step.motes) > 1)} {', '.join(map(str, sorted(step.motes)))}"
            whose = "tuples" if number == 1 else "those of the same motes and epochs"
            lines.append(
                f"{number}. the part of {self.index.names(step.part)}, by one flood: {which} of {len(step.part.holding)} send {whose},"
                f" {step.size} bytes each, {left:.2g} of all if they were spread evenly"
            )
        return lines

    def told_states(self) -> list[list[Told]]:
        """Where states are asked for, those of each mote that has answered in full."""
        assert self.states is not None
        if self.states.group is None:
            return [[(ONLY, states)] for states in self._united.values()]
        told = []
        for node in self.step.motes:
            found = (self.states.read(records) for records in self.parts[node].wholes())
            told += [states for states in found if states is not None][:1]
        return told

    def tuples(self) -> list[StoredTuple]:
        """What has come from all parts that were asked, each once, in an order of its own."""
        asked = [column for step in self._steps for column in step.part.columns]
        found = self._found(self._steps[: self._at + 1]) if self._at + 1 == len(self._steps) else {}
        tuples = []
        for node, session, epoch in sorted(found, key=lambda name: (name[1], name[2], name[0])):
            values = dict(zip(asked, found[node, session, epoch], strict=True))
            every = tuple(values.get(column) for column in range(len(self.index.axes)))
            tuples.append(StoredTuple(node, session, epoch, every))
        return tuples

    def _found(self, steps: list[_Step]) -> Found:
        """Tuples that all these parts have sent, with the values of all."""
        joined = self._of(steps[0])
        for step in steps[1:]:
            other = self._of(step)
            joined = {name: (*values, *other[name]) for name, values in joined.items() if name in other}
        return joined

    def _told(self) -> dict[int, int]:
        """How many tuples each mote has told of: one that changes hands may come of two."""
        if self.states is not None:
            return {}
        told = ((node, self._by(node, step)) for step in self._steps for node in step.motes)
        return {node: len(tuples) for node, tuples in told if tuples}

    def _of(self, step: _Step) -> Found:
        return {name: values for node in step.motes for name, values in self._by(node, step).items()}

    def _by(self, node: int, step: _Step) -> Found:
        """What one mote has sent."""
        formats = [self.index.axes[column].entry.format.letter for column in step.part.columns]
        layout = struct.Struct("<" + "".join(formats))
        size, found = _HEAD.size + layout.size, Found()
        for record in self.parts[node].records.values():
            for at in range(0, len(record) - size + 1, size):
                *name, nulls = _HEAD.unpack_from(record, at)
                integers = layout.unpack_from(record, at + _HEAD.size)
                values = tuple(None if nulls >> i & 1 else v for i, v in enumerate(integers))
                found[name[0], name[1], name[2]] = values
        return found


def _step(index: Index, number: int, box: Points) -> _Step:
    part = index.parts[number]
    own = [box[column] for column in part.columns]
    size = _HEAD.size + sum(index.axes[column].entry.format.size for column in part.columns)
    zones = holders(own, part.owners, part.away)
    motes = list(dict.fromkeys([*zones, *part.added, *sorted(part.lost)]))
    return _Step(part, number, own, motes, size)


def _weight(step: _Step) -> float:
    """By this the order is that in which least is sent: of two steps the first sends its share, the second what is left of its own."""
    return step.size * step.share / (1 - step.share) if step.share < 1 else float("inf")


class IndexAsks:
    """Those that are not over. Not locked: its owner calls it under his lock."""

    def __init__(self, next_token: Callable[[], int]) -> None:
        self._next_token = next_token
        self._waiting: list[IndexAsk] = []

    def add(self, ask: IndexAsk) -> None:
        """A new one, which goes with one of the next :meth:`advance`."""
        if not ask.over:
            self._waiting.append(ask)

    def drop(self, ask: IndexAsk) -> None:
        """Nobody wants to know any more."""
        self._waiting = [other for other in self._waiting if other is not ask]

    def hear(self, body: Any, now: float) -> None:
        """A STORED record. Those of questions that nobody asked change nothing."""
        for ask in self._waiting[:AT_ONCE]:
            part = ask.parts.get(body.node)
            if body.token not in ask.tokens or part is None:
                continue
            part.records[body.token, body.part] = bytes(body.tuples)
            part.since = now
            if body.last:
                part.counts[body.token] = body.part + 1
            ask.check()
        self._waiting = [ask for ask in self._waiting if not ask.over]

    def hear_states(self, body: Any, now: float) -> None:
        """A STATES record, likewise."""
        for ask in self._waiting[:AT_ONCE]:
            found = ask.states.united(body) if ask.states is not None and body.token in ask.tokens else None
            if found is None or not found[0] or not found[0] <= ask.parts.keys():
                continue
            ask.unite(*found)
            for node in found[0]:
                ask.parts[node].since = now
            ask.check()
        self._waiting = [ask for ask in self._waiting if not ask.over]

    def advance(self, now: float, send: Send) -> None:
        """Ask what is to be asked now; network time in s."""
        for ask in self._waiting[:AT_ONCE]:
            if not any(ask.parts[node].asked for node in ask.step.motes):
                self._send(ask, ask.step.motes, now, send)
            left = {node: ask.parts[node] for node in ask.waited_for}
            silent = [node for node, one in left.items() if one.is_silent(now)]
            if len(silent) == len(left) and all(one.asked >= TIMES for one in left.values()):
                ask.go_on()
                continue
            self._send(ask, [node for node in silent if left[node].asked < TIMES], now, send)
        self._waiting = [ask for ask in self._waiting if not ask.over]

    def _send(self, ask: IndexAsk, nodes: Iterable[int], now: float, send: Send) -> None:
        nodes = list(nodes)
        # All that are asked at once by one flood; each that has to be asked again by its own.
        targets = [BROADCAST] if len(nodes) == len(ask.step.motes) else nodes
        for target in targets:
            token = self._next_token()
            ask.tokens.add(token)
            send(target, token, ask.arguments())
        for node in nodes:
            one = ask.parts[node]
            one.told = one.told if one.asked else now
            one.asked, one.since = one.asked + 1, now
