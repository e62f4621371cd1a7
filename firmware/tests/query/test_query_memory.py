"""What the gateway's model says a mote holds, the firmware's own code holds, and nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, REFUSED, Mote
from skerry.planner.features.srt import define, plan_of
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry_protocol.codes import Aggregate, RefusalReason
from skerry_protocol.limits import QUERIES_MAXIMUM

POINTS: dict[str, Point] = {}
#: Semantic routing trees that the board of these tests, an IRIS, holds.
BOARD_TREES = 1


def _plan(text: str) -> QueryPlan:
    found = plan_query(text, POINTS)
    if isinstance(found, CreatePoint):
        point, found = plan_point(found, len(POINTS) + 1, POINTS)
        POINTS[point.name.lower()] = point
    if isinstance(found, CreateSrt):
        found = plan_of(define(found, 1, [], lambda _: [1, 90], 0), found)
    assert isinstance(found, QueryPlan)
    return found


TEXTS = [
    "CREATE STORAGE POINT few SIZE 8 AS (SELECT nodeid, light FROM sensors SAMPLE PERIOD 10s)",
    "CREATE CIRCULAR STORAGE POINT many SIZE 90 rows (temp int16, n uint8)",
    "CREATE STORAGE POINT place_light SIZE 10 AS SELECT xpos, ypos, light, temp FROM sensors SAMPLE PERIOD 10 s",
    "CREATE SRT places ON sensors (xpos, ypos)",
    "SELECT nodeid FROM sensors SAMPLE PERIOD 10 s",
    "SELECT * FROM sensors WHERE light > 3 AND temp < 20 SAMPLE PERIOD 10 s",
    "SELECT temp, light FROM sensors INTO STORAGE POINT many SAMPLE PERIOD 10 s",
    "SELECT rl.light, temp, humidity FROM sensors AS s, few AS rl WHERE rl.light > s.light SAMPLE PERIOD 10 s",
    "SELECT AVG(voltage), COUNT(*) FROM sensors AS s, few AS rl WHERE rl.light > s.light SAMPLE PERIOD 10 s",
    "SELECT rl.light FROM few AS rl SAMPLE PERIOD 10 s",
    "SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT MEDIAN(temp), MAX(light), VARIANCE(light) FROM sensors GROUP BY room SAMPLE PERIOD 10 s",
    "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 10 s APPROXIMATE WITHIN 1",
    "SELECT MAX(temp) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT temp, WINAVG(10, temp), WINMAX(64, light) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT WINAVG(60, temp), WINAVG(60, light), WINSUM(60, voltage), TREND(60, temp) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT WINMAX(light, 80 s, 40 s), WINCOUNT(temp, 40 s, 40 s) FROM sensors WHERE accel_x > 0 SAMPLE PERIOD 10 s",
    "SELECT EXPAVG(3, temp), temp FROM sensors SAMPLE PERIOD 10 s",
    "SELECT DELTA(1, temp), ADPDELTA(9, light) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT PULSE(accel_x > 0.3), PULSE(accel_y > 0.3) FROM sensors SAMPLE PERIOD 10 ms",
    "SELECT PULSES(accel_x > 0.3, 1 s) FROM sensors SAMPLE PERIOD 10 ms",
    "ON EVENT hot(temp): SELECT event.temp, light FROM sensors WHERE dist(loc, event.loc) < 10 m SAMPLE PERIOD 2 s FOR 30 s",
    "ON EVENT hot AND wet OR dark: SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 30 s",
    "ON EVENT every(1 h): SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 30 s",
    "SELECT light FROM sensors SAMPLE PERIOD 2 s STOP ON EVENT hot WHERE temp > 5",
    "SELECT light FROM sensors WHERE temp > 30 OUTPUT ACTION leds(3) SAMPLE PERIOD 2 s",
    "SELECT light FROM sensors WHERE temp > 30 OUTPUT ACTION SIGNAL hot(temp) SAMPLE PERIOD 2 s",
    "SELECT light, combined FROM sensors SAMPLE PERIOD 1 s QUEUE WINAVG SIZE 5 SEND PERIOD 4 s",
    "SELECT light FROM sensors LIFETIME 24 weeks",
    "SELECT temp, light FROM sensors WHERE light > 10 ONCE",
]
QUERIES: list[MoteQuery] = [merge([_plan(text)]) for text in TEXTS]


def _root(library: Path) -> Mote:
    mote = Mote(library)
    mote.root(True)
    return mote


@pytest.mark.parametrize("query", QUERIES, ids=TEXTS)
def test_a_query_takes_as_much_of_a_root_as_the_model_says(query_library: Path, query: MoteQuery) -> None:
    mote = _root(query_library)
    assert mote.memory_free == MEMORY_BYTES
    taken = bytes_taken(query)
    fits = taken <= MEMORY_BYTES
    assert mote.install(encode(query, 0), 1) == (COMPLETE if fits else REFUSED)
    assert mote.memory_free == MEMORY_BYTES - taken * fits
    if not fits:
        assert mote.refusal() == (1, RefusalReason.MEMORY, taken - MEMORY_BYTES)


@settings(max_examples=200)
@given(chosen=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=QUERIES_MAXIMUM + 2))
def test_what_fits_beside_others_is_taken_and_nothing_else(
    query_library: Path, chosen: list[MoteQuery]
) -> None:
    """Of queries one after the other a root takes those that find a slot and their bytes; an IRIS holds one semantic routing tree."""
    mote = _root(query_library)
    taken, slots, trees = 0, 0, 0
    for number, query in enumerate(chosen, start=1):
        bytes_, tree = bytes_taken(query), any(c.kind is Aggregate.SRT for c in query.clauses)
        fits = slots < QUERIES_MAXIMUM and taken + bytes_ <= MEMORY_BYTES and trees + tree <= BOARD_TREES
        assert (mote.install(encode(query, 0), number) == COMPLETE) is fits
        if fits:
            taken, slots, trees = taken + bytes_, slots + 1, trees + tree
        assert mote.memory_free == MEMORY_BYTES - taken
        assert len(mote.queries()) == slots


def test_other_motes_take_no_more_than_a_root(query_library: Path) -> None:
    """They keep fewer children of approximate aggregates."""
    for query in QUERIES:
        mote = Mote(query_library)
        mote.install(encode(query, 0), 1)
        assert mote.memory_free >= MEMORY_BYTES - bytes_taken(query)
