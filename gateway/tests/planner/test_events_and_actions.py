"""ON EVENT, STOP ON EVENT, SIGNAL and OUTPUT ACTION: planned here, run by the motes' own code."""

from __future__ import annotations

import struct
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pytest

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, REFUSED, Mote, field, program
from gateway.tests.planner.test_storage_points import create
from skerry.execution.residual import Residual, Rows
from skerry.expressions import build
from skerry.expressions.build import rounded_hypotenuse
from skerry.expressions.evaluate import Evaluator
from skerry.ingest.partial_states import from_packet
from skerry.planner.features.concurrent_events import is_concurrent
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Points
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode, program_size
from skerry.planner.planner import plan_query
from skerry.service.explain import explain
from skerry.sql.ast import CreatePoint
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, instruction
from skerry_protocol.codes import Aggregate
from skerry_protocol.commands import ACTION_BY_NAME, ACTIONS, event_number
from skerry_protocol.extensions import declarations
from skerry_protocol.limits import EVENT_RUNS

HOT = event_number("hot")
#: The mote on the host, which stands at -12.5 m, 3 m.
NODE = 7


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
    assert record.body.values[:2] == (9).to_bytes(2, "little")
    assert mote.queries() == [1]


@pytest.mark.parametrize(
    ("overlap", "epochs"),
    [("", [100, 101, 102, 103, 104, 105, 106]), ("NO OVERLAP ", [100, 101, 102, 103])],
)
def test_an_event_while_the_query_runs(mote: Mote, overlap: str, epochs: list[int]) -> None:
    mote.install(encode(mote_query(f"ON EVENT hot {overlap}SELECT temp SAMPLE PERIOD 1 s FOR 4 s"), 0), 1)
    mote.event(HOT, 9, 99)
    before = run(mote, 3)
    mote.event(HOT, 8, 102)
    assert before + run(mote, 10) == epochs


def made(mote: Mote, query: MoteQuery, seconds: int) -> list[tuple[int, ...]]:
    """Epochs of the rows in that time, each with its first columns: who raised the event, and what comes next."""
    mote.run(seconds)
    layout = struct.Struct("<" + "".join(column.format.letter for column in query.columns))
    bodies = [record.body for record in mote.records()]
    return [(body.epoch, *layout.unpack(body.values)) for body in bodies]


def test_events_of_several_motes_run_side_by_side(mote: Mote) -> None:
    """A row for each, for the whole time of each; a mote's next event starts its own time anew."""
    query = mote_query(
        "ON EVENT hot: SELECT event.nodeid, event.network_time FROM sensors SAMPLE PERIOD 1 s FOR 4 s"
    )
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99)
    found = made(mote, query, 2)
    mote.event(HOT, 8, 101)
    found += made(mote, query, 1)
    mote.event(HOT, 9, 102)
    found += made(mote, query, 10)
    nine = [(epoch, 9, 99 if epoch < 103 else 102) for epoch in range(100, 107)]
    assert sorted(found) == sorted(nine + [(epoch, 8, 101) for epoch in range(102, 106)])


def test_more_motes_than_run_side_by_side(mote: Mote) -> None:
    """The event that would end first gives way."""
    query = mote_query("ON EVENT hot: SELECT event.nodeid FROM sensors SAMPLE PERIOD 1 s FOR 9 s")
    mote.install(encode(query, 0), 1)
    for number in range(EVENT_RUNS + 1):
        mote.event(HOT, 10 + number, 99 + number)
        mote.run(1)
    found = made(mote, query, 3)
    assert {raised for epoch, raised in found if epoch > 104} == {11, 12, 13, 14}


@pytest.mark.parametrize(
    "where",
    [
        "nodeid = event.nodeid",
        "dist(loc, event.loc) < 5 m",
        "temp > 10 AND nodeid = event.nodeid",
        "nodeid = event.nodeid AND temp IS NOT NULL",
        "NOT (nodeid <> event.nodeid OR temp < 10)",
    ],
)
def test_events_elsewhere_take_no_place(mote: Mote, where: str) -> None:
    """The mote's own event runs its whole time though others come, whose rows it does not sample for. Only what may be true of a reading
    needs a place, and so does a condition that asks whether there is one."""
    sql = f"ON EVENT hot: SELECT temp, event.nodeid FROM sensors WHERE {where} SAMPLE PERIOD 1 s FOR 20 s"
    query = mote_query(sql)
    mote.install(encode(query, 0), 1)
    mote.event(HOT, NODE, 99, x=-1250, y=300)
    mote.run(1)
    others = EVENT_RUNS - 1 if "IS NOT NULL" in where else 3 * EVENT_RUNS
    for number in range(others):
        mote.event(HOT, 100 + number, 100, x=8000, y=0)
    found = made(mote, query, 25)
    assert [row[:3] for row in found] == [(epoch, NODE, 2000) for epoch in range(100, 120)]


def test_a_mote_that_no_event_is_about_samples_nothing(mote: Mote) -> None:
    """It takes part in the rounds in which rows of others pass by."""
    sql = "ON EVENT hot: SELECT temp, event.nodeid FROM sensors WHERE nodeid = event.nodeid SAMPLE PERIOD 1 s FOR 20 s"
    mote.install(encode(mote_query(sql), 0), 1)
    mote.event(HOT, 9, 99)
    assert run(mote, 10) == []
    assert mote.acquisitions == 0
    assert all(mote.epoch_in(second) for second in range(110, 119))


def test_aggregates_are_of_one_event_each(mote: Mote) -> None:
    """Also where two events are at one place."""
    sql = "ON EVENT hot(loc): SELECT COUNT(*), event.loc FROM sensors WHERE dist(loc, event.loc) < 5 m SAMPLE PERIOD 1 s FOR 3 s"
    query = mote_query(sql)
    groups = [column.name for column in query.columns if column.aggregate is Aggregate.GROUP]
    assert len(groups) == 3
    mote.install(encode(query, 0), 1)
    for raised in (NODE, 8):
        mote.event(HOT, raised, 99, x=-1250, y=300)
    mote.event(HOT, 9, 99, x=9000, y=300)
    mote.run(2)
    found = [from_packet(query, record.body) for record in mote.records()]
    assert [partial.group(query)[-1] for partial in found] == [NODE, 8, NODE, 8]


@pytest.mark.parametrize(
    ("sql", "each"),
    [
        ("ON EVENT hot SELECT temp SAMPLE PERIOD 1 s FOR 3 s", False),
        ("ON EVENT hot SELECT temp, event.network_time SAMPLE PERIOD 1 s FOR 3 s", True),
        ("ON EVENT hot SELECT temp WHERE event.xpos > 3 SAMPLE PERIOD 1 s FOR 3 s", True),
        ("ON EVENT hot SELECT temp OUTPUT ACTION set_room(event.nodeid) SAMPLE PERIOD 1 s FOR 3 s", True),
        ("ON EVENT hot(temp) SELECT nodeid SIGNAL warm(event.temp) SAMPLE PERIOD 1 s FOR 3 s", False),
        ("ON EVENT hot NO OVERLAP SELECT temp, event.network_time SAMPLE PERIOD 1 s FOR 3 s", False),
        ("ON ALIGNED EVENT hot SELECT temp SAMPLE PERIOD 1 s FOR 3 s", True),
        ("ON EVENT hot SELECT event.nodeid, WINAVG(3, temp) SAMPLE PERIOD 1 s FOR 9 s", False),
        ("ON EVENT hot SELECT event.nodeid, temp SAMPLE PERIOD 1 s FOR 9 s QUEUE DELTA SIZE 3", False),
        ("ON EVENT hot SELECT COUNT(*) GROUP BY event.nodeid SAMPLE PERIOD 1 s FOR 9 s", True),
        ("ON EVENT hot SELECT COUNT(*) SAMPLE PERIOD 1 s FOR 9 s", False),
    ],
)
def test_which_queries_events_run_side_by_side(sql: str, *, each: bool) -> None:
    assert is_concurrent(mote_query(sql).clauses) == each


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


@pytest.mark.parametrize("stopped", [False, True])
def test_an_event_that_waits_for_room_goes_with_its_query(mote: Mote, stopped: bool) -> None:
    """And not with the next one that has its place on the mote."""
    hot = encode(mote_query("SELECT temp WHERE temp > 25 SIGNAL hot SAMPLE PERIOD 1 s"), 0)
    mote.install(hot, 1)
    mote.sensor(BY_NAME["temp"].number, 3000)
    mote.signal_room(False)
    mote.run(2)
    if stopped:
        mote.stop(1)
        mote.sensor(BY_NAME["temp"].number, 2000)
        mote.install(hot, 2, 2)
    mote.signal_room(True)
    mote.window()
    mote.run(2)
    assert mote.signals == (not stopped)


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


@pytest.mark.parametrize(
    ("tables", "where"),
    [("sensors", "temp > 20"), ("sensors AS s", "s.temp > 20"), ("sensors S", "S.temp > 20 AND sensors.temp > 20")],
)  # fmt: skip
def test_what_stops_may_be_named_by_its_table(mote: Mote, tables: str, where: str) -> None:
    query = mote_query(f"SELECT temp FROM {tables} SAMPLE PERIOD 1 s STOP ON EVENT hot WHERE {where}")
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99)
    assert run(mote, 3) == [100, 101, 102]
    mote.sensor(BY_NAME["temp"].number, 2100)
    assert run(mote, 1) == [103]
    mote.event(HOT, 9, 103)
    assert run(mote, 5) == []


def test_rows_of_a_storage_point_stop_nothing() -> None:
    points: Points = {}
    create("CREATE STORAGE POINT seen SIZE 8 AS SELECT light FROM sensors SAMPLE PERIOD 2 s", points)
    with pytest.raises(QueryError) as raised:
        plan_query(
            "SELECT r.light FROM seen AS r SAMPLE PERIOD 2 s STOP ON EVENT hot WHERE r.light > 3", points
        )
    assert raised.value.summary == (
        "STOP ON EVENT is asked of the mote, not of rows of 'r' at column 73: compare attributes of sensors, or of the event"
    )


def test_actions_run_with_each_row(mote: Mote) -> None:
    query = mote_query("SELECT temp WHERE temp > 25 OUTPUT ACTION leds(level * 0 + 5) SAMPLE PERIOD 1 s")
    mote.tree(0, 1)
    mote.install(encode(query, 0), 1)
    mote.run(3)
    assert mote.actions[0] == 0
    mote.sensor(BY_NAME["temp"].number, 3000)
    mote.run(2)
    assert mote.actions == (2, ACTION_BY_NAME["leds"].number, 5)


@pytest.mark.parametrize(
    ("clause", "read"),
    [
        ("OUTPUT ACTION leds(1)", ["level", "temp"]),
        ("OUTPUT ACTION set_room(light)", ["level", "light", "temp"]),
        ("SIGNAL hot(light)", ["level", "light", "temp"]),
        ("STOP ON EVENT hot WHERE light > 3", ["level", "light", "temp"]),
    ],
)
def test_what_clauses_read_is_reckoned_with(mote: Mote, clause: str, read: list[str]) -> None:
    plan = plan_query(f"SELECT level WHERE temp > 10 {clause} SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    motes = explain(plan)["motes"]
    assert [entry["name"] for entry in motes["attributes"]] == read
    assert motes["energy_per_epoch"] > (BY_NAME["light"].energy / 2 if "light" in read else 0)
    mote.sensor(BY_NAME["light"].number, 4)
    mote.install(encode(merge([plan]), 0), 1)
    mote.run(5)
    assert mote.acquisitions == 5 * len([name for name in read if BY_NAME[name].energy])


@pytest.mark.parametrize("clause", ["OUTPUT ACTION leds(5)", "SIGNAL hot", "QUEUE DELTA"])
def test_motes_act_on_the_rows_that_where_lets_pass(mote: Mote, clause: str) -> None:
    """A condition on the epoch stays at the gateway where a stream of another period may serve the query. What acts shares none."""
    query = mote_query(f"SELECT temp WHERE epoch % 4 = 1 AND temp > 5 {clause} SAMPLE PERIOD 1 s")
    mote.install(encode(query, 0), 1)
    assert run(mote, 8) == [101, 105]
    assert mote.actions[0] == (2 if "leds" in clause else 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nodeid WHERE light * light * light > 3 OUTPUT ACTION leds(1) SAMPLE PERIOD 2 s",
         "this condition cannot be evaluated by a mote at column 21: "
         "motes act on the rows that pass it, and (light * light) * light may need more than a mote's 32 bits"),
        ("SELECT nodeid WHERE temp > 3 AND left_out > 0 SIGNAL hot SAMPLE PERIOD 2 s",
         "this condition cannot be evaluated by a mote at column 21: "
         "motes act on the rows that pass it, and left_out is known at the gateway only"),
        ("SELECT nodeid WHERE light * light * light > 3 OUTPUT ACTION (SELECT temp ONCE) SAMPLE PERIOD 2 s",
         "this condition cannot be evaluated by a mote at column 21: "
         "motes act on the rows that pass it, and (light * light) * light may need more than a mote's 32 bits"),
        ("SELECT nodeid, light WHERE light * light * light > 3 AND left_out < 9 QUEUE WINAVG SAMPLE PERIOD 2 s",
         "this condition cannot be evaluated by a mote at column 28: "
         "motes queue the rows that pass it, and (light * light) * light may need more than a mote's 32 bits"),
        ("SELECT WINAVG(3, temp) HAVING WINAVG(3, temp) > 30 OUTPUT ACTION leds(1) SAMPLE PERIOD 2 s",
         "HAVING is asked at the gateway, and motes act before that at column 31: use WHERE, or leave the action out"),
    ],
)  # fmt: skip
def test_nothing_is_done_with_rows_that_only_the_gateway_chooses(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert raised.value.summary == message
    # One that runs already goes on over a restart of the gateway.
    assert isinstance(plan_query(query, restored=True), QueryPlan)


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
        ("ON EVENT hot SELECT temp SAMPLE PERIOD 2 s", "ON EVENT needs to know how long the query runs at column 1: "
         "write SAMPLE PERIOD n FOR n, or ONCE"),
        ("SELECT temp, event.nodeid ONCE", "this query has no event at column 14: "
         "begin with ON EVENT name, or leave it out"),
        ("ON EVENT hot SELECT event.node ONCE", "unknown attribute 'event.node' at column 21: "
         "did you mean 'event.nodeid'? of an event there are event.nodeid, event.xpos, event.ypos, event.network_time, event.value, "
         "event.time; "
         "name others behind the event, as in ON EVENT hot(temp)"),
        ("SELECT temp OUTPUT ACTION lods(1) ONCE", "unknown command 'lods' at column 27: "
         "did you mean 'leds'? commands are leds, power_on, power_off, set_room, set_floor, set_group, radio_power"),
        ("SELECT temp OUTPUT ACTION leds ONCE", "leds needs an argument at column 13: "
         "it is 0 to 7: 1 red, 2 green and 4 yellow, added up"),
        ("SELECT temp OUTPUT ACTION leds(8) ONCE", "leds(8) is out of range at column 32: "
         "it is 0 to 7: 1 red, 2 green and 4 yellow, added up"),
        ("SELECT temp OUTPUT ACTION power_on(temp) ONCE", "power_on takes no argument at column 36: "
         "write power_on: it acts on the mote whose row it is"),
        ("SELECT temp OUTPUT ACTION leds(temp) ONCE", "this is no argument of leds at column 32: it has to be a whole number"),
        ("SELECT temp SIGNAL hot(nodeid, temp, light) ONCE", "these are too many parameters of an event at column 38: "
         "besides nodeid, loc, xpos, ypos, time an event carries one value"),
        ("SELECT temp SIGNAL hot SIGNAL cold ONCE", "a query raises one event at column 24: "
         "let the query that waits for the event raise the next, or ask twice"),
        ("ON EVENT every(10 min) OR hot SELECT temp ONCE", "a timer cannot be joined with events at column 10: ask in two queries"),
        ("ON EVENT every(1500 ms) SELECT temp ONCE", "a timer of 1500 ms is too fine at column 16: "
         "write whole seconds, at least 1"),
        ("ON EVENT every(5 s) SELECT temp SAMPLE PERIOD 1 s FOR 6 s", "the query would run longer than its timer takes at column 16: "
         "write FOR 5 s or less, or leave ON EVENT out"),
        ("ON EVENT every SELECT temp ONCE", "a timer needs one time at column 10: write ON EVENT every(10 min)"),
        ("ON EVENT hot(5 s) SELECT temp ONCE", "a time is no parameter of an event at column 14: "
         "write ON EVENT every(10 min) for a timer"),
        ("ON ALIGNED EVENT hot SELECT temp SAMPLE PERIOD 1500 ms FOR 3 s",
         "epochs of 1500 ms cannot be aligned with an event at column 1: "
         "write a sample period of whole seconds, or leave ALIGNED out"),
        ("ON EVENT hot(tmep) SELECT event.tmep ONCE", "unknown attribute 'tmep' at column 14: "
         "did you mean 'temp'? parameters of events are attributes of the mote that raises it"),
        ("ON EVENT hot(temp, light) SELECT event.temp ONCE", "these are too many parameters of an event at column 20: "
         "besides nodeid, loc and time an event carries one value"),
        ("SELECT dist(loc) ONCE", "dist takes two positions at column 8: write dist(loc, event.loc)"),
        ("SELECT dist(loc, temp) ONCE", "this is no position at column 18: positions are loc, event.loc and point(3 m, 4 m)"),
        ("SELECT loc AS place ONCE", "a position cannot be given a name at column 8: leave AS out: it is two columns, xpos and ypos"),
        ("SELECT AVG(temp) SIGNAL hot ONCE", "an aggregate is known at the root only at column 18: "
         "motes act on rows of their own: leave the aggregate out"),
    ],
)  # fmt: skip
def test_refusals(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert raised.value.summary == message


def test_any_of_several_events_or_all_of_them(mote: Mote) -> None:
    query = mote_query("ON EVENT hot AND wet OR dark SELECT temp, event.nodeid ONCE")
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99)
    assert run(mote, 3) == []
    mote.event(event_number("wet"), 9, 102)
    assert run(mote, 3) == [103], "both have come"
    mote.event(event_number("wet"), 9, 105)
    assert run(mote, 3) == [], "since the query started, hot has not come again"
    mote.event(event_number("dark"), 9, 108)
    assert run(mote, 3) == [109]


def test_epochs_are_aligned_with_the_event(mote: Mote) -> None:
    """The event's time counts, not when a mote hears of it."""
    query = mote_query("ON ALIGNED EVENT hot SELECT temp SAMPLE PERIOD 4 s FOR 9 s")
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 97)
    assert run(mote, 20) == [101, 105]


def test_aligned_epochs_are_named_by_their_second(mote: Mote) -> None:
    """Which one it is behind the event is reckoned from that."""
    text = (
        "ON ALIGNED EVENT hot SELECT (epoch - event.network_time) / 4 AS n, epoch SAMPLE PERIOD 4 s FOR 9 s"
    )
    query, plan = mote_query(text), plan_query(text)
    assert isinstance(plan, QueryPlan)
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 97)
    columns = {"epoch": [], "event.nodeid": [], "event.network_time": []}  # type: dict[str, list[int]]
    for row in made(mote, query, 20):
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    batch = pa.RecordBatch.from_pydict({"nodeid": pa.array([7, 7], pa.int64()), **columns})
    residual = Residual(plan)
    assert residual.project(Rows(batch, query), np.arange(2)).to_pylist() == [
        {"n": 1, "epoch": 101},
        {"n": 2, "epoch": 105},
    ]


@pytest.mark.parametrize(
    ("column", "rows"), [("DELTA(0.5, temp)", [100]), ("PULSE(temp > 10)", []), ("WINSUM(4, 6, temp)", [111])]
)
def test_windows_go_on_from_one_run_to_the_next(mote: Mote, column: str, rows: list[int]) -> None:
    query = mote_query(f"ON EVENT hot: SELECT {column} SAMPLE PERIOD 1 s FOR 3 s")
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99)
    found = run(mote, 9)
    mote.event(HOT, 9, 108)
    assert found + run(mote, 9) == rows


def test_a_timer_runs_a_query_again_and_again(mote: Mote) -> None:
    """In bursts that begin at multiples of the timer's time: on all motes together."""
    query = mote_query("ON EVENT every(10 s) SELECT temp SAMPLE PERIOD 1 s FOR 3 s")
    mote.install(encode(query, 0), 1)
    assert run(mote, 24) == [100, 101, 102, 110, 111, 112, 120, 121, 122]
    assert [mote.epoch_in(second) for second in (129, 130, 132, 133)] == [False, True, True, False]


def test_an_event_carries_a_value(mote: Mote) -> None:
    query = mote_query("ON EVENT hot(nodeid, temp) SELECT event.temp WHERE event.temp > 25.5 ONCE")
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99, value=2550)
    assert run(mote, 2) == []
    mote.event(HOT, 9, 101)
    assert run(mote, 2) == [], "NULL"
    mote.event(HOT, 9, 103, value=2600)
    mote.run(2)
    (record,) = mote.records()
    assert record.body.values[-4:] == (2600).to_bytes(4, "little")


def test_a_signal_carries_what_it_says(mote: Mote) -> None:
    """The paper's OUTPUT ACTION SIGNAL hot(nodeid, temp) (3.5)."""
    sql = "SELECT nodeid, temp FROM sensors WHERE temp > 25 OUTPUT ACTION SIGNAL hot(nodeid, temp) SAMPLE PERIOD 1 s"
    mote.install(encode(mote_query(sql), 0), 1)
    mote.install(encode(mote_query("ON EVENT hot(temp) SELECT event.temp ONCE"), 0), 2)
    mote.sensor(BY_NAME["temp"].number, 3012)
    mote.run(3)
    values = [record.body.values[-4:] for record in mote.records() if record.body.query == 2]
    assert values == [(3012).to_bytes(4, "little")]


def test_a_signal_may_say_whose_event_began_it(mote: Mote) -> None:
    mote.install(encode(mote_query("ON EVENT hot SELECT nodeid SIGNAL next(event.nodeid) ONCE"), 0), 1)
    mote.install(encode(mote_query("ON EVENT next SELECT event.nodeid, event.value ONCE"), 0), 2)
    mote.event(HOT, 9, 99)
    mote.run(3)
    (values,) = [record.body.values for record in mote.records() if record.body.query == 2]
    assert struct.unpack("<Hi", values) == (NODE, 9)


def test_distances(mote: Mote) -> None:
    """TinyDB 2005, 3.5: dist(s.loc, event.loc) < 10m. The mote stands at -12.5 m, 3 m."""
    sql = "ON EVENT hot(loc): SELECT dist(s.loc, event.loc) AS far, event.loc FROM sensors AS s WHERE dist(s.loc, event.loc) < 10m ONCE"
    query = mote_query(sql)
    mote.install(encode(query, 0), 1)
    mote.event(HOT, 9, 99, x=-1250 - 600, y=300 + 801)
    assert run(mote, 2) == []
    mote.event(HOT, 9, 101, x=-1250 - 600, y=300 + 799)
    mote.run(2)
    (record,) = mote.records()
    assert (-1850).to_bytes(4, "little", signed=True) in record.body.values


@pytest.mark.parametrize(
    ("a", "b"), [(3, 4), (-1, 1), (2, 2), (10**9, -(10**9)), (0, 0), (46340, 46341), (1 << 30, 1 << 30)]
)
def test_a_hypotenuse_is_the_nearest_integer(a: int, b: int) -> None:
    """Exactly, on motes and at the gateway."""
    exact = Decimal(a * a + b * b).sqrt().quantize(Decimal(1), ROUND_HALF_UP)
    assert rounded_hypotenuse(a, b) == exact
    x, y = build.stored(0, "x", 0, -(2**30), 2**30, ""), build.stored(1, "y", 0, -(2**30), 2**30, "")
    known = np.ones(1, np.bool_)
    evaluate = Evaluator({x: (np.array([a]), known), y: (np.array([b]), known)}, np.zeros(1, np.int64))
    assert evaluate(build.hypotenuse(x, y), 1000)[0].tolist() == [exact]


def test_the_value_of_an_event_at_the_gateway() -> None:
    plan = plan_query("ON EVENT hot(temp): SELECT event.temp, event.temp + 1 AS more ONCE")
    assert isinstance(plan, QueryPlan)
    assert [(output.unit, output.digits) for output in plan.outputs] == [("degC", 2), ("degC", 2)]
    batch = pa.RecordBatch.from_pydict(
        {"nodeid": [1], "epoch": [3], "event.nodeid": [9], "event.value": [2575]}
    )
    rows = Rows(batch, merge([plan]))
    assert Residual(plan).project(rows, np.array([0])).to_pylist() == [{"event.temp": 25.75, "more": 26.75}]


def test_output_action_buffer_is_a_storage_point() -> None:
    statement = plan_query("SELECT light OUTPUT ACTION BUFFER(8) SAMPLE PERIOD 10 s")
    assert isinstance(statement, CreatePoint)
    assert (statement.name.name, statement.circular, statement.size.value) == ("buffer_8", True, 8)


def test_commands_are_the_files_of_the_firmware() -> None:
    """Name, number and bounds of each command are in its C file and in the gateway's table."""
    folder = host.FIRMWARE / "commands"
    declared = {(d.name, d.number, d.low, d.high) for d in declarations(folder.glob("*.c"))}
    assert declared == {(a.name, a.number, a.low or 0, a.high or 0) for a in ACTIONS}
    assert {d.name for d in declarations(folder.glob("*.c"))} == {path.stem for path in folder.glob("*.c")}
