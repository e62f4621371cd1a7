"""Generated queries on emulated motes say what DuckDB says about the same readings.

Every mote also runs a query that reports what it reads; its rows are DuckDB's table. Links are perfect, so that every row
comes. ``--hypothesis-seed`` repeats a run, and ``SKERRY_QUERIES`` says how many queries to try (300 without it).
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from gateway.tests.generated import Row, in_database
from hil_tests.drawn_queries import (
    DISTINCT_WITHIN,
    NAMES,
    OTHER,
    PERIOD_S,
    SENSED,
    Asked,
    exemplary,
    plannable,
    queries,
)
from skerry.execution.residual import Residual, Rows
from skerry.expressions.expression import Expr
from skerry.ingest.partial_states import Partial, from_packet, merge_partials, partials_batch
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate, PacketType
from skerry_protocol.limits import QUERIES_MAXIMUM
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import rows

EPOCHS = 4
#: Network seconds until all motes have all programs of an example.
LEAD_S = 45
#: Queries of one example: one more reports the readings.
BESIDE = QUERIES_MAXIMUM - 1
#: Queries of an example that are sampled by two plans.
PUSHED = 3
QUERIES = int(os.environ.get("SKERRY_QUERIES", "300"))


def started(seed: int) -> NetworkHandle:
    """Nine motes over four hops, two IRIS to a CC2538, with the root connected: a new network for each example, so that
    one that fails does so again."""
    motes = grid(3, 3, spacing=10, boards=("iris", "iris", "cc2538"))
    description = Network(name="duckdb", seed=seed, mote=motes, radio=disc(12), environment=Environment())
    net = NetworkHandle(check(description))
    net.advance("2.5s")
    net.line.connect()
    net.advance("17.5s")
    return net


def planned(sql: str) -> tuple[QueryPlan, MoteQuery]:
    plan = plan_query(f"{sql} SAMPLE PERIOD {PERIOD_S} s")
    assert isinstance(plan, QueryPlan)
    return plan, merge([plan])


def install(
    net: NetworkHandle, query: int, mote_query: MoteQuery, start: int, sampling: SamplingPlan | None = None
) -> None:
    """Install a query for EPOCHS epochs from network second ``start`` on."""
    net.line.install(query, encode(mote_query, start, start + EPOCHS * PERIOD_S, sampling))


def sense(net: NetworkHandle, draw: random.Random) -> None:
    """New readings everywhere; now and then a sensor fails."""
    for mote in net.motes.values():
        values = {
            "temp": draw.choice([20.0, 20.5, draw.uniform(-30, 60)]),
            "humidity": draw.uniform(5, 95),
            "light": draw.choice([0.0, 300.0, draw.uniform(0, 900)]),
        }
        if draw.random() < 0.1:
            values[draw.choice(SENSED)] = math.nan
        mote.sense(**values)


def drain(net: NetworkHandle) -> None:
    """Until nothing more comes: rows that found no room in their round travel in later ones."""
    quiet, before = 0, -1
    while quiet < 5:
        net.advance("8s")
        count = len(net.line.of(PacketType.RESULT)) + len(net.line.of(PacketType.PARTIAL))
        quiet, before = quiet + 1 if count == before else 0, count


def table_of(net: NetworkHandle, raw: MoteQuery) -> dict[int, list[Row]]:
    """What every mote read, by epoch, as scaled integers."""
    found: dict[int, list[Row]] = {}
    # Once each: the gateway's log drops what the root sends again.
    for row in {(row["nodeid"], row["epoch"]): row for row in rows(net.line, 1, raw)}.values():
        values = {
            name: None if row[name] is None else round(row[name] * 10 ** BY_NAME[name].digits)
            for name in NAMES
        }
        found.setdefault(row["epoch"], []).append(values | {"epoch": row["epoch"]})
    return found


def answers(
    net: NetworkHandle, query: int, plan: QueryPlan, mote_query: MoteQuery
) -> dict[int, list[dict[str, Any]]]:
    """The user's rows by epoch, as the gateway makes them from what the root sent."""
    residual, feed = Residual(plan), Feed("u", query, plan.period_ms, mote_query.period_ms, 0)
    if plan.aggregate:
        states: dict[tuple[Any, ...], list[Partial]] = {}
        for record in net.line.of(PacketType.PARTIAL, query):
            partial = from_packet(mote_query, record.body)
            group = partial.group(mote_query)
            if group is not None:
                states.setdefault((partial.epoch, *group), []).append(partial)
        batch = partials_batch(mote_query, [merge_partials(mote_query, parts) for parts in states.values()])
    else:
        # Once each: the gateway's log drops what the root sends again.
        found = list(
            {(row["nodeid"], row["epoch"]): row for row in rows(net.line, query, mote_query)}.values()
        )
        columns = {name: pa.array([row[name] for row in found], pa.int64()) for name in ("nodeid", "epoch")}
        for column in mote_query.columns:
            scaled = [
                None if row[column.name] is None else round(row[column.name] * 10**column.digits)
                for row in found
            ]
            columns[column.name] = pa.array(scaled, pa.int64())
        batch = pa.RecordBatch.from_pydict(columns)
    prepared = Rows(batch, mote_query)
    chosen = residual.select(prepared, feed)
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    epochs = prepared.sample_ms[chosen] // mote_query.period_ms
    for epoch, row in zip(epochs.tolist(), residual.project(prepared, chosen).to_pylist(), strict=True):
        by_epoch.setdefault(epoch, []).append(row)
    return by_epoch


def _rounded(expr: Expr) -> float:
    """By how much a column may be off: averages, variances and deviations are rounded at their digits, and averages may be tripled then.
    Averages that forget are kept with 16 binary places, and cut there with each reading."""
    averages = sum(10.0**-node.digits for node in expr.walk() if node.aggregate is Aggregate.AVG)
    forgetting = sum(
        10.0 ** -node.args[0].digits for node in expr.walk() if node.aggregate is Aggregate.EXPAVG
    )
    return 0.5000001 * (10.0**-expr.digits + 3 * averages) + EPOCHS * forgetting / 2**16


def _close(one: Any, other: Any, error: float) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, list):
        return len(one) == len(other) and all(_close(a, b, error) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key], error) for key in one)
    theirs = float(other) if isinstance(other, bool) else float(str(other))
    return math.isclose(one, theirs, rel_tol=1e-9, abs_tol=error)


def compare(
    asked: Asked,
    plan: QueryPlan,
    got: list[dict[str, Any]],
    readings: list[Row],
    names: Sequence[str] = NAMES,
) -> None:
    """Fails unless our rows of an epoch are DuckDB's, in any order: what is close to another value may come before or behind it."""
    expected = in_database(asked.oracle, readings, [*names, "epoch"])
    ours = [tuple(row.values()) for row in got]
    assert len(ours) == len(expected), (asked.sql, ours, expected)
    if asked.within is not None:
        [(value, error)], [(exact,)] = ours, expected
        assert (value is None) == (exact is None), asked.sql
        allowed = 0 if exact is None else asked.within[0] * error + asked.within[1] + 1e-9
        assert exact is None or abs(value - float(str(exact))) <= allowed, (asked.sql, ours, expected)
        return
    errors = [_rounded(output.expr) for output in plan.outputs]
    left = list(expected)
    for mine in ours:
        same = next(
            (
                theirs
                for theirs in left
                if all(_close(a, b, error) for a, b, error in zip(mine, theirs, errors, strict=True))
            ),
            None,
        )
        assert same is not None, (asked.sql, mine, left)
        left.remove(same)


def limited(queries_each: int) -> settings:
    """So many examples that QUERIES are tried."""
    return settings(
        max_examples=math.ceil(QUERIES / queries_each),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        # A smaller example takes many runs: the query that differs is named by the assertion.
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )


def check_all(
    net: NetworkHandle, draw: random.Random, asked: Sequence[tuple[Asked, SamplingPlan | None]]
) -> None:
    """Fails unless the network's answers to these queries, sampled by these plans, are DuckDB's."""
    # Windows of times end at multiples of their slide of network time: the first epoch begins one of all queries.
    step = PERIOD_S * math.lcm(*(one.slide or 1 for one, _ in asked))
    start = math.ceil((net.line.network_time() + LEAD_S) / step) * step
    _, raw = planned(f"SELECT {', '.join(NAMES)} FROM sensors")
    install(net, 1, raw, start)
    running = {}
    for query, (one, sampling) in enumerate(asked, 2):
        running[query] = (one, *planned(one.sql))
        install(net, query, running[query][2], start, sampling)
    sense(net, draw)
    net.advance(start + 1 - net.line.network_time())
    for _ in range(EPOCHS - 1):
        sense(net, draw)
        net.advance(PERIOD_S)
    drain(net)
    table = table_of(net, raw)
    whole = sorted(epoch for epoch, readings in table.items() if len(readings) == len(net.motes))
    assert len(whole) == EPOCHS, f"only {whole} of {sorted(table)} are whole"
    for query, (one, plan, mote_query) in running.items():
        by_epoch = answers(net, query, plan, mote_query)
        for place, epoch in enumerate(whole, 1):
            if one.slide and (place % one.slide or place < one.longest):
                assert epoch not in by_epoch, (one.sql, by_epoch[epoch])
            else:
                # A window reaches back.
                since = whole[0] if one.slide or one.reaches_back else epoch
                readings = [row for known in whole if since <= known <= epoch for row in table[known]]
                compare(one, plan, by_epoch.get(epoch, []), readings)


def _exact(sql: str) -> Asked:
    """A query that DuckDB says in the same words, but for the names of two aggregates."""
    oracle = sql
    for ours, theirs in OTHER.items():
        oracle = oracle.replace(ours.format(""), theirs.format(""))
    return Asked(sql, oracle)


#: Nearly a group for each mote in four of them: the mote that forwards four others' had no room for its own.
MANY_GROUPS = [
    _exact(sql)
    for sql in (
        "SELECT COUNT(*), MIN(nodeid), AVG(voltage - 17), SUM(level) + MIN(level + 9) * -3 FROM sensors",
        "SELECT (nodeid + voltage) % 3, (level + temp) % 5, COUNT(*), STDDEV((level * -3) % 4 + temp - 10),"
        " AVG((temp % 2) * -3 - level), AVG(light % 7 + light % 6), MIN(humidity - light % 3) FROM sensors"
        " GROUP BY (nodeid + voltage) % 3, (level + temp) % 5",
        "SELECT (nodeid + humidity) % 5, humidity, COUNT(*), SUM(- (humidity * 2)), MIN(temp - 10) FROM sensors"
        " GROUP BY (nodeid + humidity) % 5, humidity HAVING AVG(humidity * 1) IS NOT NULL AND AVG(level) < 25",
        "SELECT nodeid AS id, level * 2, voltage * -3, - (nodeid - 11) FROM sensors",
        "SELECT temp, voltage, COUNT(*), MAX(voltage - 11), AVG(light * -2), VARIANCE(- (level * 0)),"
        " VARIANCE(- humidity) FROM sensors GROUP BY temp, voltage",
        "SELECT temp, nodeid, COUNT(*), STDDEV(light * -2 - humidity), STDDEV(temp - temp * 1),"
        " VARIANCE(temp * 2 + humidity * 2) FROM sensors GROUP BY temp, nodeid",
        "SELECT COUNT(*), MAX(voltage * -3), COUNT((nodeid - 3) * -2 - level), SUM((nodeid + 20) % 2 + voltage % 4),"
        " STDDEV(humidity % 2) FROM sensors WHERE NOT (((voltage * -1) % 7 + voltage) < (- (voltage + 14)))",
    )
]


#: Programs that motes told each other of out of order: two of them took a version of the set over that lacked the last but one.
OUT_OF_ORDER = [
    _exact(
        "SELECT (level + voltage) % 3, nodeid % 2, COUNT(*), MIN(((humidity % 4) % 7 + level + 7)), COUNT(temp * 3),"
        " SUM(temp * 0) + SUM(level * -3) * 3 FROM sensors GROUP BY (level + voltage) % 3, nodeid % 2"
    ),
    Asked(
        "SELECT COUNT(DISTINCT voltage * 1) AS n, ERROR(COUNT(DISTINCT voltage * 1)) AS e FROM sensors"
        " WHERE (NOT (NOT (voltage % 4 IN (voltage % 4, -13))))",
        "SELECT COUNT(DISTINCT voltage * 1) FROM sensors WHERE voltage IS NOT NULL",
        within=DISTINCT_WITHIN,
    ),
    _exact("SELECT nodeid AS id, temp + 7 FROM sensors"),
    _exact("SELECT COUNT(*), STDDEV(level) FROM sensors"),
    Asked(
        "SELECT QUANTILE(nodeid, 0.9) AS q, ERROR(QUANTILE(nodeid, 0.9)) AS e FROM sensors",
        "SELECT QUANTILE_DISC(nodeid, 0.9) FROM sensors",
        within=(1, 0),
    ),
    _exact("SELECT COUNT(*), MAX(temp) FROM sensors"),
    _exact("SELECT nodeid AS id, nodeid % 2 FROM sensors"),
]


#: A mote had the third last query before those ahead of it, and a neighbour's older set, which did not name it, made it drop that
#: query: it told its version as if it held it, and nobody sent it again.
OLDER_SET = [
    Asked(
        "SELECT QUANTILE(nodeid, 0.9) AS q, ERROR(QUANTILE(nodeid, 0.9)) AS e FROM sensors WHERE (NOT (NOT (level < -1.037)))",
        "SELECT QUANTILE_DISC(nodeid, 0.9) FROM sensors WHERE (NOT (NOT (level < -1.037)))",
        within=(1, 0),
    ),
    _exact("SELECT COUNT(*), COUNT(temp * 2), AVG(temp % 4) + MIN(light + 3) * 0 FROM sensors"),
    _exact("SELECT nodeid AS id, temp - 5 FROM sensors"),
    _exact("SELECT nodeid AS id, temp FROM sensors"),
    _exact(
        "SELECT level % 2, COUNT(*), MIN(light % 3), COUNT(light) + AVG(temp) * 2 FROM sensors GROUP BY level % 2"
    ),
    Asked(
        "SELECT COUNT(DISTINCT light % 2) AS n, ERROR(COUNT(DISTINCT light % 2)) AS e FROM sensors",
        "SELECT COUNT(DISTINCT light % 2) FROM sensors",
        within=DISTINCT_WITHIN,
    ),
    Asked(
        "SELECT COUNT(DISTINCT temp + 4) AS n, ERROR(COUNT(DISTINCT temp + 4)) AS e FROM sensors",
        "SELECT COUNT(DISTINCT temp + 4) FROM sensors",
        within=DISTINCT_WITHIN,
    ),
]


@limited(BESIDE)
@example(MANY_GROUPS, 1367069)
@example(OUT_OF_ORDER, 1)
@example(OLDER_SET, 20)
@given(st.lists(queries, min_size=BESIDE, max_size=BESIDE), st.integers(0, 2**32))
def test_motes_say_what_duckdb_says(batch: list[Asked], seed: int) -> None:
    check_all(started(seed), random.Random(seed), [(one, None) for one in batch])


@limited(10 * PUSHED)
@given(st.lists(exemplary().filter(plannable), min_size=PUSHED, max_size=PUSHED), st.integers(0, 2**32))
def test_pushing_down_changes_no_row(batch: list[Asked], seed: int) -> None:
    """Each query twice: all sensors read at once, and by the cheapest plan that asks first whether a reading can matter."""
    asked: list[tuple[Asked, SamplingPlan | None]] = []
    for one in batch:
        plans = considered(planned(one.sql)[1])
        pushed = next((plan for plan in plans if plan.pushed), None)
        asked += [(one, next(plan for plan in plans if not plan.staged)), (one, pushed)]
    check_all(started(seed), random.Random(seed), asked)
