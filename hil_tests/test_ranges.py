"""What a mote says of the ends of its sensors' ranges, of what lies beyond them, and of a sensor that fails, on both boards."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from skerry_protocol.attributes import BY_NAME
from skerry_testbed.core import BACKENDS, SENSORS
from skerry_testbed.network import Environment
from skerry_testbed.pytest import MakeNetwork, line_of
from skerry_testbed.queries import ask, rows

ALL = "SELECT temp, humidity, light, voltage, accel_x, accel_y FROM sensors SAMPLE PERIOD 5 s"
#: What its chain of sensor, converter and arithmetic may be off at most.
OFF = {"temp": 0.04, "humidity": 0.08, "light": 8.0, "voltage": 0.025, "accel_x": 0.02, "accel_y": 0.02}
#: One value after the other of each attribute, and what each board says then where it is not the same.
COURSES: dict[str, list[tuple[float, dict[str, float | None]]]] = {
    "temp": [
        (-40.0, {}),
        (-42.0, {"iris": None, "cc2538": None}),
        (122.0, {}),
        (125.0, {"cc2538": None}),
        (127.0, {"iris": None, "cc2538": None}),
        (math.nan, {"iris": None, "cc2538": None}),
        (20.0, {}),
    ],
    "humidity": [(-5.9, {}), (0.0, {}), (100.0, {}), (118.9, {}), (math.nan, {"iris": None, "cc2538": None}), (1.0, {})],
    "light": [
        (0.0, {}),
        (1.0, {}),
        (4900.0, {}),
        (5100.0, {"cc2538": None}),
        (24800.0, {"cc2538": None}),
        (24900.0, {"cc2538": None}),
        (39980.0, {"cc2538": None}),
        (41000.0, {"iris": None, "cc2538": None}),
        (60000.0, {"iris": None, "cc2538": None}),
        (math.nan, {"iris": None, "cc2538": None}),
        (300.0, {}),
    ],
    "voltage": [
        (1.8, {}),
        (3.56, {}),
        (5.5, {"cc2538": None}),
        (1.0, {"iris": None}),
        (0.0, {"iris": None, "cc2538": None}),
        (3.0, {}),
        (math.nan, {"iris": None, "cc2538": None}),
        (2.9, {}),
    ],
    "accel_x": [(-2.0, {}), (2.0, {}), (5.0, {"iris": 2.0, "cc2538": 2.0}), (math.nan, {"iris": None, "cc2538": None}), (0.0, {})],
    "accel_y": [(-2.0, {}), (2.0, {}), (-5.0, {"iris": -2.0, "cc2538": -2.0}), (math.nan, {"iris": None, "cc2538": None}), (0.5, {})],
}  # fmt: skip


@pytest.mark.parametrize("attribute", COURSES)
def test_the_ends_of_a_range_what_lies_beyond_and_a_failure(network: MakeNetwork, attribute: str) -> None:
    assert set(COURSES) == set(SENSORS)
    net = network(line_of(2, spacing=10, boards=list(BACKENDS)))
    query = ask(net, 1, ALL)
    net.advance("15s")
    others = {"temp": 20.0, "humidity": 50.0, "light": 100.0, "voltage": 3.0, "accel_x": 0.0, "accel_y": 0.0}
    del others[attribute]
    entry = BY_NAME[attribute]
    for value, boards in COURSES[attribute]:
        for mote in net.motes.values():
            mote.sense(**{attribute: value})
        net.advance("14s")
        last = {row["nodeid"]: row for row in rows(net.line, 1, query)}
        for mote in net.motes.values():
            board, row = mote.description.board, last[mote.id]
            expected = boards.get(board, value)
            said = row[attribute]
            assert said == (expected if expected is None else pytest.approx(expected, abs=OFF[attribute])), (
                board
            )
            assert said is None or attribute == "voltage" or entry.minimum <= round(said, 1) <= entry.maximum
            if attribute != "voltage" or value >= 1.8:
                assert {name: row[name] for name in others} == pytest.approx(others, abs=0.1), board


def test_a_voltage_that_a_trace_does_not_know_is_null(network: MakeNetwork, tmp_path: object) -> None:
    """And what depends on the supply, as all ratiometric sensors do, is what it was."""
    path = f"{tmp_path}/trace.parquet"
    pd.DataFrame(
        {
            "time": [0.0, 0.0, 30.0, 30.0, 45.0, 45.0],
            "nodeid": [0, 1] * 3,
            "voltage": [2.8, 2.8, math.nan, math.nan, 2.7, 2.7],
            "humidity": [55.0] * 6,
        }
    ).to_parquet(path)
    net = network(line_of(2, spacing=10, boards=list(BACKENDS)), environment=Environment(trace=path))
    query = ask(net, 1, "SELECT voltage, humidity, accel_x FROM sensors SAMPLE PERIOD 5 s")
    net.advance("60s")
    found = rows(net.line, 1, query)
    for node in net.motes:
        said = [row["voltage"] for row in found if row["nodeid"] == node]
        known = [round(value, 1) for value in said if value is not None]
        assert None in said
        assert sorted(set(known)) == [2.7, 2.8]
        first, last = said.index(None), len(said) - said[::-1].index(None)
        assert said[first:last] == [None] * (last - first)
        assert 2 <= last - first <= 3
    assert {round(row["humidity"]) for row in found} == {55}
    assert {round(row["accel_x"], 1) for row in found} == {0.0}
