"""SELECT … FROM an index AT MOTE n: what motes are told, and what is refused."""

from __future__ import annotations

import pytest

from gateway.tests.planner.test_indexing import CLIMATE, made, motes
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import bytes_taken
from skerry.planner.physical.program import encode, program_size
from skerry.sensors.gathering import at_mote, plan_gathering
from skerry.sql.errors import QueryError
from skerry_protocol import programs
from skerry_protocol.attributes import EVENT_BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.codec import decode_program
from skerry_protocol.codes import Aggregate, EventFlag
from skerry_protocol.commands import event_number
from skerry_protocol.limits import FOREVER

#: As a catalog tells them, in dm.
PLACES = {mote.nodeid: (round(mote.xpos * 10), round(mote.ypos * 10)) for mote in motes()}


def test_a_mote_is_told_whom_it_hears_and_what_it_asks() -> None:
    index = made(CLIMATE)
    sql = "SELECT COUNT(*), AVG(temp) FROM climate WHERE temp > 30 AT MOTE 7 HAVING COUNT(*) > 3 OUTPUT ACTION leds(1)"
    plan = plan_gathering(sql, {"climate": index}, PLACES)
    assert plan.text == sql
    assert plan.period_ms == index.period_ms
    assert [output.name for output in plan.outputs] == ["COUNT(*)", "AVG(temp)"]
    program = decode_program(encode(merge([plan]), 0, FOREVER))
    kinds = [field.aggregate for field in program.fields]
    assert Aggregate.GATHER in kinds
    assert Aggregate.ACTION in kinds
    assert Aggregate.FROM not in kinds
    told = programs.Gather.parse(next(f.code for f in program.fields if f.aggregate == Aggregate.GATHER))
    assert (told.index, told.mote, (told.x, told.y), told.aggregates) == (7, 7, index.storing[7], 2)
    assert 1 <= told.zones <= len(index.storing)
    assert told.more[:4] == bytes([Aggregate.COUNT, 255, Aggregate.AVG, 5])
    # Of light all, of temp from 30 degrees on.
    assert told.more[4:7] == bytes([0, 0xF0, 0xFF])
    assert (told.more[7] | told.more[8] << 8) & 0xFFF == (65534 * 2001 // 2500) >> 4
    both = plan_gathering(
        sql.replace("AT MOTE 7", "at mote 1") + " SAMPLE PERIOD 2 min", {"climate": index}, PLACES
    )
    assert both.period_ms == 120_000


def test_an_index_of_an_event_has_no_period_in_which_it_could_be_asked() -> None:
    index = made("CREATE INDEX heats ON EVENT hot(temp) (JOINT (temp, light))")
    sql = "SELECT COUNT(*), MAX(temp) FROM heats WHERE light > 30 AT MOTE 7"
    with pytest.raises(QueryError) as refused:
        plan_gathering(sql, {"heats": index}, PLACES)
    assert refused.value.message == "index heats is of an event, and has no period"
    assert refused.value.hint is not None
    assert "SAMPLE PERIOD" in refused.value.hint
    for periodic in (f"{sql} SAMPLE PERIOD 1 min", f"ON EVENT button: {sql}"):
        told = programs.Gather.parse(
            told_of(plan_gathering(periodic, {"heats": index}, PLACES), Aggregate.GATHER)
        )
        assert told.more[:4] == bytes([Aggregate.COUNT, 255, Aggregate.MAX, 5])


def told_of(plan: QueryPlan, kind: Aggregate) -> bytes:
    program = decode_program(encode(merge([plan]), 0, FOREVER))
    return next(bytes(field.code) for field in program.fields if field.aggregate == kind)


def test_motes_that_store_nothing_ask_as_well() -> None:
    index = made(CLIMATE)
    assert 4 not in index.storing
    plan = plan_gathering("SELECT COUNT(*) FROM climate AT MOTE 4", {"climate": index}, PLACES)
    told = programs.Gather.parse(told_of(plan, Aggregate.GATHER))
    assert (told.mote, told.x, told.y) == (4, *PLACES[4])
    assert bytes_taken(merge([plan])) == program_size(merge([plan])) + 49


def test_one_that_stands_too_far_away_is_named() -> None:
    with pytest.raises(QueryError, match="mote 4 stands too far away"):
        plan_gathering("SELECT COUNT(*) FROM climate AT MOTE 4", {"climate": made(CLIMATE)}, {4: (16384, 0)})


def test_the_last_period_of_a_length_ends_the_one_before() -> None:
    sql = "SELECT COUNT(*) FROM climate AT MOTE 7 SAMPLE PERIOD 1 min FOR 5 min"
    assert plan_gathering(sql, {"climate": made(CLIMATE)}, PLACES).duration_ms == 6 * 60_000


def test_an_event_asks() -> None:
    index = made(CLIMATE)
    sql = (
        "ON EVENT hot(temp): SELECT event.nodeid, COUNT(*) FROM climate WHERE temp > event.temp AND event.nodeid <> 3 AND light > 500"
        " AT MOTE 4 HAVING COUNT(*) > 3 OUTPUT ACTION leds(1)"
    )
    plan = plan_gathering(sql, {"climate": index}, PLACES)
    assert plan.period_ms == 1000
    assert plan.awaited == ("hot",)
    on = told_of(plan, Aggregate.ON_EVENT)
    event, condition = programs.OnEvent.parse(on), on[programs.OnEvent.sizeof() :]
    assert (event.event, event.lasts, event.step) == (event_number("hot"), 301, 300)
    assert event.flags == EventFlag.ALIGNED | EventFlag.HEARD
    nodeid, value = (EVENT_BY_NAME[name].number for name in ("event.nodeid", "event.value"))
    assert bytes([Op.ATTR, nodeid]) in condition
    told = programs.Gather.parse(told_of(plan, Aggregate.GATHER))
    # What the event alone decides is asked when it comes, and what it says of tuples with these: any temp may be.
    assert bytes([Op.ATTR, nodeid]) not in told.more
    assert bytes([Op.ATTR, value]) in told.more
    bounds = told.more[2:8]
    assert (bounds[0] | bounds[1] << 8) & 0xFFF > 0
    assert bounds[3:] == bytes([0, 0xF0, 0xFF])
    assert "where event.nodeid <> 3" in str(next(c for c in plan.clauses if c.kind is Aggregate.ON_EVENT))


def test_an_event_asks_several_times() -> None:
    sql = "ON EVENT button OR hot NO OVERLAP: SELECT COUNT(*) FROM climate AT MOTE 7 SAMPLE PERIOD 2 min FOR 5 min"
    plan = plan_gathering(sql, {"climate": made(CLIMATE)}, PLACES)
    events = [clause for clause in plan.clauses if clause.kind is Aggregate.ON_EVENT]
    flags = EventFlag.ALIGNED | EventFlag.HEARD | EventFlag.NO_OVERLAP
    assert [event.values for event in events] == [(361, flags, 0, 120), (361, flags, 1, 120)]
    assert {event.expr for event in events} == {None}


def test_what_is_no_such_question_is_none() -> None:
    assert at_mote("SELECT temp FROM sensors") is None
    assert at_mote("SELECT temp FROM sensors WHERE name = 'at mote 7'") is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM climate AT MOTE 12", "where mote 12 stands is not known"),
        ("SELECT COUNT(*) FROM weather AT MOTE 7", "AT MOTE asks one index"),
        ("SELECT COUNT(*) FROM sensors AT MOTE 7", "AT MOTE asks one index"),
        ("SELECT light FROM climate AT MOTE 7", "a mote gathers aggregates, not tuples"),
        ("SELECT AVG(humidity) FROM climate AT MOTE 7", "a mote gathers attributes of the index"),
        ("SELECT COUNT(*) FROM climate WHERE humidity > 3 AT MOTE 7", "humidity"),
        ("SELECT COUNT(*) FROM climate WHERE temp > 30 AND temp < 20 AT MOTE 7", "no tuple is in this range"),
        ("SELECT light, COUNT(*) FROM climate AT MOTE 7 GROUP BY light", "GROUP BY is not for AT MOTE"),
        ("SELECT COUNT(*), MIN(temp), MAX(temp), AVG(light) FROM climate AT MOTE 7", "4 aggregates are gathered"),
        ("SELECT COUNT(DISTINCT temp) FROM climate AT MOTE 7", "this is no aggregate that motes gather"),
        ("SELECT COUNT(*) FROM climate AT MOTE 7 ONCE", "a mote asks each period, or with an event"),
        ("SELECT COUNT(*) FROM climate WHERE event.nodeid = 7 AT MOTE 7", "this query has no event"),
        ("SELECT COUNT(*) FROM climate AT MOTE 7 HAVING event.nodeid = 7", "this query has no event"),
        ("ON EVENT every(1 h): SELECT COUNT(*) FROM climate AT MOTE 7", "a timer is no event that a mote asks with"),
        ("ON ALIGNED EVENT button: SELECT COUNT(*) FROM climate AT MOTE 7", "ALIGNED is not for AT MOTE"),
        ("ON EVENT hot AND wet: SELECT COUNT(*) FROM climate AT MOTE 7", "have to agree on the last one"),
        ("ON EVENT hot: SELECT COUNT(*) FROM climate WHERE event.temp > 3 AT MOTE 7", "unknown attribute 'event.temp'"),
        ("ON EVENT hot: SELECT COUNT(*) FROM climate AT MOTE 7 SAMPLE PERIOD 1 min", "needs to know how long the query runs"),
        ("ON EVENT hot: SELECT COUNT(*) FROM climate AT MOTE 7 SAMPLE PERIOD 1500 ms FOR 1 min", "too fine a period"),
    ],
)  # fmt: skip
def test_what_motes_do_not_gather_is_named(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_gathering(sql, {"climate": made(CLIMATE)}, PLACES)
    assert said in refused.value.message
    assert refused.value.hint


def test_what_is_stored_apart_is_not_gathered_together() -> None:
    index = made(CLIMATE.replace("JOINT (light FROM 0 TO 2000, temp FROM 10 TO 35)", "light, temp"))
    storing = min(index.storing)
    assert plan_gathering(f"SELECT MAX(temp) FROM climate AT MOTE {storing}", {"climate": index}, PLACES)
    with pytest.raises(QueryError, match="light and temp are not stored together"):
        plan_gathering(
            f"SELECT AVG(light) FROM climate WHERE temp > 20 AT MOTE {storing}", {"climate": index}, PLACES
        )
