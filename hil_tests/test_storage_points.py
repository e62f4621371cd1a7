"""Storage points on emulated motes: filled, joined, combined, read back after a restart. Joins are held to DuckDB's."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from skerry.ingest.partial_states import from_packet, merge_partials
from skerry.planner.model.storage_points import Point
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Environment, Fault, Field
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import LEAD_S, ask, create, rows

#: Changes from one sample to the next, otherwise at each mote.
WAVES = Environment(
    fields={
        "light": Field(base=500.0, gradient=(7.0, 0.0), amplitude=300.0, period="23 s"),
        "temp": Field(base=20.0, gradient=(0.1, 0.0), amplitude=5.0, period="31 s"),
    },
    update="500 ms",
)
BOARDS = ("iris", "cc2538")
Points = dict[str, Point]


def start(network: MakeNetwork, board: str, motes: int = 3, **arguments: Any) -> NetworkHandle:
    net = network(line_of(motes, spacing=10, boards=[board]), radio=disc(12), environment=WAVES, **arguments)
    net.advance("20s")
    return net


def readings(net: NetworkHandle, query: int, mote_query: Any) -> duckdb.DuckDBPyConnection:
    """What a query of light reported, as table r(node, t, light); t in s."""
    database = duckdb.connect()
    database.execute("CREATE TABLE r (node INTEGER, t INTEGER, light INTEGER)")
    period = mote_query.period_ms // 1000
    values = [
        (row["nodeid"], row["epoch"] * period, row["light"]) for row in rows(net.line, query, mote_query)
    ]
    database.executemany("INSERT INTO r VALUES (?, ?, ?)", values)
    return database


@pytest.mark.parametrize("board", BOARDS)
def test_the_papers_join_counts_brighter_readings(network: MakeNetwork, board: str) -> None:
    """TinyDB 2005, 3.2: how many of the last eight readings were brighter than this one."""
    net, points = start(network, board), Points()
    create(
        net, 1,
        "CREATE STORAGE POINT recentlight SIZE 8 AS (SELECT nodeid, light FROM sensors SAMPLE PERIOD 2s)",
        points,
    )  # fmt: skip
    seen = ask(net, 2, "SELECT light FROM sensors SAMPLE PERIOD 2 s")
    counted = ask(
        net, 3,
        "SELECT COUNT(*) FROM sensors AS s, recentLight AS rl "
        "WHERE rl.nodeid = s.nodeid AND s.light < rl.light SAMPLE PERIOD 2s",
        points=points,
    )  # fmt: skip
    joined = ask(
        net, 4,
        "SELECT s.light, rl.light AS before, rl.time FROM sensors s, recentlight rl "
        "WHERE s.light < rl.light SAMPLE PERIOD 2s",
        points=points,
    )  # fmt: skip
    net.advance("60s")
    database = readings(net, 2, seen)
    # The first row is stored when all have the program; the last epochs are still under way.
    first, last = database.execute("SELECT min(t) + 4, max(t) - 6 FROM r").fetchall()[0]
    # A recursive look back of eight rows is a window.
    pairs = database.execute(
        """SELECT node, t, light, before.light AS brighter, before.t AS at FROM (
             SELECT node, t, light, list({'t': t, 'light': light}) OVER
               (PARTITION BY node ORDER BY t ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING) AS recent FROM r),
           UNNEST(recent) AS u(before) WHERE light < before.light AND t BETWEEN ? AND ?
           ORDER BY ALL""",
        [first + 16, last],
    ).fetchall()
    assert len(pairs) > 100
    found = sorted(
        (row["nodeid"], row["epoch"] * 2, row["light"], row["s1"], row["s15"])
        for row in rows(net.line, 4, joined)
        if first + 16 <= row["epoch"] * 2 <= last
    )
    assert found == pairs
    totals: dict[int, Any] = {}
    for record in net.line.of(PacketType.PARTIAL, 3):
        state = from_packet(counted, record.body)
        epoch = state.epoch
        totals[epoch] = merge_partials(counted, (totals[epoch], state)) if epoch in totals else state
    expected = database.execute(
        "SELECT t, count(*) FROM (SELECT unnest(?) AS t) GROUP BY t ORDER BY t", [[pair[1] for pair in pairs]]
    ).fetchall()
    found_totals = [
        (epoch * 2, state.states[0][0])
        for epoch, state in sorted(totals.items())
        if first + 16 <= epoch * 2 <= last and state.states[0][0]
    ]
    assert found_totals == expected
    assert {state.motes for epoch, state in totals.items() if first + 16 <= epoch * 2 <= last} == {3}


@pytest.mark.parametrize("board", BOARDS)
def test_rows_in_flash_outlive_a_restart(network: MakeNetwork, board: str) -> None:
    """A log longer than RAM holds, filled faster than the radio would take it, and fetched afterwards."""
    net, points = start(network, board, faults=[Fault(kind="reboot", mote=2, at="75 s")]), Points()
    create(
        net, 1,
        "CREATE STORAGE POINT log SIZE 60 rows AS SELECT epoch AS number, temp FROM sensors SAMPLE PERIOD 250 ms FOR 15 s",
        points,
    )  # fmt: skip
    assert points["log"].block is not None
    net.advance("75s")
    fetched = ask(net, 2, "SELECT number, time, temp FROM log ONCE", points=points)
    net.advance("60s")
    found = rows(net.line, 2, fetched)
    assert any(record.body.boots > 1 for record in net.line.of(PacketType.STATUS) if record.body.node == 2)
    for node in range(3):
        own = [row for row in found if row["nodeid"] == node]
        numbers = [row["s0"] for row in own]
        assert len(own) == 60, node
        assert sorted(numbers) == list(range(min(numbers), min(numbers) + 60))
        assert all(row["s15"] + row["s14"] == row["s0"] / 4 for row in own)
        assert len({row["s1"] for row in own}) > 10


@pytest.mark.parametrize("board", BOARDS)
def test_rows_of_a_session_that_is_over_have_no_age(network: MakeNetwork, board: str) -> None:
    """The root restarts, and network time begins anew: what motes have kept since before is no part of the last ten seconds, nor
    of the point's last minute."""
    net, points = start(network, board, motes=2), Points()
    sql = "CREATE STORAGE POINT log SIZE 1 min AS SELECT light, temp, nodeid AS n, level AS l FROM sensors SAMPLE PERIOD 2 s"
    create(net, 1, sql, points)
    assert points["log"].block is not None
    net.advance("100s")
    net.motes[0].reboot()
    net.advance("3s")
    net.line.connect()
    net.advance("30s")
    net.line.records.clear()
    again = Points()
    number = points["log"].number - 0x4000
    create(net, number, sql, again)
    first = int(net.line.network_time()) + LEAD_S
    counted = ask(net, 2, "SELECT light FROM log COMBINE COUNT(light) SAMPLE PERIOD 10 s", points=again)
    read = ask(net, 3, "SELECT time FROM log SAMPLE PERIOD 20 s", points=again)
    net.advance("70s")
    found = {(row["nodeid"], row["epoch"] * 10): row["s0"] for row in rows(net.line, 2, counted)}
    assert {node for node, _ in found} == {0, 1}
    assert {count for (_, second), count in found.items() if second >= first + 10} == {5}
    assert {row["s15"] for row in rows(net.line, 3, read)} <= set(range(first - 2, first + 80, 2))


@pytest.mark.parametrize("board", BOARDS)
def test_a_full_point_takes_no_more_and_a_circular_one_the_newest(network: MakeNetwork, board: str) -> None:
    net, points = start(network, board, 2), Points()
    create(net, 1, "CREATE STORAGE POINT first SIZE 3 (n uint16)", points)
    create(
        net, 2, "CREATE CIRCULAR STORAGE POINT latest SIZE 20 (n uint16, a int32, b int32, c int32)", points
    )
    assert (points["first"].block, points["latest"].block) == (None, 0)
    ask(net, 3, "SELECT epoch INTO first SAMPLE PERIOD 1 s", points=points)
    ask(net, 4, "SELECT epoch, nodeid, xpos, -1 INTO STORAGE POINT latest SAMPLE PERIOD 1 s", points=points)
    net.advance("60s")
    one = ask(net, 5, "SELECT n FROM first ONCE", points=points)
    two = ask(net, 6, "SELECT * FROM latest ONCE", points=points)
    net.advance("40s")
    for node in range(2):
        first = [row["s0"] for row in rows(net.line, 5, one) if row["nodeid"] == node]
        latest = [row for row in rows(net.line, 6, two) if row["nodeid"] == node]
        asked = min(row["epoch"] for row in latest)
        assert first == list(range(first[0], first[0] + 3))
        assert [row["s0"] for row in latest] == list(range(asked - 20, asked))
        assert {(row["s1"], row["s2"], row["s3"]) for row in latest} == {(node, node * 10, -1)}


@pytest.mark.parametrize("board", BOARDS)
def test_rates_are_matched(network: MakeNetwork, board: str) -> None:
    """COMBINE where the point's rows come faster, INTERPOLATE where they come slower."""
    net, points = start(network, board, 2), Points()
    create(net, 1, "CREATE STORAGE POINT fast SIZE 12 AS SELECT light FROM sensors SAMPLE PERIOD 1 s", points)
    create(net, 2, "CREATE STORAGE POINT slow SIZE 4 AS SELECT light FROM sensors SAMPLE PERIOD 4 s", points)
    seen = ask(net, 3, "SELECT light FROM sensors SAMPLE PERIOD 1 s")
    mean = ask(net, 4, "SELECT light FROM fast COMBINE AVG(fast.light) SAMPLE PERIOD 5 s", points=points)
    most = ask(net, 5, "SELECT f.light FROM fast f COMBINE MAX(f.light) SAMPLE PERIOD 5 s", points=points)
    line = ask(net, 6, "SELECT light FROM slow INTERPOLATE LINEAR SAMPLE PERIOD 1 s", points=points)
    net.advance("60s")
    database = readings(net, 3, seen)
    begin, end = database.execute("SELECT min(t) + 12, max(t) - 8 FROM r").fetchall()[0]
    for query, mote_query, function in ((4, mean, "round(avg(b.light))"), (5, most, "max(b.light)")):
        expected = database.execute(
            f"""SELECT a.node, a.t, {function}::INTEGER FROM r a JOIN r b ON a.node = b.node AND b.t >= a.t - 5 AND b.t < a.t
                WHERE a.t % 5 = 0 AND a.t BETWEEN ? AND ? GROUP BY ALL ORDER BY ALL""",
            [begin, end],
        ).fetchall()
        found = sorted(
            (row["nodeid"], row["epoch"] * 5, row["s0"])
            for row in rows(net.line, query, mote_query)
            if begin <= row["epoch"] * 5 <= end
        )
        assert found == expected
        assert len(found) >= 10
    expected = database.execute(
        """SELECT now.node, now.t, round(a.light + (b.light - a.light) * ((now.t - 4) % 4) / 4)::INTEGER
           FROM r now JOIN r a ON now.node = a.node AND a.t = (now.t - 4) // 4 * 4
           JOIN r b ON now.node = b.node AND b.t = a.t + 4 WHERE now.t BETWEEN ? AND ? ORDER BY ALL""",
        [begin + 8, end],
    ).fetchall()
    found = sorted(
        (row["nodeid"], row["epoch"], row["s0"])
        for row in rows(net.line, 6, line)
        if begin + 8 <= row["epoch"] <= end
    )
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    # Half away from zero is half away from the older row here.
    assert all(abs(ours[2] - theirs[2]) <= 1 for ours, theirs in zip(found, expected, strict=True))
    assert len(found) > 40


@pytest.mark.parametrize("board", BOARDS)
def test_a_long_join_keeps_no_other_query_waiting(network: MakeNetwork, board: str) -> None:
    """Ten thousand pairs of which none passes: epochs, beacons and slots beside it come when they are due."""
    net, points = start(network, board), Points()
    for number, name in enumerate(("one", "two"), 1):
        sql = (
            f"CREATE STORAGE POINT {name} SIZE 99 rows AS SELECT epoch AS n FROM sensors SAMPLE PERIOD 250 ms"
        )
        create(net, number, sql, points)
    beside = ask(net, 3, "SELECT epoch FROM sensors SAMPLE PERIOD 1 s")
    net.advance("60s")
    sql = "SELECT one.n, two.n AS m FROM one, two WHERE one.n < 0 AND two.n < 0 SAMPLE PERIOD 100 s"
    ask(net, 4, sql, points=points)
    net.advance("140s")
    whole(net, 3, beside)


@pytest.mark.parametrize("board", BOARDS)
def test_many_conditions_on_what_is_combined(network: MakeNetwork, board: str) -> None:
    """Each asks for the average of 200 rows in EEPROM or flash: it is computed once, and no mote begins anew."""
    net, points = start(network, board, motes=2), Points()
    sql = "CREATE CIRCULAR STORAGE POINT log SIZE 200 rows AS SELECT light FROM sensors SAMPLE PERIOD 500 ms"
    create(net, 1, sql, points)
    beside = ask(net, 2, "SELECT epoch FROM sensors SAMPLE PERIOD 1 s")
    net.advance("150s")
    where = " AND ".join(f"f.light <> {n}" for n in range(1, 20))
    sql = f"SELECT f.light FROM log f WHERE {where} SAMPLE PERIOD 30 s COMBINE AVG(f.light)"
    query = ask(net, 4, sql, points=points)
    net.advance("90s")
    assert {row["nodeid"] for row in rows(net.line, 4, query)} == {0, 1}
    assert {mote.counters["resets"] for mote in net.motes.values()} == {0}
    whole(net, 2, beside)


def whole(net: NetworkHandle, query: int, mote_query: Any) -> None:
    """Of every mote a row of each epoch, since the last of them has begun."""
    found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, query, mote_query)}
    first = max(min(epoch for node, epoch in found if node == of) for of in net.motes)
    last = max(epoch for _, epoch in found) - 1
    missing = {(node, epoch) for node in net.motes for epoch in range(first, last)} - found
    assert not missing, f"epochs {first} to {last}"


def test_two_points_are_joined(network: MakeNetwork) -> None:
    net, points = start(network, "iris", 2), Points()
    create(
        net,
        1,
        "CREATE STORAGE POINT a SIZE 3 AS SELECT epoch AS n FROM sensors SAMPLE PERIOD 1 s FOR 3 s",
        points,
    )
    create(
        net,
        2,
        "CREATE STORAGE POINT b SIZE 4 AS SELECT epoch AS n FROM sensors SAMPLE PERIOD 1 s FOR 4 s",
        points,
    )
    net.advance("30s")
    both = ask(net, 3, "SELECT a.n, b.n AS m FROM a, b WHERE a.n <> b.n ONCE", points=points)
    count = ask(net, 4, "SELECT COUNT(*), SUM(a.n - b.n) FROM a, b ONCE", points=points)
    net.advance("30s")
    for node in range(2):
        pairs = [(row["s0"], row["s16"]) for row in rows(net.line, 3, both) if row["nodeid"] == node]
        ours, others = sorted({n for n, _ in pairs}), sorted({m for _, m in pairs})
        assert (len(ours), len(others)) == (3, 4)
        assert pairs == [(n, m) for n in ours for m in others if n != m]
    total = [from_packet(count, record.body) for record in net.line.of(PacketType.PARTIAL, 4)]
    merged = total[0]
    for state in total[1:]:
        merged = merge_partials(count, (merged, state))
    assert (merged.motes, merged.states[0][0]) == (2, 24)
