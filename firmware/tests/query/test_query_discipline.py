"""Queue policies of the firmware against models of them that were written from the paper (TinyDB 2005, 6.3.1).

The models know timestamps and every row there was; the firmware keeps a score and a bit with each row that waits.
"""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, REFUSED, Mote, field, program
from firmware.tests.query.test_query_srt import srt
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, instruction
from skerry_protocol.codec import decode_values
from skerry_protocol.codes import Aggregate, PacketType, QueuePolicy
from skerry_protocol.programs import Queue
from skerry_protocol.records import Result, Status

LIGHT, TEMP = BY_NAME["light"].number, BY_NAME["temp"].number
QUERY = 3
#: Bytes of a STATUS whose mote has no constants set.
REPORT = len(Status.build(dict.fromkeys((field.name for field in Status.subcons), 0) | {"statics": []}))
#: A row's columns; None: NULL.
Columns = tuple[int | None, int | None]


@dataclass(frozen=True)
class Row:
    """A row as it arrives: its epoch, columns, samples combined in it, and rows left out before it."""

    epoch: int
    columns: Columns
    combined: int = 1
    left_out: int = 0


class Sender(Mote):
    """A mote with the real queue, whose radio is the test."""

    def __init__(self) -> None:
        super().__init__(host.discipline_library())
        self._c.queue_take.restype = ctypes.c_uint8
        self._c.queue_empty()
        self.children(False)
        self._c.queue_dropped.restype = ctypes.c_uint16
        self._dropped = self._c.queue_dropped()
        self.synchronise(9.5)

    def ask(self, policy: QueuePolicy | None, size: int = 0, every: int = 0, query: int = QUERY) -> int:
        """Light and temperature each second under a policy; None: without the clause."""
        fields = [
            field(ValueFormat.U16, instruction(Op.ATTR, LIGHT)),
            field(ValueFormat.I16, instruction(Op.ATTR, TEMP)),
        ]
        if policy is not None:
            fields.append(clause(policy, size, every))
        return self.install(program(fields), query)

    def sample(self, columns: Columns) -> None:
        """One epoch."""
        self.sensor(LIGHT, columns[0])
        self.sensor(TEMP, columns[1])
        self.run(1)

    def report(self) -> None:
        """A health report, which is longer than all rows here."""
        assert self._c.queue_push(ctypes.c_uint8(PacketType.STATUS), bytes(REPORT), ctypes.c_uint8(REPORT))

    def children(self, there: bool) -> None:
        """Whether other motes send through this one."""
        self._c.queue_children(ctypes.c_bool(there))

    def refresh_trees(self) -> None:
        """Its semantic routing trees ask for its own values; there are no neighbours."""
        self._c.neighbours_clear()
        self._c.app_srt_refresh(ctypes.c_bool(True))

    def window(self) -> None:
        """A control window begins."""
        self._c.app_window()

    @property
    def room(self) -> int:
        """Bytes left in the queue."""
        self._c.queue_room.restype = ctypes.c_uint16
        return int(self._c.queue_room())

    def packets(self) -> Iterator[tuple[int, int]]:
        """Length and query of all that may go."""
        body = (ctypes.c_uint8 * 128)()
        while length := self._c.queue_take(body):
            yield length, body[0]

    def length(self) -> int:
        """Takes one, and says how long it is."""
        return next(self.packets())[0]

    def take(self) -> Row | None:
        """The next row that goes."""
        body = (ctypes.c_uint8 * 128)()
        length = self._c.queue_take(body)
        if length == 0:
            return None
        result = Result.parse(bytes(body[:length]))
        (light, temp), combined, left_out = decode_values(result["values"], struct.Struct("<Hh"))
        columns = (None if result.nulls & 1 else light, None if result.nulls & 2 else temp)
        return Row(result.epoch, columns, combined, left_out)

    def rows(self) -> list[Row]:
        """All that may go."""
        return list(iter(self.take, None))

    @property
    def dropped(self) -> int:
        """What the health attribute has grown by."""
        return int(self._c.queue_dropped()) - self._dropped


def clause(policy: int, size: int = 0, every: int = 0) -> dict[str, object]:
    """A QUEUE of a program."""
    code = Queue.build({"policy": int(policy), "size": size, "every": every})
    return {"format": 0, "aggregate": int(Aggregate.QUEUE), "code": code}


# ---- the paper's policies ----


class Naive:
    """First in, first out; a row that does not fit is dropped."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.queue: list[Row] = []
        self.lost = 0

    def enqueue(self, epoch: int, columns: Columns) -> None:
        """A new row."""
        if len(self.queue) >= self.size:
            self.lost += 1
            return
        self.queue.append(Row(epoch, columns, 1, self.lost))
        self.lost = 0

    def deliver(self) -> Row | None:
        """What goes next."""
        return self.queue.pop(0) if self.queue else None


def average(into: int | None, weight: int, other: int | None, rest: int) -> int | None:
    """To the nearest, halves away from the newer row's value."""
    if into is None or other is None:
        return other if into is None else into
    distance, count = abs(other - into) * rest, weight + rest
    step = (2 * distance + count) // (2 * count)
    return into + step if other > into else into - step


class Winavg(Naive):
    """The two rows at the head are averaged to make room; of a queue of one, that and the new one."""

    def enqueue(self, epoch: int, columns: Columns) -> None:
        """A new row."""
        self.queue.append(Row(epoch, columns))
        if len(self.queue) > self.size:
            a, b = self.queue[0], self.queue[1]
            merged = [
                average(y, b.combined, x, a.combined) for x, y in zip(a.columns, b.columns, strict=True)
            ]
            self.queue[:2] = [
                Row(b.epoch, (merged[0], merged[1]), a.combined + b.combined, a.left_out + b.left_out)
            ]


def distance(a: Columns, b: Columns) -> int:
    """Of all columns together; NULL is as far from a value as can be."""
    pairs = zip(a, b, strict=True)
    each = [65535 * (x is not y) if x is None or y is None else abs(x - y) for x, y in pairs]
    return min(sum(each), 65535)


class Delta(Naive):
    """Scores are differences from the delivered row that was sampled last before; the lowest is evicted, the highest goes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.delivered: dict[int, Columns] = {}

    def score(self, row: Row) -> int:
        """Against the most recent of the delivered rows that were sampled before it."""
        before = [epoch for epoch in self.delivered if epoch < row.epoch]
        return distance(row.columns, self.delivered[max(before)]) if before else 65535

    def enqueue(self, epoch: int, columns: Columns) -> None:
        """A new row."""
        self.queue.append(Row(epoch, columns, 1, self.lost))
        self.lost = 0
        if len(self.queue) > self.size:
            i = min(range(len(self.queue)), key=lambda i: (self.score(self.queue[i]), i))
            victim = self.queue.pop(i)
            if i < len(self.queue):
                heir = self.queue[i]
                left_out = heir.left_out + victim.left_out + 1
                self.queue[i] = Row(heir.epoch, heir.columns, 1, left_out)
            else:
                self.lost = victim.left_out + 1

    def deliver(self) -> Row | None:
        """What goes next."""
        if not self.queue:
            return None
        i = max(range(len(self.queue)), key=lambda i: (self.score(self.queue[i]), -i))
        row = self.queue.pop(i)
        self.delivered[row.epoch] = row.columns
        return row


MODELS = {QueuePolicy.NAIVE: Naive, QueuePolicy.WINAVG: Winavg, QueuePolicy.DELTA: Delta}

lights = st.none() | st.integers(0, 65535) | st.integers(100, 110)
temps = st.none() | st.integers(-32768, 32767) | st.integers(-3, 3)
#: What happens: a sample, or (None) room for one row on the radio.
happenings = st.lists(st.none() | st.tuples(lights, temps), max_size=60)


@given(st.sampled_from(QueuePolicy), st.integers(1, 7), happenings)
def test_policies_do_what_the_paper_says(
    policy: QueuePolicy, size: int, events: list[Columns | None]
) -> None:
    mote, model = Sender(), MODELS[policy](size)
    assert mote.ask(policy, size) == COMPLETE
    epoch, samples = 10, 0
    arrived: list[Row] = []
    for event in events:
        if event is None:
            row = mote.take()
            assert row == model.deliver()
            arrived += [row] if row else []
        else:
            mote.sample(event)
            model.enqueue(epoch, event)
            epoch, samples = epoch + 1, samples + 1
    mote.sample((7, 7))  # where the last samples were left out, the next row says so
    model.enqueue(epoch, (7, 7))
    left = mote.rows()
    assert left == list(iter(model.deliver, None))
    accounted = sum(row.combined + row.left_out for row in arrived + left)
    # Whatever is not in a row or counted by one is what the last samples came to.
    assert accounted + model.lost == samples + 1
    assert mote.dropped == 0


def test_rows_that_stand_for_themselves_carry_no_tally() -> None:
    mote = Sender()
    mote.ask(QueuePolicy.WINAVG, 2)
    lengths = []
    for samples in (1, 2, 3):
        for _ in range(samples):
            mote.sample((1, 2))
        lengths.append([length for length, _ in mote.packets()])
    assert lengths == [[13], [13, 13], [17, 13]]


def test_one_row_goes_with_each_epoch_in_which_one_may() -> None:
    mote = Sender()
    mote.ask(QueuePolicy.NAIVE, 5, every=4)
    went = []
    for epoch in range(10, 50):
        mote.sample((epoch, 0))
        went.append(len(mote.rows()))
    assert [went[i] for i in range(len(went)) if (i + 10) % 4 == 0] == [1] * 10
    assert sum(went) == 10
    assert [mote.epoch_in(second) for second in range(60, 66)] == [True, False, False, False, True, False]


@pytest.mark.parametrize("policy", QueuePolicy)
def test_without_a_size_the_queue_itself_is_the_limit(policy: QueuePolicy) -> None:
    mote = Sender()
    mote.ask(policy)
    for epoch in range(10, 310):
        mote.sample((epoch, 0))
    rows = mote.rows()
    assert 50 < len(rows) < 200
    mote.sample((1000, 0))
    last = mote.rows()[0]
    assert sum(row.combined + row.left_out for row in [*rows, last]) == 301
    assert mote.dropped == (last.left_out if policy is QueuePolicy.NAIVE else 0)


@pytest.mark.parametrize("policy", QueuePolicy)
def test_a_mote_with_children_keeps_room_for_their_rows(policy: QueuePolicy) -> None:
    mote = Sender()
    mote.children(True)
    mote.ask(policy)
    for epoch in range(10, 110):
        mote.sample((epoch, 0))
    rows = mote.rows()
    assert 20 <= len(rows) <= 40


def test_several_samples_a_second_where_rows_wait() -> None:
    mote = Sender()
    light = field(ValueFormat.U16, instruction(Op.ATTR, LIGHT))
    assert mote.install(program([light, clause(QueuePolicy.NAIVE)], period=250), QUERY) == COMPLETE
    assert (
        mote.install(program([light, clause(QueuePolicy.NAIVE, every=10)], period=250), QUERY + 2) == COMPLETE
    )
    mote.sensor(LIGHT, 5)
    assert mote.epoch_in(20)
    mote.stop(QUERY)
    # One in 2.5 s: at 20, 22.5, 25, 27.5 s.
    assert [mote.epoch_in(second) for second in range(20, 28)] == [
        True,
        False,
        True,
        False,
        False,
        True,
        False,
        True,
    ]


def test_rows_of_queries_without_the_clause_say_what_was_left_out_before_them() -> None:
    mote = Sender()
    mote.ask(None)
    for epoch in range(10, 210):
        mote.sample((epoch, 0))
    rows = mote.rows()
    assert all(row.left_out == 0 and row.combined == 1 for row in rows)
    mote.sample((1000, 0))
    mote.sample((1001, 0))
    assert [row.left_out for row in mote.rows()] == [200 - len(rows), 0]


def test_rows_go_before_health_reports() -> None:
    mote = Sender()
    mote.ask(None)
    mote.report()
    mote.sample((5, 0))
    mote.report()
    mote.sample((6, 0))
    lengths = [length for length, _ in mote.packets()]
    assert [length == REPORT for length in lengths] == [False, False, True, True]


def test_a_mote_that_has_always_rows_reports_now_and_then() -> None:
    mote = Sender()
    mote.ask(None)
    mote.report()
    mote.report()
    went = []
    for epoch in range(250):
        mote.sample((epoch, 0))
        went.append(mote.length())
    reports = [epoch for epoch, length in enumerate(went) if length == REPORT]
    assert reports == [100, 201]


def test_queries_do_not_touch_each_others_rows() -> None:
    mote = Sender()
    mote.ask(QueuePolicy.WINAVG, 2, query=1)
    mote.ask(QueuePolicy.DELTA, 3, query=2)
    mote.ask(None, query=4)
    for value in (5, 9, 1, 7, 3, 30, 31):
        mote.sample((value, 0))
    assert Counter(query for _, query in mote.packets()) == {1: 2, 2: 3, 4: 7}


def test_rows_of_a_query_that_was_stopped_still_go() -> None:
    mote = Sender()
    mote.ask(QueuePolicy.DELTA, 3, every=100)
    for value in (5, 9, 1, 7, 3):
        mote.sample((value, 0))
    assert mote.rows() == []
    mote.stop(QUERY)
    assert [row.epoch for row in mote.rows()] == [12, 13, 14]
    mote.ask(QueuePolicy.DELTA, 3)
    mote.sample((100, 0))
    assert [row.columns for row in mote.rows()] == [(100, 0)]


def test_a_query_that_is_passed_over_leaves_nothing_in_the_queue() -> None:
    """Its newest row was kept to compare others with."""
    mote = Sender()
    mote.sensor(LIGHT, 15)
    assert mote.install(srt("light"), 1) == COMPLETE
    mote.refresh_trees()
    room = mote.room
    fields = [field(ValueFormat.I32, instruction(Op.ATTR, LIGHT)), clause(QueuePolicy.DELTA)]
    fields.append({"format": 0, "aggregate": int(Aggregate.ROUTE), "code": bytes([1, 10, 20, 255, 0])})
    mote.sensor(LIGHT, 15)
    mote.run(2)
    assert mote.install(program(fields), QUERY, version=2) == COMPLETE
    mote.run(3)
    assert list(mote.packets())
    assert mote.room < room
    mote.sensor(LIGHT, 200)
    mote.run(1.2)
    list(mote.packets())
    for _ in range(7):
        mote.window()
    assert QUERY not in mote.queries()
    assert mote.room == room


@pytest.mark.parametrize(
    "bad", [b"", b"\x00\x05", b"\x03\x05\x00", b"\x00\x05\x00\x00"], ids=["empty", "short", "policy", "long"]
)
def test_a_clause_that_makes_no_sense_is_refused(bad: bytes) -> None:
    mote = Sender()
    light = field(ValueFormat.U16, instruction(Op.ATTR, LIGHT))
    assert (
        mote.install(program([light, {"format": 0, "aggregate": int(Aggregate.QUEUE), "code": bad}]), 1)
        == REFUSED
    )


def test_partial_states_know_no_policy() -> None:
    mote = Sender()
    count = field(ValueFormat.I32, b"", Aggregate.COUNT)
    assert mote.install(program([count, clause(QueuePolicy.DELTA)], flags=1), 1) == REFUSED
