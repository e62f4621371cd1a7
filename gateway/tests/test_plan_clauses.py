"""ON EVENT, STOP ON EVENT, SIGNAL and OUTPUT ACTION: planned here, run by the motes' own code."""

from __future__ import annotations

import pytest

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, REFUSED, Mote, field, program
from skerry.lang.errors import QueryError
from skerry.plan.clauses import event_number
from skerry.plan.merge import merge
from skerry.plan.model import MoteQuery, QueryPlan
from skerry.plan.planner import plan_query
from skerry.plan.program import encode, program_size
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, instruction
from skerry_protocol.packets import Aggregate, CommandOp

HOT = event_number("hot")


def mote_query(text: str) -> MoteQuery:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    assert MoteQuery.from_dict(query.to_dict()) == query
    assert len(encode(query, 0)) == program_size(query)
    return query


@pytest.fixture
def mote() -> Mote:
    mote = Mote(host.query_library())
    mote.sensor(BY_NAME["temp"].number, 2000)
    mote.synchronise(99.5)
    return mote


def run(mote: Mote, seconds: int) -> list[int]:
    """Epochs of the rows in that time."""
    mote.run(seconds)
    return [record.body.epoch for record in mote.records()]


def test_a_query_waits_for_its_event_and_runs_for_its_time(mote: Mote) -> None:
    query = mote_query("ON EVENT hot: SELECT temp, event.nodeid SAMPLE PERIOD 1 s FOR 3 s")
    assert mote.install(encode(query, 0), 1) == COMPLETE
    assert run(mote, 5) == []
    mote.event(event_number("cold"), 9, 104)
    assert run(mote, 5) == []
    mote.event(HOT, 9, 109)
    assert run(mote, 10) == [110, 111, 112]
    mote.event(HOT, 9, 119)
    mote.run(1)
    (record,) = mote.records()
    assert record.body["values"][2:4] == (9).to_bytes(2, "little")
    assert mote.queries() == [1]


@pytest.mark.parametrize(
    ("interleave", "epochs"),
    [("", [100, 101, 102, 103, 104, 105, 106]), ("NO INTERLEAVE ", [100, 101, 102, 103])],
)
def test_an_event_while_the_query_runs(mote: Mote, interleave: str, epochs: list[int]) -> None:
    mote.install(encode(mote_query(f"ON EVENT hot SELECT {interleave}temp SAMPLE PERIOD 1 s FOR 4 s"), 0), 1)
    mote.event(HOT, 9, 99)
    before = run(mote, 3)
    mote.event(HOT, 8, 102)
    assert before + run(mote, 10) == epochs


def test_events_are_called_as_in_the_paper() -> None:
    """TinyDB 2005, 3.5."""
    query = mote_query(
        "ON EVENT bird-detect(loc): SELECT AVG(light), AVG(temp), event.xpos FROM sensors AS s "
        "GROUP BY event.xpos SAMPLE PERIOD 2 s FOR 30 s"
    )
    assert [clause.name for clause in query.clauses] == ["bird-detect"]
    stops = mote_query("SELECT temp SAMPLE PERIOD 2 s STOP ON EVENT bird-detect").clauses
    assert [(clause.name, clause.expr) for clause in stops] == [("bird-detect", None)]


def test_once_is_one_row_for_each_event(mote: Mote) -> None:
    mote.install(encode(mote_query("ON EVENT hot SELECT temp ONCE"), 0), 1)
    mote.event(HOT, 9, 99)
    assert run(mote, 5) == [100]
    mote.event(HOT, 9, 104)
    assert run(mote, 5) == [105]


def test_a_threshold_raises_its_event_once_for_each_crossing(mote: Mote) -> None:
    mote.install(encode(mote_query("SELECT temp WHERE temp > 25 SIGNAL hot SAMPLE PERIOD 1 s"), 0), 1)
    for temp, signals in ((2000, 0), (3000, 1), (3100, 1), (2400, 1), (2600, 2), (None, 2), (2600, 3)):
        mote.sensor(BY_NAME["temp"].number, temp)
        mote.run(1)
        assert mote.signals == signals, temp


def test_a_signal_starts_what_waits_for_it(mote: Mote) -> None:
    """The query that detects and the one that follows run on the same mote."""
    mote.install(encode(mote_query("SELECT temp WHERE temp > 25 SIGNAL hot SAMPLE PERIOD 1 s"), 0), 1)
    mote.install(encode(mote_query("ON EVENT hot SELECT event.xpos, level SAMPLE PERIOD 1 s FOR 2 s"), 0), 2)
    mote.run(3)
    assert list(mote.records()) == []
    mote.sensor(BY_NAME["temp"].number, 3000)
    mote.run(3)
    rows = [(record.body.query, record.body.epoch) for record in mote.records()]
    assert [epoch for query, epoch in rows if query == 2] == [104, 105]
    assert [epoch for query, epoch in rows if query == 1] == [103, 104, 105]


def test_stop_on_event(mote: Mote) -> None:
    mote.install(
        encode(mote_query("SELECT temp SAMPLE PERIOD 1 s STOP ON EVENT hot WHERE event.xpos > 5 m"), 0), 1
    )
    mote.event(HOT, 9, 102, x=100)
    assert run(mote, 3) == [100, 101, 102]
    mote.event(HOT, 9, 103, x=600)
    assert run(mote, 5) == []
    assert mote.queries() == [1], "kept until the gateway stops it: no neighbour sends it again"


def test_actions_run_with_each_row(mote: Mote) -> None:
    query = mote_query("SELECT temp WHERE temp > 25 OUTPUT ACTION leds(level * 0 + 5) SAMPLE PERIOD 1 s")
    mote.tree(0, 1)
    mote.install(encode(query, 0), 1)
    mote.run(3)
    assert mote.actions[0] == 0
    mote.sensor(BY_NAME["temp"].number, 3000)
    mote.run(2)
    assert mote.actions == (2, CommandOp.SET_LEDS, 5)


NODEID = instruction(Op.ATTR, 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"format": 0, "aggregate": Aggregate.ON_EVENT, "code": b"\1\2"},
        {"format": 0, "aggregate": Aggregate.ON_EVENT, "code": bytes(7)},
        {"format": 0, "aggregate": Aggregate.STOP_ON, "code": b"\1"},
        {"format": 0, "aggregate": Aggregate.STOP_ON, "code": b"\1\2\xff"},
        {"format": 0, "aggregate": Aggregate.SIGNAL, "code": b""},
        {"format": 0, "aggregate": Aggregate.ACTION, "code": b""},
        {"format": 0, "aggregate": 69, "code": b"\1\2"},
    ],
)
def test_clauses_that_cannot_be_are_refused(mote: Mote, bad: dict[str, object]) -> None:
    assert mote.install(program([field(ValueFormat.U16, NODEID), bad]), 1) == REFUSED


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("ON EVENT hot SELECT temp SAMPLE PERIOD 2 s", "ON EVENT needs to know how long the query runs at column 10: "
         "write SAMPLE PERIOD n FOR n, or ONCE"),
        ("SELECT temp, event.nodeid ONCE", "this query has no event at column 14: "
         "begin with ON EVENT name, or leave it out"),
        ("ON EVENT hot SELECT event.node ONCE", "unknown attribute 'event.node' at column 21: "
         "did you mean 'event.nodeid'? of an event there are event.nodeid, event.xpos, event.ypos, event.time"),
        ("SELECT temp OUTPUT ACTION lods(1) ONCE", "unknown command 'lods' at column 27: "
         "did you mean 'leds'? commands are leds"),
        ("SELECT temp OUTPUT ACTION leds ONCE", "leds needs an argument at column 13: "
         "it is 0 to 7: 1 red, 2 green and 4 yellow, added up"),
        ("SELECT AVG(temp) SIGNAL hot ONCE", "an aggregate is known at the root only at column 18: "
         "motes act on rows of their own: leave the aggregate out"),
    ],
)  # fmt: skip
def test_refusals(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert raised.value.summary == message
