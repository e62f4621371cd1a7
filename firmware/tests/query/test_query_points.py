"""Storage points on one mote, by programs of the gateway's planner: what its queries meet."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.query.mote import COMPLETE, Mote
from skerry.ingest.partial_states import from_packet, merge_partials
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codec import decode_values
from skerry_protocol.codes import PacketType
from skerry_protocol.records import Partial


class Asked:
    """A mote, the storage points and the queries that it was given."""

    def __init__(self, library: Path, seconds: float) -> None:
        self.mote = Mote(library)
        self.mote.synchronise(seconds)
        self._points: dict[str, Point] = {}
        self._queries: dict[int, MoteQuery] = {}

    def restart_root(self, seconds: float) -> None:
        """Network time begins anew, and what was asked is gone."""
        self.mote.stop(0)
        self._points.clear()
        self.mote.synchronise(seconds)

    def create(self, query: int, sql: str) -> Point:
        """Make a storage point."""
        statement = plan_query(sql, self._points)
        assert isinstance(statement, CreatePoint)
        point, plan = plan_point(statement, 0x4000 + query, self._points)
        self._points[point.name.lower()] = point
        self._install(query, plan)
        return point

    def ask(self, query: int, sql: str) -> MoteQuery:
        """Ask something of it."""
        plan = plan_query(sql, self._points)
        assert isinstance(plan, QueryPlan)
        self._install(query, plan)
        return self._queries[query]

    def _install(self, query: int, plan: QueryPlan) -> None:
        self._queries[query] = merge([plan])
        assert self.mote.install(encode(self._queries[query], 0), query, query) == COMPLETE

    def sense(self, **values: int | None) -> None:
        """What sensors read from now on."""
        for name, value in values.items():
            self.mote.sensor(BY_NAME[name].number, value)

    def run(self, seconds: float) -> list[tuple[int, int, list[Any]]]:
        """Rows of so many seconds: query, epoch, columns."""
        self.mote.run(seconds)
        rows = []
        for record in self.mote.records():
            if record.type is not PacketType.RESULT:
                continue
            columns = self._queries[record.body.query].columns
            layout = struct.Struct("<" + "".join(column.format.letter for column in columns))
            values, _, _ = decode_values(record.body.values, layout)
            known = [None if record.body.nulls >> i & 1 else value for i, value in enumerate(values)]
            rows.append((record.body.query, record.body.epoch, known))
        return rows


@pytest.mark.parametrize("readings", [(5, 7, 9, 3), (9, 7, 5, 3), (3, 5, 7, 9), (4, 9, 9, 4)])
def test_the_best_of_a_points_rows_may_be_one_motes(query_library: Path, readings: tuple[int, ...]) -> None:
    """In whatever order they are merged, and by whom."""
    asked = Asked(query_library, 99.5)
    asked.create(1, "CREATE STORAGE POINT p SIZE 4 AS SELECT light FROM sensors SAMPLE PERIOD 1 s")
    query = asked.ask(2, "SELECT TOP(3, light) FROM p SAMPLE PERIOD 4 s")
    for reading in readings:
        asked.sense(light=reading)
        asked.run(1)
    asked.mote.run(1)
    parts = [bytes(Partial.build(record.body)) for record in asked.mote.records()]
    assert len(parts) == len(readings) + 1
    whole = merge_partials(query, [from_packet(query, Partial.parse(part)) for part in parts])
    merged = parts[0]
    for part in parts[1:]:
        both = asked.mote.merge(merged, part)
        assert both is not None
        merged = both
    assert from_packet(query, Partial.parse(merged)) == whole
    found = [value for node, value in whole.states if node]
    assert found == sorted(set(readings), reverse=True)[:3]


@pytest.mark.parametrize("source", ["sensors AS s", "sensors AS s, p"], ids=["sampled", "joined"])
def test_a_signal_says_what_the_row_read_that_raised_it(query_library: Path, source: str) -> None:
    """Not what has been sampled since: floods had no room, and another query samples more often."""
    asked = Asked(query_library, 99.5)
    asked.create(1, "CREATE STORAGE POINT p SIZE 4 AS SELECT light FROM sensors SAMPLE PERIOD 1 s")
    asked.sense(light=5, temp=3000)
    asked.run(2)
    asked.ask(
        2, f"SELECT s.temp FROM {source} WHERE s.temp > 20 OUTPUT ACTION SIGNAL hot(temp) SAMPLE PERIOD 4 s"
    )
    asked.ask(3, "SELECT temp FROM sensors SAMPLE PERIOD 1 s")
    asked.mote.signal_room(False)
    asked.run(4)
    asked.sense(temp=1000)
    asked.run(1.5)
    asked.mote.signal_room(True)
    asked.mote.window()
    asked.run(0.1)
    assert (asked.mote.signals, asked.mote.signal_value) == (1, 3000)


@pytest.mark.parametrize("seconds", [20, 100])
def test_no_line_leads_to_a_session_that_is_over(query_library: Path, seconds: int) -> None:
    """What was stored before the root restarted has no age: the value of one period ago is known from two rows of now on."""
    log = "CREATE STORAGE POINT log SIZE 60 rows AS SELECT light FROM sensors SAMPLE PERIOD 4 s"
    asked = Asked(query_library, 500)
    asked.sense(light=100)
    assert asked.create(1, log).block is not None
    asked.run(20)
    asked.restart_root(seconds)
    asked.sense(light=900)
    asked.create(1, log)
    asked.ask(2, "SELECT light FROM log INTERPOLATE LINEAR SAMPLE PERIOD 1 s")
    assert asked.run(3.5) == []
    assert {(epoch, values[1]) for _, epoch, values in asked.run(4)} == {
        (seconds + after, 900) for after in range(4, 8)
    }
