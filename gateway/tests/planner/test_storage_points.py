"""Storage points and the queries that fill and read them: what is accepted, and what is said of the rest."""

from __future__ import annotations

import pytest

from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Point, free_block
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_point, plan_query
from skerry.service.explain import explain, explain_text
from skerry.sql.ast import CreatePoint, DropPoint
from skerry.sql.errors import QueryError
from skerry_protocol.codec import decode_program


def create(sql: str, points: dict[str, Point], number: int = 1) -> QueryPlan:
    statement = plan_query(sql, points)
    assert isinstance(statement, CreatePoint)
    point, plan = plan_point(statement, number, points)
    points[point.name.lower()] = point
    return plan


@pytest.fixture
def points() -> dict[str, Point]:
    """The paper's point, a log in EEPROM that INTO fills, one of seconds."""
    made: dict[str, Point] = {}
    create(
        "CREATE STORAGE POINT recentlight SIZE 8 AS (SELECT nodeid, light FROM sensors SAMPLE PERIOD 10s)",
        made,
        1,
    )
    create("CREATE CIRCULAR STORAGE POINT log SIZE 50 rows (temp int16, n uint8)", made, 2)
    create("create buffer fast size 10 s as select accel_x as x sample period 500 ms", made, 3)
    return made


def test_size_decides_where_rows_lie(points: dict[str, Point]) -> None:
    light, log, fast = points["recentlight"], points["log"], points["fast"]
    assert (light.rows, light.seconds, light.period_ms, light.block) == (8, 0, 10_000, None)
    # A view of an endless stream is of its newest rows; eight are shown of nine.
    assert light.circular
    assert light.bytes == 9 * (8 + 2 + 2)
    assert (log.rows, log.block, log.blocks, log.period_ms) == (50, 0, 14, None)
    assert log.bytes == 51 * (14 + 2 + 1)
    assert (fast.rows, fast.seconds, fast.block) == (20, 10, None)
    assert [(field.digits, field.unit) for field in log.fields] == [(2, "degC"), (0, "")]
    assert free_block(2, list(points.values())) == 14


def test_blocks_are_used_again(points: dict[str, Point]) -> None:
    create("CREATE STORAGE POINT second SIZE 20 rows (a int32, b int32)", points, 4)
    assert points["second"].block == 14
    del points["log"]
    create("CREATE STORAGE POINT third SIZE 30 rows (temp int16)", points, 5)
    assert points["third"].block == 0


ACCEPTED = [
    # The paper's, 3.2.
    "SELECT COUNT(*) FROM sensors AS s, recentLight AS rl WHERE rl.nodeid = s.nodeid AND s.light < rl.light SAMPLE PERIOD 10s",
    "SELECT * FROM recentlight ONCE",
    "SELECT r.time, r.light, s.light FROM sensors s, recentlight r SAMPLE PERIOD 1 min FOR 1 h",
    "SELECT AVG(light), MAX(light) FROM recentlight GROUP BY nodeid SAMPLE PERIOD 10 s",
    "SELECT a.light, b.light FROM recentlight a, recentlight b WHERE a.light < b.light ONCE",
    "SELECT temp, nodeid % 7 FROM sensors WHERE temp > 20 INTO STORAGE POINT log SAMPLE PERIOD 250 ms",
    "SELECT WINAVG(4, temp), 1 INTO log SAMPLE PERIOD 1 s",
    "SELECT temp, n FROM log COMBINE AVG(temp), MAX(log.n) SAMPLE PERIOD 1 min",
    "SELECT x FROM fast INTERPOLATE LINEAR SAMPLE PERIOD 1 s",
    "SELECT x FROM fast LINEAR INTERPOLATE SAMPLE PERIOD 1 s",
    "ON EVENT hot SELECT light FROM recentlight ONCE",
    "SELECT light FROM recentlight WHERE light > 900 OUTPUT ACTION leds(1) SAMPLE PERIOD 10 s",
]  # fmt: skip


@pytest.mark.parametrize("sql", ACCEPTED)
def test_accepted(sql: str, points: dict[str, Point]) -> None:
    plan = plan_query(sql, points)
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    assert decode_program(encode(query, 100)).period == plan.period_ms
    assert MoteQuery.from_dict(query.to_dict()) == query
    assert explain_text(explain(plan))


REFUSED = [
    ("SELECT light FROM recent ONCE", "recent",
     "unknown table 'recent' at column 19: did you mean 'recentlight'? tables are sensors and storage points: recentlight, log, fast"),
    ("SELECT temp FROM log, fast, recentlight ONCE", "recentlight",
     "3 storage points are too many at column 29: join at most 2, and sensors"),
    ("SELECT light FROM sensors a, sensors b ONCE", "sensors",
     "sensors stands twice in FROM at column 30: name one of them's past, as in FROM sensors AS s, sensors HISTORY 1 day AS h, or say "
     "within which WINDOW they join"),
    ("SELECT light FROM recentlight, recentlight ONCE", "recentlight",
     "two tables are called 'recentlight' at column 19: give each a name of its own, as in FROM recent AS a, recent AS b"),
    ("SELECT light FROM sensors s, recentlight r ONCE", "light",
     "'light' is in several tables at column 8: write s.light or r.light"),
    ("SELECT r.lihgt FROM recentlight r ONCE", "r.lihgt",
     "unknown attribute 'lihgt' at column 8: did you mean 'light'? r has nodeid, light, time, network_time"),
    ("SELECT temp FROM recentlight ONCE", "temp",
     "unknown attribute 'temp' at column 8: recentlight has nodeid, light, time, network_time"),
    ("SELECT WINAVG(3, light) FROM recentlight SAMPLE PERIOD 1 s", "WINAVG(3, light)",
     "windows are over each mote's own rows, not over those of a join at column 8: "
     "aggregate the rows of the storage point instead, as in AVG(rl.light)"),
    ("SELECT temp SAMPLE PERIOD 1 s INTO lgo", "lgo",
     "unknown storage point 'lgo' at column 36: did you mean 'log'? there are recentlight, log, fast: make one with CREATE STORAGE POINT"),
    ("SELECT temp INTO log SAMPLE PERIOD 1 s", "log",
     "log has 2 fields, and the query 1 column at column 18: select one for each of temp, n"),
    ("SELECT light, 1 INTO log SAMPLE PERIOD 1 s", "log",
     "'light' does not fit the field temp at column 22: it is in degC"),
    ("SELECT temp, 1 INTO log SAMPLE PERIOD 100 ms", "log",
     "this sample period is too short for log at column 21: it lies in EEPROM: write SAMPLE PERIOD 250 ms"),
    ("SELECT AVG(temp), 1 INTO log SAMPLE PERIOD 1 s", "log",
     "an aggregate over all motes cannot be stored on a mote at column 26: "
     "it is known at the root only: store each mote's own rows, and aggregate them when they are read"),
    ("SELECT light, 1 FROM recentlight INTO log SAMPLE PERIOD 1 s", "log",
     "rows of a join cannot go to a storage point at column 39: store rows of sensors, and join when they are read"),
    ("SELECT temp COMBINE AVG(temp) SAMPLE PERIOD 1 s", "AVG(temp)",
     "COMBINE is about rows of a storage point at column 21: name a storage point in FROM, or leave it out"),
    ("SELECT temp FROM log COMBINE MEDIAN(temp) SAMPLE PERIOD 1 s", "MEDIAN(temp)",
     "MEDIAN does not combine rows at column 30: write COMBINE AVG(log.temp); there are AVG, MIN, MAX, SUM, COUNT"),
    ("SELECT temp FROM log COMBINE AVG(temp), MAX(temp) SAMPLE PERIOD 1 s", "MAX(temp)",
     "temp is combined twice at column 41: leave one of them out"),
    ("SELECT temp FROM log INTERPOLATE LINEAR SAMPLE PERIOD 1 s", "INTERPOLATE LINEAR",
     "log cannot be interpolated at column 22: it has rows at equal distances where CREATE STORAGE POINT … AS SELECT fills it"),
    ("SELECT x FROM fast COMBINE AVG(x) INTERPOLATE LINEAR SAMPLE PERIOD 1 s", "INTERPOLATE LINEAR",
     "COMBINE and INTERPOLATE exclude each other at column 35: "
     "COMBINE where the point's rows come faster than the query's, INTERPOLATE where they come slower"),
    ("CREATE STORAGE POINT log SIZE 8 (a int8)", "log",
     "there is a table 'log' already at column 22: drop it first: DROP STORAGE POINT log"),
    ("CREATE STORAGE POINT p SIZE 8", "p",
     "this storage point has no fields at column 22: "
     "write CREATE STORAGE POINT name SIZE 8 AS SELECT …, or name them: SIZE 8 (light uint16)"),
    ("CREATE STORAGE POINT p SIZE 8 (a float)", "float",
     "unknown type 'float' at column 34: types are uint8, int8, uint16, int16, int32, int, integer, smallint"),
    ("CREATE STORAGE POINT p SIZE 8 (a int8, A int16)", "p",
     "two fields are named 'a' at column 22: name one of them otherwise"),
    ("CREATE STORAGE POINT p SIZE 8 (a int8) AS SELECT temp ONCE", "a",
     "the fields are said twice at column 32: its fields are the columns of AS SELECT: name them there with AS"),
    ("CREATE STORAGE POINT p SIZE 0 (a int8)", "0",
     "SIZE 0 is no number of rows at column 29: write a whole number from 1 to 1024"),
    ("CREATE STORAGE POINT p SIZE 10 furlongs (a int8)", "10",
     "unknown unit 'furlongs' at column 29: sizes are in rows or in ms, s, min, h, day, week, month, year"),
    ("CREATE STORAGE POINT p SIZE 10 s (a int8)", "10",
     "a size in time needs AS SELECT … SAMPLE PERIOD at column 29: rows come whenever a query puts them there: write SIZE n rows"),
    ("CREATE STORAGE POINT p SIZE 1000 rows (a int32, b int32)", "1000",
     "1000 rows of 22 bytes do not fit a mote's EEPROM at column 29: at most 142 rows fit, or drop another storage point"),
    ("CREATE STORAGE POINT p SIZE 8 AS SELECT temp + 1 SAMPLE PERIOD 1 s", "p",
     "'temp + 1' is no name of a field at column 22: name it with AS, as in temp + 1 AS value"),
    ("CREATE STORAGE POINT p SIZE 8 AS SELECT light SAMPLE PERIOD 100 ms", "light",
     "light cannot be sampled each 100 ms at column 41: its sensor takes 402 ms: sample less often, or leave it out"),
    ("CREATE STORAGE POINT p SIZE 100 AS SELECT voltage SAMPLE PERIOD 100 ms", "100",
     "EEPROM is too slow for this sample period at column 29: write SAMPLE PERIOD 250 ms, or a SIZE of at most 25 rows, which RAM holds"),
    ("CREATE STORAGE POINT p SIZE 8 AS SELECT voltage SAMPLE PERIOD 10 ms", "10 ms",
     "sample period 10 ms is below what the network can do at column 63: the shortest is 50 ms"),
    ("CREATE STORAGE POINT p 8 (a int8)", "8", "unexpected '8' at column 24: expected SIZE"),
    ("SELECT temp INTO log INTO log SAMPLE PERIOD 1 s", "INTO",
     "INTO STORAGE POINT is said twice at column 22: leave one of them out"),
]  # fmt: skip


def plan(sql: str, points: dict[str, Point]) -> None:
    statement = plan_query(sql, points)
    if isinstance(statement, CreatePoint):
        plan_point(statement, 9, points)


@pytest.mark.parametrize(("sql", "marked", "message"), REFUSED, ids=[sql for sql, _, _ in REFUSED])
def test_refused(sql: str, marked: str, message: str, points: dict[str, Point]) -> None:
    with pytest.raises(QueryError) as raised:
        plan(sql, points)
    assert raised.value.summary == message
    carets = str(raised.value).split("\n")[2]
    assert carets.count("^") == len(marked)


def test_statements() -> None:
    dropped = plan_query("drop storage point Log;")
    assert isinstance(dropped, DropPoint)
    assert dropped.name.name == "Log"


def test_the_time_of_a_row_is_one_value(points: dict[str, Point]) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query("SELECT COUNT(*) FROM recentlight WHERE time > 5 SAMPLE PERIOD 10 s", points)
    assert raised.value.summary.endswith("recentlight.time may need more than a mote's 32 bits")
    plan = plan_query("SELECT network_time - 5 AS since FROM recentlight SAMPLE PERIOD 10 s", points)
    assert isinstance(plan, QueryPlan)
    assert "  computes since = recentlight.network_time - 5" in explain_text(explain(plan))
