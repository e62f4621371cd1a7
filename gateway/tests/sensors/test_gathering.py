"""SELECT … FROM an index AT MOTE n: what motes are told, and what is refused."""

from __future__ import annotations

import pytest

from gateway.tests.planner.test_indexing import CLIMATE, made
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.sensors.gathering import at_mote, plan_gathering
from skerry.sql.errors import QueryError
from skerry_protocol import programs
from skerry_protocol.codec import decode_program
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FOREVER


def test_a_mote_is_told_whom_it_hears_and_what_it_asks() -> None:
    index = made(CLIMATE)
    sql = "SELECT COUNT(*), AVG(temp) FROM climate WHERE temp > 30 AT MOTE 7 HAVING COUNT(*) > 3 OUTPUT ACTION leds(1)"
    plan = plan_gathering(sql, {"climate": index})
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
    both = plan_gathering(sql.replace("AT MOTE 7", "at mote 1") + " SAMPLE PERIOD 2 min", {"climate": index})
    assert both.period_ms == 120_000


def test_what_is_no_such_question_is_none() -> None:
    assert at_mote("SELECT temp FROM sensors") is None
    assert at_mote("SELECT temp FROM sensors WHERE name = 'at mote 7'") is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM climate AT MOTE 4", "mote 4 does not store index climate"),
        ("SELECT COUNT(*) FROM weather AT MOTE 7", "AT MOTE asks one index"),
        ("SELECT COUNT(*) FROM sensors AT MOTE 7", "AT MOTE asks one index"),
        ("SELECT light FROM climate AT MOTE 7", "a mote gathers aggregates, not tuples"),
        ("SELECT AVG(humidity) FROM climate AT MOTE 7", "a mote gathers attributes of the index"),
        ("SELECT COUNT(*) FROM climate WHERE humidity > 3 AT MOTE 7", "humidity"),
        ("SELECT COUNT(*) FROM climate WHERE temp > 30 AND temp < 20 AT MOTE 7", "no tuple is in this range"),
        ("SELECT light, COUNT(*) FROM climate AT MOTE 7 GROUP BY light", "GROUP BY is not for AT MOTE"),
        ("SELECT COUNT(*), MIN(temp), MAX(temp), AVG(light) FROM climate AT MOTE 7", "4 aggregates are gathered"),
        ("SELECT COUNT(DISTINCT temp) FROM climate AT MOTE 7", "this is no aggregate that motes gather"),
    ],
)  # fmt: skip
def test_what_motes_do_not_gather_is_named(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_gathering(sql, {"climate": made(CLIMATE)})
    assert said in refused.value.message
    assert refused.value.hint


def test_what_is_stored_apart_is_not_gathered_together() -> None:
    index = made(CLIMATE.replace("JOINT (light FROM 0 TO 2000, temp FROM 10 TO 35)", "light, temp"))
    storing = min(index.storing)
    assert plan_gathering(f"SELECT MAX(temp) FROM climate AT MOTE {storing}", {"climate": index})
    with pytest.raises(QueryError, match="light and temp are not stored together"):
        plan_gathering(
            f"SELECT AVG(light) FROM climate WHERE temp > 20 AT MOTE {storing}", {"climate": index}
        )
