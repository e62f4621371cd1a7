"""What a plan of a join sends and listens to in a network, epoch by epoch: rows and matches are drawn, links lose nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skerry.joins.placement.estimates import Pair
from skerry.joins.placement.plans import Flow, Plan
from skerry.joins.placement.trees import Link, Tree
from skerry.planner.cost import radio
from skerry.planner.cost.join_prices import (
    CELL_SECONDS,
    CHILD_CELLS,
    FRAME_BYTES,
    RECORD_BYTES,
    ROOM,
    WAY_FRAME_BYTES,
    answer_bytes,
    carried_bytes,
    kept_rows,
    row_bytes,
    way_cells,
)

#: A row has u alone, an answer u of both motes.
ROW_VALUES, ANSWER_VALUES = 1, 2


@dataclass(frozen=True)
class Readings:
    """Of all motes in all epochs: whether a row passes as s and as t, and the values that are compared."""

    passes: Mapping[str, NDArray[np.bool_]]
    values: NDArray[np.int64]
    #: Two rows meet where values differ by at least so much; None: where they are equal.
    differ: float | None = None

    @property
    def epochs(self) -> int:
        """How many."""
        return int(self.values.shape[1])

    @classmethod
    def drawn(
        cls,
        motes: int,
        epochs: int,
        s: float | NDArray[np.float64],
        t: float | NDArray[np.float64],
        pair: float | NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Readings:
        """Each share the same for all or by mote; two rows match with the share ``pair``, of motes that have the same one."""
        shape = (motes, epochs)
        either = {"s": rng.random(shape) < _column(s), "t": rng.random(shape) < _column(t)}
        among = np.round(1 / np.maximum(_column(pair), 1e-9)).astype(np.int64)
        values = rng.integers(0, np.broadcast_to(np.minimum(among, 1 << 40), shape))
        return cls(either, values)

    def then(self, other: Readings) -> Readings:
        """With those of further epochs behind them."""
        passes = {role: np.hstack([own, other.passes[role]]) for role, own in self.passes.items()}
        return Readings(passes, np.hstack([self.values, other.values]), self.differ)

    def sent(self, flow: Flow) -> NDArray[np.int64]:
        """Rows of its producers in each epoch."""
        found = np.zeros(self.epochs, np.int64)
        for mote, roles in flow.rows:
            found += np.any([self.passes[role][mote] for role in roles], axis=0)
        return found

    def answers(self, pair: Pair, window: int) -> NDArray[np.int64]:
        """Of a pair in each epoch: of two rows the earlier is among its mote's last ``window`` that passed, up to the later."""
        s, t = pair
        at_s, at_t = np.flatnonzero(self.passes["s"][s]), np.flatnonzero(self.passes["t"][t])
        found = np.zeros(self.epochs, np.int64)
        for (mote, own), (other, theirs), again in (
            ((s, at_s), (t, at_t), True),
            ((t, at_t), (s, at_s), False),
        ):
            for back in range(window):
                place = np.searchsorted(theirs, own, side="right") - 1 - back
                there = place >= 0
                when, then = own[there], theirs[place[there]]
                meets = self._meet(self.values[mote, when], self.values[other, then])
                # Rows of one epoch meet once.
                found[when[meets & ((when != then) | again)]] += 1
        return found

    def _meet(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self.differ is None:
            return np.equal(one, other)
        far: NDArray[np.bool_] = np.abs(one - other) >= self.differ
        return far


def _column(share: float | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.reshape(share, (-1, 1)).astype(float)


@dataclass
class Load:
    """Bytes from PHY to FCS with acknowledgements, sent and received, and seconds of listening in vain, by mote."""

    sent: NDArray[np.float64]
    received: NDArray[np.float64]
    listened: NDArray[np.float64]

    @classmethod
    def none(cls, motes: int) -> Load:
        """Nobody has done anything."""
        return cls(*np.zeros((3, motes)))

    @property
    def total(self) -> float:
        """Bytes sent."""
        return float(self.sent.sum())

    @property
    def by_mote(self) -> NDArray[np.float64]:
        """Bytes that each sends and receives."""
        found: NDArray[np.float64] = self.sent + self.received
        return found

    @property
    def root(self) -> float:
        """Bytes that the root sends and receives."""
        return float(self.by_mote[0])

    @property
    def most(self) -> float:
        """Of the mote that sends and receives most, the root apart."""
        return float(self.by_mote[1:].max())

    @property
    def joules(self) -> float:
        """Of all, the root's included."""
        air = radio.both_ends(1.0) * self.total * radio.on_air(1) / (1 + radio.ACK_BYTES)
        return air + radio.listening(float(self.listened.sum()))

    def frames(self, link: Link, frames: float, payload: float, around: int) -> None:
        """Of a link: frames, what is in them, and what is around that."""
        sender, receiver = link
        there, back = payload + frames * around, frames * radio.ACK_BYTES
        self.sent[sender] += there
        self.received[receiver] += there
        self.sent[receiver] += back
        self.received[sender] += back

    def listen(self, mote: int, cells: float) -> None:
        """The radio was on in so many cells."""
        self.listened[mote] += cells * CELL_SECONDS

    def __add__(self, other: Load) -> Load:
        return Load(self.sent + other.sent, self.received + other.received, self.listened + other.listened)


@dataclass
class Metered:
    """Plans over the same readings; answers of a pair are reckoned once."""

    motes: int
    readings: Readings
    window: int
    period_s: float = 10.0
    _answers: dict[Pair, NDArray[np.int64]] = field(default_factory=dict)

    def answers(self, pairs: Iterable[Pair]) -> NDArray[np.int64]:
        """Of these pairs in each epoch."""
        found = np.zeros(self.readings.epochs, np.int64)
        for pair in pairs:
            if pair not in self._answers:
                self._answers[pair] = self.readings.answers(pair, self.window)
            found += self._answers[pair]
        return found

    def load(self, plan: Plan, epochs: slice = slice(None), tree: Tree | None = None) -> Load:
        """What a plan comes to in these epochs. ``tree``: with what is listened to in all of it, as motes do it, not in what the join uses
        of it alone."""
        load = Load.none(self.motes)
        up: dict[Link, NDArray[np.int64]] = {}
        count = len(range(*epochs.indices(self.readings.epochs)))
        for flow in plan.flows:
            records = (self.answers(flow.answers) if flow.answers else self.readings.sent(flow))[epochs]
            if flow.by_tree:
                size = RECORD_BYTES + (answer_bytes(ANSWER_VALUES) if flow.answers else row_bytes(ROW_VALUES))
                for link in flow.links:
                    up[link] = up.get(link, 0) + records * size
                continue
            # Where nothing goes, empty rows keep the way open.
            empty = int((records == 0).sum()) * kept_rows(self.period_s)
            sent, size = records.sum() + empty, carried_bytes(ROW_VALUES)
            for link in flow.links:
                load.frames(link, sent, sent * size, WAY_FRAME_BYTES)
                load.listen(link[1], count * way_cells(self.period_s))
        for link, payload in up.items():
            frames = np.ceil(payload / ROOM)
            load.frames(link, float(frames.sum()), float(payload.sum()), FRAME_BYTES)
            load.listen(link[1], count * CHILD_CELLS)
        for link in () if tree is None else tree.parents.items():
            if link not in up:
                load.listen(link[1], count * CHILD_CELLS)
        return load

    def window_rows(self, plan: Plan) -> Load:
        """What a window's rows of each mote and role come to, sent once more, on the ways that a plan has for its rows."""
        load = Load.none(self.motes)
        up: dict[Link, int] = {}
        for flow in plan.flows:
            if flow.answers:
                continue
            records = self.window * sum(len(roles) for _, roles in flow.rows)
            for link in flow.links:
                if flow.by_tree:
                    up[link] = up.get(link, 0) + records * (RECORD_BYTES + row_bytes(ROW_VALUES))
                else:
                    load.frames(link, records, records * carried_bytes(ROW_VALUES), WAY_FRAME_BYTES)
        for link, payload in up.items():
            load.frames(link, float(np.ceil(payload / ROOM)), payload, FRAME_BYTES)
        return load


def searched(
    motes: int,
    sent: Mapping[int, int],
    received: Mapping[int, int],
    path_motes: int,
    frames_of: Sequence[int],
) -> Load:
    """Frames of searches: an ask of 8 bytes, tree and direction, and a path of some 1.2 bytes a mote, in control windows; ``frames_of``:
    motes that send a frame of a tree or a summary, 12 bytes, once for each time that they are in it."""
    load = Load.none(motes)
    total = sum(sent.values())
    each = FRAME_BYTES + 10 + (1.2 * path_motes / total if total else 0)
    for mote, frames in sent.items():
        load.sent[mote] += frames * each
    for mote, frames in received.items():
        load.received[mote] += frames * each
        load.sent[mote] += frames * radio.ACK_BYTES
    for mote in frames_of:
        load.sent[mote] += FRAME_BYTES + 12
    return load
