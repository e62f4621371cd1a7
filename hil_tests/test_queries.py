"""Queries on the firmware's real image, against DuckDB where there is something to compute."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from skerry.ingest.partial_states import Partial, from_packet, merge_partials
from skerry.planner.model.lifetime_budget import CAPACITY
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand
from skerry_protocol.codes import Aggregate, PacketType
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.queries import ask, rows

REDWOOD = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "redwood-log.parquet"
SLOPE = Environment(
    fields={
        "temp": Field(base=20.0, gradient=(0.31, 0.17)),
        "light": Field(base=100.0, gradient=(7.0, 3.0)),
        "humidity": Field(base=40.0, gradient=(0.2, 0.1)),
    }
)


def test_rows_of_all_motes_over_several_hops(network: MakeNetwork) -> None:
    net = network(line_of(5, spacing=10), radio=disc(12), environment=SLOPE)
    net.advance("20s")
    query = ask(net, 1, "SELECT nodeid, temp, humidity, light, level FROM sensors SAMPLE PERIOD 5 s")
    net.advance("40s")
    last = {row["nodeid"]: row for row in rows(net.line, 1, query)}
    assert set(last) == set(range(5))
    for node, row in last.items():
        assert row["temp"] == pytest.approx(20 + 3.1 * node, abs=0.011)
        assert row["humidity"] == pytest.approx(40 + 2 * node, abs=0.04)
        assert row["light"] == pytest.approx(100 + 70 * node, abs=1)
        assert row["level"] == node


def test_where_is_decided_on_the_mote(network: MakeNetwork) -> None:
    net = network(grid(3, 2, spacing=10), radio=disc(15), environment=SLOPE)
    net.advance("20s")
    query = ask(net, 1, "SELECT nodeid, temp FROM sensors WHERE temp > 24 AND light < 260 SAMPLE PERIOD 5 s")
    net.advance("40s")
    expected = {
        node
        for node in range(6)
        if 20 + 3.1 * (node % 3) + 1.7 * (node // 3) > 24 and 100 + 70 * (node % 3) + 30 * (node // 3) < 260
    }
    assert expected
    assert {row["nodeid"] for row in rows(net.line, 1, query)} == expected
    on_air = {record.body[1] for _, _, packet in net.packets() if packet.type is PacketType.BUNDLE
              for record in packet.body.records if record.type == PacketType.RESULT}  # fmt: skip
    assert on_air <= expected


def test_aggregates_in_the_network_equal_duckdb(network: MakeNetwork) -> None:
    net = network(grid(4, 3, spacing=10), radio=disc(15), environment=SLOPE)
    net.advance("25s")
    raw = ask(net, 1, "SELECT temp, light FROM sensors SAMPLE PERIOD 5 s")
    whole = ask(
        net,
        2,
        "SELECT AVG(temp), SUM(light), COUNT(*), MIN(temp), MAX(light) FROM sensors WHERE light > 150 SAMPLE PERIOD 5 s",
    )
    net.advance("60s")
    table = pd.DataFrame(rows(net.line, 1, raw))
    expected = duckdb.sql(
        "SELECT epoch, SUM(CAST(round(temp * 100) AS BIGINT)) AS avg_sum, SUM(light) AS total, COUNT(*) AS n, "
        "MIN(CAST(round(temp * 100) AS BIGINT)) AS low, MAX(light) AS high "
        "FROM table WHERE light > 150 GROUP BY epoch HAVING COUNT(*) >= 0".replace("FROM table", "FROM df"),
        connection=_with(table),
    ).fetchall()
    by_epoch = {row[0]: row[1:] for row in expected}
    parts: dict[int, list[object]] = {}
    for record in net.line.of(PacketType.PARTIAL, 2):
        parts.setdefault(record.body.epoch, []).append(from_packet(whole, record.body))
    full = [epoch for epoch, count in table.groupby("epoch").size().items() if count == 12]
    compared = 0
    for epoch in full:
        merged = merge_partials(whole, parts[epoch])  # type: ignore[arg-type, index]
        assert merged.motes == 12
        states = {
            (column.name, column.aggregate.name): state
            for column, state in zip(whole.columns, merged.states, strict=True)
        }
        got = {name: state for (_, name), state in states.items()}
        total, light, count, low, high = by_epoch[epoch]
        assert got["AVG"] == (count, total)
        assert got["SUM"] == (count, light)
        assert got["COUNT"][0] == count
        assert got["MIN"][1] == low
        assert got["MAX"][1] == high
        compared += 1
    assert compared >= 8
    # In the network: in an epoch each mote sends its part of the sum once, not every mote's row.
    assert len(net.line.of(PacketType.PARTIAL, 2)) <= 1.5 * len(parts)


def _with(frame: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("df", frame)
    return connection


def test_once_gives_each_mote_one_row(network: MakeNetwork) -> None:
    net = network(grid(3, 2, spacing=10), radio=disc(15))
    net.advance("20s")
    query = ask(net, 1, "SELECT voltage, free_ram FROM sensors ONCE")
    net.advance("40s")
    found = rows(net.line, 1, query)
    assert sorted(row["nodeid"] for row in found) == list(range(6))
    assert all(row["voltage"] == pytest.approx(3.0, abs=0.02) for row in found)
    # Of 8 KB, data and stack may take 7.5.
    assert all(row["free_ram"] > 512 for row in found)


@pytest.mark.parametrize("seed", [1, 9, 17, 27])
def test_once_is_heard_of_in_time_where_motes_listen_seldom(network: MakeNetwork, seed: int) -> None:
    """Asked at four moments between the windows of a network that has nothing to do, as the gateway does."""
    net = network(grid(4, 3, spacing=10), radio=disc(15), seed=seed)
    demand = Demand()
    plan = plan_query("SELECT nodeid, voltage FROM sensors ONCE")
    assert isinstance(plan, QueryPlan)
    net.advance("200s")
    for moment in range(4):
        net.advance("4s")
        user = f"user {moment}"
        (asked,) = demand.add_user(user, plan, net.line.network_time()).install
        net.line.install(asked.query, asked.program)
        net.advance("48s")
        answers = {record.body.node for record in net.line.of(PacketType.RESULT, asked.query)}
        assert answers == set(range(12)), f"asked {moment * 4} s later"
        for query in demand.remove_user(user, net.line.network_time()).stop:
            net.line.stop(query)
        net.advance("48s")


def test_stop_ends_a_query_everywhere(network: MakeNetwork) -> None:
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("20s")
    query = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    net.advance("30s")
    assert {row["nodeid"] for row in rows(net.line, 1, query)} == {0, 1, 2, 3}
    net.line.stop(1)
    net.advance("15s")
    before = len(rows(net.line, 1, query))
    net.advance("30s")
    assert len(rows(net.line, 1, query)) == before


def test_several_queries_at_once(network: MakeNetwork) -> None:
    net = network(line_of(4, spacing=10), radio=disc(12), environment=SLOPE)
    net.advance("20s")
    asked = {
        1: ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s"),
        2: ask(net, 2, "SELECT light, accel_x FROM sensors WHERE light > 120 SAMPLE PERIOD 4 s"),
        3: ask(net, 3, "SELECT parent, queue_length, xpos, ypos FROM sensors SAMPLE PERIOD 10 s"),
        4: ask(net, 4, "SELECT humidity * 2 - 1, temp % 3, NOT light > 150 FROM sensors SAMPLE PERIOD 6 s"),
    }
    net.advance("70s")
    for number, nodes in ((1, 4), (2, 3), (3, 4), (4, 4)):
        found = rows(net.line, number, asked[number])
        assert len({row["nodeid"] for row in found}) == nodes, f"query {number}"
    third = {row["nodeid"]: row for row in rows(net.line, 3, asked[3])}
    assert third[2]["xpos"] == 20.0
    assert third[2]["parent"] == 1
    assert third[0]["parent"] is None


def test_a_failing_sensor_gives_null(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10), radio=disc(12), environment=Environment(fields=dict(SLOPE.fields)))
    net.advance("20s")
    query = ask(net, 1, "SELECT temp, light, accel_x FROM sensors SAMPLE PERIOD 5 s")
    net.motes[1].sense(temp=math.nan)
    net.advance("40s")
    found = [row for row in rows(net.line, 1, query) if row["nodeid"] == 1]
    assert found
    assert found[-1]["light"] == pytest.approx(170, abs=1)
    # The environment is the field again each second: only rows sampled before that are NULL.
    net.bed.network.environment.fields.pop("temp")
    net.motes[1].sense(temp=math.nan)
    net.advance("20s")
    assert [row["temp"] for row in rows(net.line, 1, query) if row["nodeid"] == 1][-1] is None


@pytest.mark.skipif(not REDWOOD.exists(), reason=f"{REDWOOD} is not here")
def test_redwood_readings_arrive_as_recorded(network: MakeNetwork) -> None:
    """Temperature, humidity and light equal TinyDB's own trace at the sensors' resolution."""
    trace = pd.read_parquet(REDWOOD)
    counts = trace[(trace.epoch > 2900) & (trace.epoch < 3000)].groupby("nodeid").size()
    nodes = [int(node) for node in counts.sort_values(ascending=False).index[:4]]
    environment = Environment(
        trace=str(REDWOOD), time="epoch", start=2900, step="10 s",
        columns={"temp": "temperature", "humidity": "humidity", "light": "par_top"},
        nodes={str(i): node for i, node in enumerate(nodes)},
    )  # fmt: skip
    net = network(line_of(4, spacing=10), radio=disc(12), environment=environment)
    net.advance("20s")
    query = ask(net, 1, "SELECT temp, humidity, light FROM sensors SAMPLE PERIOD 10 s")
    # Samples are taken in the second after an epoch begins; the trace's steps are at full tens of virtual time.
    net.advance("150s")
    network_zero = net.now - net.line.network_time()
    epochs = sorted(trace[trace.epoch >= 2900].epoch.unique())
    compared = 0
    for row in rows(net.line, 1, query):
        at = row["epoch"] * 10 + network_zero
        step = int(at // 10)
        if not 0.2 < at % 10 < 9:
            continue
        recorded = trace[
            (trace.epoch <= epochs[step]) & (trace.nodeid == nodes[row["nodeid"]]) & (trace.epoch >= 2900)
        ]
        if recorded.empty:
            continue
        last = recorded.sort_values("epoch").iloc[-1]
        assert row["temp"] == pytest.approx(float(last.temperature), abs=0.011)
        assert row["humidity"] == pytest.approx(min(max(float(last.humidity), -6), 119), abs=0.04)
        assert row["light"] == pytest.approx(float(last.par_top), abs=max(1.0, 0.01 * float(last.par_top)))
        compared += 1
    assert compared >= 30


def test_a_weaker_battery_takes_part_less_often(network: MakeNetwork) -> None:
    """LIFETIME: at 3 V each epoch, at 2.8 V each second, at 2.5 V hardly any."""
    motes = line_of(4, spacing=10)
    for mote, voltage in zip(motes[1:], (3010, 2800, 2500), strict=True):
        mote.battery_mv = voltage
    net = network(motes, radio=disc(35))
    net.advance("20s")
    query = ask(net, 1, "SELECT voltage FROM sensors LIFETIME 24 weeks")
    assert query.budget is not None
    net.advance("1h")
    found = rows(net.line, 1, query)
    epochs = 3590 / (query.period_ms / 1000)
    for node in (1, 2):
        volts = min(3.0, max(row["voltage"] for row in found if row["nodeid"] == node))
        power = CAPACITY * (volts - 2.1) / 0.9 / (24 * 604_800) * 1e6 - query.budget.idle
        divisor = max(1, round(query.budget.energy / query.period_ms / power))
        assert (divisor > 1) == (node == 2)
        assert sum(row["nodeid"] == node for row in found) == pytest.approx(epochs / divisor, abs=3)
    assert sum(row["nodeid"] == 3 for row in found) <= epochs / query.budget.most + 3


def test_an_event_on_one_mote_starts_a_query_on_all(network: MakeNetwork) -> None:
    """Mote 4 grows hot; all motes report for ten seconds, grouped by who raised it; its red LED is lit, too."""
    net = network(
        line_of(5, spacing=10),
        radio=disc(12),
        environment=Environment(fields={"light": SLOPE.fields["light"]}),
    )
    net.advance("20s")
    ask(net, 1, "SELECT temp FROM sensors WHERE temp > 50 OUTPUT ACTION leds(1) SIGNAL hot SAMPLE PERIOD 2 s")
    waiting = ask(
        net,
        2,
        "ON EVENT hot: SELECT event.nodeid, COUNT(*), AVG(light) GROUP BY event.nodeid SAMPLE PERIOD 2 s FOR 20 s",
    )
    net.advance("40s")
    assert not net.line.of(PacketType.PARTIAL, 2)
    net.motes[4].sense(temp=60)
    net.advance("60s")
    parts: dict[int, list[Partial]] = {}
    for record in net.line.of(PacketType.PARTIAL, 2):
        parts.setdefault(record.body.epoch, []).append(from_packet(waiting, record.body))
    merged = [merge_partials(waiting, found) for found in parts.values()]
    assert {partial.group(waiting) for partial in merged} == {(4,)}
    whole = [partial for partial in merged if partial.motes == 5]
    assert len(whole) >= 5, "all motes ran it together for most of its time"
    light = [column.aggregate is Aggregate.AVG for column in waiting.columns].index(True)
    # 100, 170, … 380 lx.
    assert all(partial.states[light] == (5, pytest.approx(5 * 240, abs=10)) for partial in whole)
    before = len(net.line.of(PacketType.PARTIAL, 2))
    net.advance("30s")
    assert len(net.line.of(PacketType.PARTIAL, 2)) == before, "it hears of nothing new while mote 4 stays hot"


def test_health_of_motes_is_asked_like_readings(network: MakeNetwork) -> None:
    net = network(line_of(3, spacing=10), radio=disc(12))
    net.advance("30s")
    query = ask(
        net,
        1,
        "SELECT link, neighbours, radio_duty, resets, uptime, dropped FROM sensors WHERE uptime > 1 SAMPLE PERIOD 5 s",
    )
    net.advance("60s")
    last = {row["nodeid"]: row for row in rows(net.line, 1, query)}
    for node, neighbours in ((0, 1), (1, 2), (2, 1)):
        row = last[node]
        assert row["neighbours"] == neighbours
        assert row["dropped"] == 0
        assert row["resets"] == net.motes[node].settings.boots == 1
        assert row["uptime"] == pytest.approx(row["at"], abs=8)
        assert (row["link"] is None) == (node == 0)
        energy = net.motes[node].energy
        on = sum(energy[f"radio_{state}_s"] for state in ("rx", "tx"))
        assert row["radio_duty"] == pytest.approx(on / net.now, rel=0.25)
    assert last[2]["link"] > 0.5


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_windows_on_motes_equal_duckdbs(network: MakeNetwork, board: str) -> None:
    net = network(line_of(3, spacing=10, boards=(board,)), radio=disc(12))
    net.advance("20s")
    raw = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 2 s FOR 60 s")
    windows = "WINAVG(5, temp) AS a, WINMAX(5, temp) AS b, WINCOUNT(5, temp) AS c, TREND(5, temp) AS d"
    query = ask(net, 2, f"SELECT {windows} FROM sensors SAMPLE PERIOD 2 s FOR 60 s")
    for second in range(80):
        for node, mote in net.motes.items():
            mote.sense(temp=math.nan if (second + node) % 17 == 0 else 20 + 5 * math.sin(second / 3 + node))
        net.advance(1)
    net.advance("30s")
    over = "OVER (PARTITION BY nodeid ORDER BY epoch ROWS 4 PRECEDING)"
    readings = pd.DataFrame(rows(net.line, 1, raw)).drop_duplicates(["nodeid", "epoch"])
    expected = duckdb.sql(
        f"SELECT nodeid, epoch, avg(temp) {over}, max(temp) {over}, count(temp) {over}, regr_slope(temp, epoch) {over} FROM df",
        connection=_with(readings),
    ).fetchall()
    found = {(row["nodeid"], row["epoch"]): row for row in rows(net.line, 2, query)}
    assert len(found) == len(expected) == 3 * 30
    names = [column.name for column in query.columns]
    for node, epoch, *values in expected:
        for name, value in zip(names, values, strict=True):
            got = found[node, epoch][name]
            missing = value is None or math.isnan(value)
            assert got is None if missing else got == pytest.approx(value, abs=0.51e-5), (node, epoch, name)


def test_windows_of_times_end_at_once_on_all_motes(network: MakeNetwork) -> None:
    """By network time, whenever a mote has heard of the query, and also on one that has been away."""
    net = network(line_of(6, spacing=10, boards=("iris", "cc2538")), radio=disc(12))
    net.advance("45s")
    raw = ask(net, 1, "SELECT light FROM sensors SAMPLE PERIOD 1 s")
    query = ask(net, 2, "SELECT WINMAX(light, 8 s, 8 s) FROM sensors SAMPLE PERIOD 1 s")
    for second in range(90):
        for node, mote in net.motes.items():
            mote.sense(light=1000 + 37 * (second * (node + 3) % 29) + node)
        if second == 43:
            net.motes[3].reboot()
        net.advance(1)
    net.advance("15s")
    readings = pd.DataFrame(rows(net.line, 1, raw)).drop_duplicates(["nodeid", "epoch"])
    found = {(row["nodeid"], row["epoch"]): row[query.columns[0].name] for row in rows(net.line, 2, query)}
    expected = duckdb.sql(
        "SELECT nodeid, epoch // 8 * 8 + 7, max(light) FROM df GROUP BY ALL HAVING count(*) = 8",
        connection=_with(readings),
    ).fetchall()
    whole = {(node, epoch): most for node, epoch, most in expected}
    assert {epoch % 8 for _, epoch in found} == {7}
    assert {key: found.get(key) for key in whole} == whole
    ends = [{epoch for node, epoch in found if node == of} for of in (0, 1, 2, 4, 5)]
    assert len(ends[0]) >= 10
    assert all(len(ends[0] ^ other) <= 1 for other in ends), "but for the first, or one on its way"
    assert {epoch for node, epoch in found if node == 3} < ends[0] | ends[1]


def test_sums_beyond_a_motes_bits_are_exact_over_several_hops(network: MakeNetwork) -> None:
    """What does not fit goes on by itself, and is added at the gateway."""
    net = network(line_of(6, spacing=10, boards=("iris", "cc2538")), radio=disc(12))
    for node, mote in net.motes.items():
        mote.sense(light=4000 if node % 2 else 24000)
    net.advance("45s")
    query = ask(net, 1, "SELECT SUM((light - 1000) * 30000) AS s, AVG(light) FROM sensors SAMPLE PERIOD 5 s")
    net.advance("60s")
    parts: dict[int, list[Partial]] = {}
    records = net.line.of(PacketType.PARTIAL, 1)
    for record in records:
        parts.setdefault(record.body.epoch, []).append(from_packet(query, record.body))
    whole = [merge_partials(query, states) for _, states in sorted(parts.items())][1:-1]
    assert len(whole) >= 6
    assert {state.motes for state in whole} == {6}
    for state in whole:
        (count, light), (_, total) = state.states
        assert count == 6
        assert light == pytest.approx(3 * 28000, abs=6)
        assert total == (light - 6000) * 30000 > 2**31
    assert len(records) <= 3 * len(parts), "only what does not fit goes by itself"
