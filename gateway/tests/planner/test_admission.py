"""What would not do what it says is refused of who asks it now, and goes on where it runs already."""

from __future__ import annotations

import pytest

from gateway.tests.planner.test_storage_points import create
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint
from skerry.sql.errors import QueryError


def plan_of(sql: str, points: dict[str, Point], *, restored: bool) -> QueryPlan:
    plan = plan_query(sql, points, restored=restored)
    if isinstance(plan, CreatePoint):
        _, plan = plan_point(plan, 9, points, restored=restored)
    assert isinstance(plan, QueryPlan)
    return plan


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nodeid, WINAVG(3, temp) FROM sensors HAVING WINAVG(3, temp) > 3 AND COUNT(*) > 2 SAMPLE PERIOD 2 s",
         "windows are over each mote's own rows, and aggregates over all motes at column 52: ask for them in two queries"),
        ("SELECT l.light FROM seen l COMBINE AVG(l.light) ONCE",
         "COMBINE does not go with ONCE, which has no last period at column 36: "
         "write SAMPLE PERIOD, or leave COMBINE out and have all rows"),
        ("ON ALIGNED EVENT hot SELECT l.light FROM seen l COMBINE AVG(l.light) SAMPLE PERIOD 10 s FOR 60 s",
         "COMBINE does not go with ALIGNED at column 57: leave one of them out"),
        ("SELECT l.light FROM seen l COMBINE AVG(l.light) LIFETIME 30 days",
         "COMBINE does not go with LIFETIME at column 36: "
         "motes leave out epochs, and the rows between would be in none: write SAMPLE PERIOD"),
        ("SELECT *, * ONCE", "* is said twice at column 11: leave one of them out"),
        ("SELECT room, TOP(2, temp) IS NULL FROM sensors GROUP BY room SAMPLE PERIOD 2 s",
         "TOP(2, temp) is a list, and never NULL at column 8: "
         "a list without values is empty: ask for it as a column of its own"),
        ("SELECT light >> 3 lx ONCE", ">> is by a number of places, not of lx at column 17: write 3 without a unit"),
        ("SELECT dist(DISTINCT loc, loc) ONCE", "dist(DISTINCT …) has no meaning at column 8: write dist(loc, event.loc)"),
        ("SELECT HISTOGRAM(temp, 0, 900 lx, 8) FROM sensors SAMPLE PERIOD 2 s",
         "unit mismatch: 'temp' is in degC, 900 lx is in lx at column 27: write a number in degC, C, °C"),
        ("SELECT WINAVG(temp, 30 s, 2) FROM sensors SAMPLE PERIOD 2 s",
         "WINAVG's length and slide are a time and a number of rows at column 21: write both as times, or neither"),
        ("SELECT AVG(temp, 5 min) FROM sensors SAMPLE PERIOD 10 s FOR 1 min",
         "a window that ends each 5 min has no row in 1 min at column 8: write a longer FOR than 5 min, or a shorter window"),
        ("SELECT temp FROM sensors SIGNAL every SAMPLE PERIOD 2 s",
         "'every' is a timer, not an event at column 33: name the event otherwise: ON EVENT every(10 min) waits for none"),
        ("SELECT temp FROM sensors STOP ON EVENT Every SAMPLE PERIOD 2 s",
         "'Every' is a timer, not an event at column 40: name the event otherwise: ON EVENT every(10 min) waits for none"),
        ("SELECT COUNT(*) FROM sensors GROUP BY 1 SAMPLE PERIOD 2 s",
         "GROUP BY 1 makes one group of all at column 39: name what is grouped by, as in GROUP BY room"),
        ("SELECT COUNT(*) FROM sensors GROUP BY room, -1 SAMPLE PERIOD 2 s",
         "GROUP BY -1 makes one group of all at column 45: name what is grouped by, as in GROUP BY room"),
        ("SELECT nodeid, COUNT(*, 1 min) FROM sensors GROUP BY nodeid ORDER BY -2 SAMPLE PERIOD 2 s",
         "ORDER BY -2 is the same for all rows at column 70: "
         "write a column or its number, the greatest first with DESC, as in ORDER BY 2 DESC"),
        ("SELECT nodeid, temp FROM sensors ORDER BY NULL DESC, 2 HISTORY 1 day ONLY",
         "ORDER BY NULL is the same for all rows at column 43: "
         "write a column or its number, the greatest first with DESC, as in ORDER BY 2 DESC"),
        ("CREATE STORAGE POINT p SIZE 8 (temp int16, TIME int32)",
         "a field cannot be called 'TIME', which is the sample time of each stored row at column 44: "
         "name it otherwise, as in time_read"),
        ("CREATE STORAGE POINT p SIZE 8 AS SELECT temp AS loc SAMPLE PERIOD 2 s",
         "a field cannot be called 'loc', which is a position, xpos and ypos at column 22: name it otherwise, as in loc_read"),
        ("ON EVENT hot SELECT temp FROM sensors LIFETIME 30 days",
         "LIFETIME does not go with events at column 39: write SAMPLE PERIOD n FOR n"),
        ("SELECT PULSE(accel_x > 0.3) FROM sensors LIFETIME 30 days",
         "LIFETIME leaves out epochs that pulses are made of at column 8: write SAMPLE PERIOD"),
        ("ON ALIGNED EVENT hot SELECT PULSES(accel_x > 0.3, 20 s) FROM sensors SAMPLE PERIOD 10 s FOR 60 s",
         "the epochs of ON ALIGNED EVENT are not those that pulses are made of at column 29: leave ALIGNED out"),
        ("SELECT l.light FROM seen l OUTPUT ACTION SIGNAL hot(l.light * 2) SAMPLE PERIOD 2 s",
         "an event cannot say what a storage point holds at column 28: name attributes of sensors, or none"),
        ("SELECT s.temp FROM seen l, sensors s OUTPUT ACTION SIGNAL hot(l.nodeid, s.temp) SAMPLE PERIOD 2 s",
         "an event cannot say what a storage point holds at column 38: name attributes of sensors, or none"),
        ("ON EVENT hot SELECT temp FROM sensors OUTPUT ACTION power_on(event.nodeid) ONCE",
         "power_on cannot be sent to another mote at column 62: write power_on: it acts on the mote whose row it is"),
        ("SELECT s.temp FROM seen l, sensors s OUTPUT ACTION power-off(l.nodeid) SAMPLE PERIOD 2 s",
         "power_off cannot be sent to another mote at column 62: write power_off: it acts on the mote whose row it is"),
        ("SELECT * FROM sensors SAMPLE PERIOD 500 ms",
         "light cannot be sampled each 500 ms at column 8: "
         "below 1 s it can only be stored, with CREATE STORAGE POINT; accel_x and accel_y can be reported"),
        ("SELECT WINAVG(5, accel_x) FROM sensors HAVING WINMAX(5, voltage) > 3 SAMPLE PERIOD 100 ms",
         "voltage cannot be sampled each 100 ms at column 8: "
         "below 1 s it can only be stored, with CREATE STORAGE POINT; accel_x and accel_y can be reported"),
        ("SELECT * FROM sensors SAMPLE PERIOD 300 ms QUEUE DELTA",
         "light cannot be sampled each 300 ms at column 8: its sensor takes 402 ms: sample less often, or leave it out"),
        ("SELECT accel_x FROM sensors OUTPUT ACTION set_room(light) SAMPLE PERIOD 50 ms QUEUE NAIVE",
         "light cannot be sampled each 50 ms at column 8: its sensor takes 402 ms: sample less often, or leave it out"),
        ("SELECT accel_x FROM sensors SIGNAL hot(temp) SAMPLE PERIOD 50 ms QUEUE NAIVE",
         "temp cannot be sampled each 50 ms at column 8: its sensor takes 85 ms: sample less often, or leave it out"),
        ("CREATE STORAGE POINT p SIZE 8 AS SELECT accel_x SAMPLE PERIOD 50 ms STOP ON EVENT hot WHERE temp > 3",
         "temp cannot be sampled each 50 ms at column 41: its sensor takes 85 ms: sample less often, or leave it out"),
        ("CREATE STORAGE POINT p SIZE 8 AS SELECT temp FROM sensors HISTORY 1 h ONLY",
         "HISTORY does not go with storage points at column 59: motes keep what they sample, not what the gateway has"),
        ("SELECT temp FROM sensors OUTPUT ACTION BUFFER(8) HISTORY 1 h SAMPLE PERIOD 2 s",
         "HISTORY does not go with storage points at column 50: motes keep what they sample, not what the gateway has"),
        ("CREATE STORAGE POINT p SIZE 8 AS SELECT temp OUTPUT ACTION BUFFER(4) SAMPLE PERIOD 2 s",
         "rows cannot go to two storage points at column 46: its rows go to the point that is created: leave BUFFER out"),
    ],
)  # fmt: skip
def test_refused_of_who_asks_now(sql: str, message: str) -> None:
    points: dict[str, Point] = {}
    create("CREATE STORAGE POINT seen SIZE 8 AS SELECT nodeid, light FROM sensors SAMPLE PERIOD 2 s", points)
    with pytest.raises(QueryError) as raised:
        plan_of(sql, points, restored=False)
    assert raised.value.summary == message
    assert plan_of(sql, points, restored=True).text == sql


@pytest.mark.parametrize(
    "clause",
    ["SIGNAL hot(s.nodeid, temp)", "SIGNAL hot(sensors.nodeid)", "ACTION power_on(S.nodeid)", "ACTION power_on(id)"],
)  # fmt: skip
def test_a_mote_may_be_named_with_its_table(clause: str) -> None:
    plan_of(f"SELECT temp FROM sensors AS s OUTPUT {clause} SAMPLE PERIOD 2 s", {}, restored=False)
