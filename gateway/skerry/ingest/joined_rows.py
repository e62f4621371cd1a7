"""Rows that motes join with each other: what they have joined becomes rows of the query, and what comes up unjoined is joined here, in the
same way.

Of pairs that the gateway joins all rows come, so their windows are known. Of others a row comes only if it has passed its host, as where a
mote has just found another parent: windows of rows may then lack some, and such rows are joined only where these could not matter, with
each other and with those of which the host's answers tell. Windows of the host lack them, too: what it joins of windows of rows waits here
until what has passed it has come, and ends where that shows that the window does not reach so far. Rows that nobody has count by the
numbers of those that came. What was lost with a mote that has started again nobody knows: windows of rows reach behind that only where
there are too few epochs for more rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr
from skerry.ingest.join_tally import JoinTally
from skerry.joins.placement.learning import Role
from skerry.planner.model.pair_groups import S, T
from skerry.planner.model.pairing import (
    BEHIND,
    CLIMB_MS,
    HOST,
    carried_columns,
    hosts_of,
    missing,
    number_of,
    numbered,
    pairs_clause,
)
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.bytecode import Op, StoredField
from skerry_protocol.codec import Joined, Result, decode_values
from skerry_protocol.errors import PacketError
from skerry_protocol.limits import JOINED_NUMBER, RESULT_NONE_BEFORE
from skerry_protocol.programs import Pairs

Values = tuple[int | None, ...]
_ROLES = {"s": S, "t": T}
#: Hosts whose queues are full answer so many epochs later at most: until then it is known what windows they have answered of.
_LATE_EPOCHS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A mote's row before it is joined; ``values``: of the attributes that it carries."""

    node: int
    epoch: int
    #: As what it has passed, with its number in each.
    passed: int
    values: Values
    #: Of its mote's first row in a role since it started: so many epochs right before it had none.
    none_before: int = 0


@dataclass
class JoinedRows:
    """Of one mote query in one session."""

    query: MoteQuery
    #: Rows that have come though a mote was to join them, and those that came too late.
    strays: int = 0
    late: int = 0
    _rows: dict[int, dict[int, Row]] = field(default_factory=dict)
    #: Of which hosts' answers tell: each as what it was answered.
    _told: dict[int, dict[int, Row]] = field(default_factory=dict)
    _told_from: int = 0
    #: What hosts have joined, and how many of these were there when it was last asked what meets.
    _held: list[tuple[Row, Row]] = field(default_factory=list)
    _judged: int = 0
    _joined: int = 0

    def __post_init__(self) -> None:
        clause = pairs_clause(self.query)
        assert clause is not None
        self._head = Pairs.parse(bytes(clause.values))
        self._base = frozenset(clause.pairs)
        #: By pair the mote that joins it.
        self._host = {pair: host for host, (_, pairs) in hosts_of(clause).items() for pair in pairs}
        self._pairs = [*clause.pairs, *sorted(self._host.keys() - self._base)]
        #: As what rows of which motes come, as the gateway joins them, and as what they end at hosts.
        self._of_base = _roles(self._base)
        self._hosted = _roles(self._host) - self._of_base
        #: Pairs all of whose rows come.
        self._known = {pair for pair in self._pairs if self._of_base.issuperset(_roles([pair]))}
        formats = [column.format for column in carried_columns(clause, self.query.where)]
        self._layout = struct.Struct("<" + "".join(one.letter for one in formats))
        self.layout = struct.Struct("<" + "".join(column.format.letter for column in self.query.columns))
        self._condition = clause.expr
        self._keeps = int(self._head.rows), int(self._head.epochs)
        #: What of it is counted.
        self.tally = JoinTally(self._pairs, self._of_base)
        self._found: tuple[int, list[tuple[Row, Row]]] = 0, []

    # ---- what motes have joined ----

    def joined(self, body: Joined) -> list[Result]:
        """The row of two that met at a mote, unless it has to wait. Raises PacketError."""
        inner = struct.Struct("<" + self._layout.format.removeprefix("<")[1:])
        if len(body.values) != 2 * inner.size:
            raise PacketError(f"a joined row of {len(body.values)} bytes: {2 * inner.size} are expected")
        halves = body.values[: inner.size], body.values[inner.size :]
        passed = numbered(S, body.s_nulls >> JOINED_NUMBER), numbered(T, body.t_nulls >> JOINED_NUMBER)
        s = Row(body.s, body.s_epoch, passed[0], _nulled(inner.unpack(halves[0]), body.s_nulls >> 1))
        t = Row(body.t, body.t_epoch, passed[1], _nulled(inner.unpack(halves[1]), body.t_nulls >> 1))
        self._is_told(s)
        self._is_told(t)
        if not self._head.rows:
            self.tally.answered(s.node, s.epoch, t.node, t.epoch)
            return [self._result(body.query, s, t, self._host_of(s, t))]
        if _later(s, t) < self._joined - _LATE_EPOCHS:
            self.late += 1
            return []
        self.tally.came(_later(s, t))
        self._held.append((s, t))
        return []

    def _is_told(self, row: Row) -> None:
        known = self._told.setdefault(row.node, {})
        before = known.get(row.epoch)
        known[row.epoch] = row if before is None else replace(row, passed=row.passed | before.passed)

    def passed(self, body: Any) -> None:
        """How many rows a mote has had that others join, by a PASSED."""
        self.tally.told(body.node, body.epoch, body.epochs, body.s, body.t)

    def _host_of(self, s: Row, t: Row) -> int | None:
        """Which mote has joined two rows that came as an answer."""
        return self._host.get((s.node, t.node))

    def _result(self, query: int, s: Row, t: Row, host: int | None) -> Result:
        of_both: dict[Expr | None, int | None] = {HOST: host}
        of_both |= {expr: _later(s, t) - row.epoch for expr, row in zip(BEHIND, (s, t), strict=True)}
        values = [
            of_both[column.expr] if column.expr in of_both else self._value(column.expr, s, t)
            for column in self.query.columns
        ]
        nulls = sum(1 << i for i, value in enumerate(values) if value is None)
        return Result(query, s.node, _later(s, t), nulls, self.layout.pack(*(value or 0 for value in values)))

    def _value(self, expr: Expr | None, s: Row, t: Row) -> int | None:
        assert expr is not None
        assert expr.operand is not None
        row, index = (t if expr.operand >> 4 else s), expr.operand & 15
        match index:
            case StoredField.NUMBER:
                return row.node
            case StoredField.SECONDS:
                return row.epoch * self.query.period_ms // 1000
            case StoredField.MILLISECONDS:
                return row.epoch * self.query.period_ms % 1000
        return row.values[index - 1]

    # ---- what comes up ----

    def take(self, body: Result) -> None:
        """A mote's own row. Raises PacketError. One that comes twice changes nothing."""
        values, _, _ = decode_values(body.values, self._layout)
        if body.epoch < self._joined:
            self.late += 1
            return
        known = self._rows.setdefault(body.node, {})
        self.tally.came(body.epoch)
        if body.epoch not in known:
            shown = _nulled(values[1:], body.nulls >> 1)
            known[body.epoch] = Row(body.node, body.epoch, values[0], shown, body.nulls >> RESULT_NONE_BEFORE)
            had = {(body.node, name) for name, role in _ROLES.items() if values[0] & role}
            self.strays += bool(had & self._hosted) and not had & self._of_base

    def due(self, query: int, now_ms: int) -> tuple[int, list[Result]]:
        """What meets of epochs that are over now, and up to which epoch that is; :meth:`done` says that it is kept."""
        # What is too late for its host climbs from when that joins its epoch.
        until = (now_ms - CLIMB_MS) // self.query.period_ms - int(self._head.delay) + 1
        if until <= self._joined or not (self._rows or self._held):
            self.tally.settle(until)
            if until > self._told_from:
                self._told_from = until
                self._forget(self._told, until - _LATE_EPOCHS)
            return self._joined, []
        self._judged = len(self._held)
        held = [pair for pair in self._held if _later(*pair) < until and self._is_certain(*pair, until)]
        met = [pair for one in self._pairs for pair in self._meets(one, until)]
        here = {_key(*pair) for pair in held}
        own = [pair for pair in self._matching(met) if _key(*pair) not in here]
        self._found = until, [*held, *own]
        told = [self._result(query, s, t, self._host_of(s, t)) for s, t in held]
        return until, [*told, *(self._result(query, s, t, None) for s, t in own)]

    def done(self, until: int) -> None:
        """All before that epoch are joined: what is in no window any more goes."""
        if until <= self._joined:
            return
        if self._found[0] == until:
            for s, t in self._found[1]:
                self.tally.answered(s.node, s.epoch, t.node, t.epoch)
        self._found = 0, []
        self.tally.settle(until, self._passed(self._joined, until))
        self._joined = until
        self._held = [
            pair for i, pair in enumerate(self._held) if i >= self._judged or _later(*pair) >= until
        ]
        self._judged = 0
        for known in (self._rows, self._told):
            self._forget(known, until - _LATE_EPOCHS)

    def _forget(self, all_known: dict[int, dict[int, Row]], until: int) -> None:
        """What is in no window any more from an epoch on."""
        rows, epochs = self._keeps
        for node, known in list(all_known.items()):
            of = {
                role: sorted(row.epoch for row in known.values() if row.passed & role and row.epoch < until)
                for role in (S, T)
            }
            kept = {
                epoch
                for one in of.values()
                for epoch in (one[-rows:] if rows else [at for at in one if at >= until - epochs])
            }
            all_known[node] = {epoch: row for epoch, row in known.items() if epoch >= until or epoch in kept}
            if not all_known[node]:
                del all_known[node]

    def _passed(self, since: int, until: int) -> Iterator[tuple[int, str, int]]:
        """Rows of these epochs, as what they have passed."""
        for node, name in self._of_base:
            for row in self._rows.get(node, {}).values():
                if since <= row.epoch < until and row.passed & _ROLES[name]:
                    yield node, name, row.epoch

    def _meets(self, pair: tuple[int, int], until: int) -> Iterator[tuple[Row, Row]]:
        """Two rows of which at least one has come here: of others its host has joined what it could."""
        for s, t in self._within(pair, until):
            if any(row.epoch in self._rows.get(row.node, ()) for row in (s, t)):
                yield s, t

    def _within(self, pair: tuple[int, int], until: int) -> Iterator[tuple[Row, Row]]:
        s, t = (self._of(mote, role) for mote, role in zip(pair, (S, T), strict=True))
        for later in s:
            if self._joined <= later.epoch < until:
                yield from ((later, row) for row in self._window(t, T, later.epoch, until, pair))
        for later in t:
            if self._joined <= later.epoch < until:
                yield from (
                    (row, later)
                    for row in self._window(s, S, later.epoch, until, pair)
                    if row.epoch < later.epoch
                )

    def _of(self, mote: int, role: int) -> list[Row]:
        rows = self._told.get(mote, {}) | self._rows.get(mote, {})
        return [rows[epoch] for epoch in sorted(rows) if rows[epoch].passed & role]

    def _window(self, rows: list[Row], role: int, at: int, until: int, pair: tuple[int, int]) -> list[Row]:
        """Of a mote's rows those in its window at an epoch, before ``until``."""
        count, epochs = self._keeps
        before = [row for row in rows if row.epoch <= at]
        if not count:
            return [row for row in before if row.epoch >= at - epochs]
        window = _Window(count, role, at, until)
        if pair in self._known:
            return [row for i, row in enumerate(before) if window.has(row, rows[i + 1 :])]
        # Rows that its host has do not come here.
        return [row for i, row in enumerate(before) if window.surely_has(row, rows[i + 1 :])]

    def _is_certain(self, s: Row, t: Row, until: int) -> bool:
        """Whether the earlier of two that a host has joined is in its window, after all that has come here."""
        earlier, role = (s, S) if s.epoch <= t.epoch else (t, T)
        at = _later(s, t)
        passed = [row for row in self._of(earlier.node, role) if earlier.epoch < row.epoch <= at]
        return _Window(self._keeps[0], role, at, until).has(earlier, passed)

    def _matching(self, met: list[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
        if self._condition is None or not met:
            return met
        leaves = {node for node in self._condition.walk() if node.op is Op.STORED}
        columns = {leaf: _vector([self._value(leaf, s, t) for s, t in met]) for leaf in leaves}
        truth = Evaluator(columns, np.zeros(len(met), np.int64)).truth(self._condition, self.query.period_ms)
        return [pair for pair, true in zip(met, truth, strict=True) if true]


def _roles(pairs: Iterable[tuple[int, int]]) -> set[Role]:
    """As what their motes are in them."""
    return {(mote, name) for pair in pairs for mote, name in zip(pair, _ROLES, strict=True)}


def _key(s: Row, t: Row) -> tuple[int, int, int, int]:
    """What tells an answer."""
    return s.node, s.epoch, t.node, t.epoch


def _later(s: Row, t: Row) -> int:
    """The epoch at which two are joined."""
    return max(s.epoch, t.epoch)


@dataclass(frozen=True, slots=True)
class _Window:
    """A mote's last ``count`` rows in a role up to an epoch; of epochs before ``until`` none can come any more."""

    count: int
    role: int
    at: int
    until: int

    def has(self, row: Row, behind: Sequence[Row]) -> bool:
        """Whether a row is among them for certain. ``behind``: those of its mote and role behind it that have come, by their epochs."""
        others = [other for other in behind if other.epoch <= self.at]
        before, count = row, 0
        for other in others:
            count += 1 + self._lost_between(before, other)
            before = other
        return count + self._lost_behind(before, behind[len(others) :]) < self.count

    def _lost_between(self, row: Row, later: Row) -> int:
        """Rows that may be lost between two of those that have come. What its mote had before it started again no number tells: an epoch
        has one at most."""
        number = number_of(later.passed, self.role)
        if number:
            return missing(number_of(row.passed, self.role), number, 1)
        return max(0, later.epoch - later.none_before - row.epoch - 1)

    def surely_has(self, row: Row, behind: Sequence[Row]) -> bool:
        """The same whatever rows there are that have not come: an epoch has one at most, and the number of the first one behind the window
        says how many there were, unless its mote may have started again in between."""
        following = next((other for other in behind if other.epoch > self.at), None)
        least = self.at - row.epoch
        if following is not None:
            number = number_of(following.passed, self.role)
            if following.epoch - row.epoch <= number:
                least = min(least, missing(number_of(row.passed, self.role), number, 1))
        return least < self.count

    def _lost_behind(self, newest: Row, following: Sequence[Row]) -> int:
        """Rows that may be lost between the newest one and the window's end, by the number of the one that follows."""
        number = number_of(following[0].passed, self.role) if following else 0
        # What a mote lost as it started again no number tells.
        if not number:
            return 0
        between = missing(number_of(newest.passed, self.role), number, 1)
        late = max(0, following[0].epoch - self.until)
        return min(self.at - newest.epoch, max(0, between - late))


def _nulled(values: tuple[int, ...], nulls: int) -> Values:
    return tuple(None if nulls >> i & 1 else value for i, value in enumerate(values))


def _vector(values: list[int | None]) -> Vector:
    return np.array([value or 0 for value in values], np.int64), np.array(
        [value is not None for value in values], bool
    )
