"""What motes run, what the gateway keeps, and how a query's rows come out of a stream's."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.execution.filters import in_feed
from skerry.execution.residual import Residual, Rows
from skerry.expressions.assembler import assemble, obstacle, stack_depth
from skerry.expressions.expression import from_list, render
from skerry.expressions.ranges import RangeFilter
from skerry.ingest.partial_states import Partial, from_packet, merge_partials, partials_batch
from skerry.planner.model.columns import format_for
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode, program_size
from skerry.planner.planner import plan_query
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.bytecode import STACK_DEPTH, check
from skerry_protocol.codec import decode_program, decode_record
from skerry_protocol.codec import encode as encode_packet
from skerry_protocol.codes import Aggregate, PacketType
from skerry_protocol.limits import FOREVER


def plan(text: str) -> QueryPlan:
    result = plan_query(text)
    assert isinstance(result, QueryPlan)
    return result


def rows(what: str, where: str) -> QueryPlan:
    return plan(f"SELECT {what} FROM sensors WHERE {where} SAMPLE PERIOD 10 s")


def test_program_says_what_the_plan_says() -> None:
    query = merge([rows("temp, light", "temp > 25.5")])
    program = decode_program(encode(query, 100, 160))
    assert (program.flags, program.period, program.start, program.end) == (4, 10_000, 100, 160)
    assert program.where == bytes([6, 0x05, 5, 0x02]) + (2550).to_bytes(2, "little") + bytes([0x24])
    assert [(f.format, f.aggregate, f.code) for f in program.fields] == [
        (3, 0, b"\x05\x04"),
        (4, 0, b"\x05\x05"),
    ]
    assert len(encode(query, 0, FOREVER)) == program_size(query)


def test_fixed_point_is_scaled_by_the_planner() -> None:
    wanted = plan("SELECT AVG(temp * 2 + humidity / 3) AS x FROM sensors SAMPLE PERIOD 1 s")
    (column,) = merge([wanted]).columns
    assert column.expr is not None
    assert column.digits == 5
    # temp·2 has 2 digits, the quotient 5: the product is brought to 5 before they are added.
    assert assemble(column.expr).hex(" ") == "05 05 01 02 12 00 16 03 05 06 01 03 13 03 10"


def test_conditions_that_motes_cannot_evaluate_stay_at_the_gateway() -> None:
    deep = "temp"
    for _ in range(STACK_DEPTH + 1):
        deep = f"(level - ({deep} - temp))"
    for hard in ("xpos * 30 > 5", "epoch % 2 = 0", f"{deep} > 3"):
        wanted = rows("temp", f"level > 1 AND {hard}")
        assert wanted.mote_where is not None
        assert render(wanted.mote_where) == "level > 1"
        assert wanted.where != wanted.mote_where


def test_depth_is_named() -> None:
    deep = "temp"
    for _ in range(STACK_DEPTH):
        deep = f"(level % (temp - {deep}))"
    where = rows("temp", f"{deep} > 3").where
    assert where is not None
    assert obstacle(where) == "expression too deep for a mote: it needs a stack of 17 values, motes have 8"


def test_operands_change_places_to_save_stack() -> None:
    deep = "temp"
    for _ in range(12):
        deep = f"level + ({deep})"
    where = rows("temp", f"3 > ({deep}) AND 1 < level").where
    assert where is not None
    assert stack_depth(where) <= 3
    assert check(assemble(where)) == stack_depth(where)


def test_once_sends_expressions_where_that_is_shorter() -> None:
    shorter = merge([plan("SELECT nodeid, temp > 25 AND light > 3 AS warm FROM sensors ONCE")])
    assert [(c.name, c.format) for c in shorter.columns] == [("c0", ValueFormat.U8)]
    longer = merge([plan("SELECT temp, temp * 2 FROM sensors ONCE")])
    assert [c.name for c in longer.columns] == ["temp"]


def test_a_row_that_asks_for_nothing_but_its_mote_sends_the_cheapest_field() -> None:
    query = merge([plan("SELECT nodeid, epoch FROM sensors SAMPLE PERIOD 1 s")])
    assert [(c.name, c.format.size) for c in query.columns] == [("level", 1)]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_the_shortest_format_that_holds_a_range(a: int, b: int) -> None:
    low, high = min(a, b), max(a, b)
    chosen = format_for(low, high)
    assert chosen.minimum <= low <= high <= chosen.maximum
    assert not any(f.size < chosen.size and f.minimum <= low and high <= f.maximum for f in ValueFormat)


PLANS = [
    rows("temp", "temp > 25"),
    rows("light", "temp > 25"),
    rows("humidity / 3", "temp < 20 AND level = 1"),
    plan("SELECT * FROM sensors SAMPLE PERIOD 3 s"),
    plan("SELECT voltage FROM sensors WHERE light BETWEEN 1 AND 2 SAMPLE PERIOD 7 s"),
]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_order_of_users_does_not_matter(number: int) -> None:
    for chosen in itertools.combinations(PLANS, number):
        assert len({merge(order) for order in itertools.permutations(chosen)}) == 1


@pytest.mark.parametrize("wanted", [*PLANS, plan("SELECT AVG(temp * 2), COUNT(*) FROM sensors ONCE")])
def test_mote_queries_survive_json(wanted: QueryPlan) -> None:
    query = merge([wanted])
    assert MoteQuery.from_dict(query.to_dict()) == query
    for output in wanted.outputs:
        assert from_list(output.expr.to_list()) == output.expr


@pytest.mark.parametrize(
    ("condition", "bounds", "rest"),
    [
        ("temp > 25.5", RangeFilter(5, 2551, None), None),
        ("temp >= 25.5 AND temp < 30", RangeFilter(5, 2550, 2999), None),
        ("temp BETWEEN 25.555 AND 30", RangeFilter(5, 2556, 3000), None),
        ("nodeid = 7 AND temp / 2 > 3", RangeFilter(0, 7, 7), "(temp / 2) > 3"),
        ("light > 5 AND temp BETWEEN 1 AND 2", RangeFilter(5, 100, 200), "light > 5"),
        ("temp > 1 OR light > 5", None, "(temp > 1) OR (light > 5)"),
        ("epoch > 5", None, "epoch > 5"),
    ],
)
def test_ranges_for_an_index(condition: str, bounds: RangeFilter | None, rest: str | None) -> None:
    residual = Residual(rows("temp", condition))
    assert residual.filter.range == bounds
    assert (render(residual.filter.rest) if residual.filter.rest else None) == rest


def batch_of(query: MoteQuery, nodes: list[int], epochs: list[int], **columns: list[int | None]) -> Rows:
    data = {"nodeid": nodes, "epoch": epochs} | columns
    return Rows(pa.RecordBatch.from_pydict({k: pa.array(v, pa.int64()) for k, v in data.items()}), query)


def test_each_user_gets_his_rows_from_the_shared_stream() -> None:
    slow = plan("SELECT nodeid, epoch, temp FROM sensors WHERE temp > 20 SAMPLE PERIOD 4 s")
    fast = plan("SELECT temp * 2 AS t, light IS NULL AS dark FROM sensors SAMPLE PERIOD 2 s")
    query = merge([slow, fast])
    batch = batch_of(
        query, [1, 2, 1, 2], [4, 4, 5, 5], temp=[2550, 1999, 2150, None], light=[7, None, 9, None]
    )
    results = []
    for wanted in (slow, fast):
        residual = Residual(wanted)
        indices = residual.select(batch, Feed("u", 1, wanted.period_ms, query.period_ms, 0))
        table = residual.project(batch, indices)
        assert table.schema == residual.schema()
        results.append(table.to_pylist())
    assert results[0] == [{"nodeid": 1, "epoch": 2, "temp": 25.5}]
    assert results[1] == [
        {"t": 51.0, "dark": False},
        {"t": 39.98, "dark": True},
        {"t": 43.0, "dark": False},
        {"t": None, "dark": True},
    ]


def test_candidates_of_an_index_are_checked_for_the_rest_only() -> None:
    wanted = rows("temp", "temp > 20 AND light > 5")
    query = merge([wanted])
    batch = batch_of(query, [1, 2, 3], [1, 1, 1], temp=[2100, 2200, 0], light=[9, 1, 9])
    residual = Residual(wanted)
    feed = Feed("u", 1, 10_000, 10_000, 0)
    candidates = residual.select(batch, feed)
    assert candidates.tolist() == [0]
    both = residual.select(batch, feed, candidates=pa.array([0, 1]).to_numpy())
    assert both.tolist() == [0]


feeds = st.builds(
    Feed,
    st.just("u"),
    st.just(1),
    st.sampled_from([1000, 2000, 3000, 7000]),
    st.sampled_from([1000, 1500, 3000]),
    st.integers(0, 30_000),
    st.none() | st.integers(0, 60_000),
    st.none() | st.integers(0, 30_000),
)


@given(feeds)
def test_columns_of_sample_times_pass_a_feed_as_single_ones_do(feed: Feed) -> None:
    times = list(range(0, 60_000, feed.stream_period_ms))
    assert in_feed(pa.array(times).to_numpy(), feed).tolist() == [feed.passes(t) for t in times]


AGGREGATES = plan(
    "SELECT AVG(temp) AS a, SUM(temp) AS s, COUNT(temp) AS n, COUNT(*) AS motes, MIN(temp) AS low, "
    "MAX(temp) AS high, MAX(temp) - MIN(temp) AS spread FROM sensors SAMPLE PERIOD 10 s"
)


def aggregated(query: MoteQuery, partials: list[Partial]) -> list[dict[str, object]]:
    batch = Rows(partials_batch(query, partials), query)
    residual = Residual(AGGREGATES)
    return residual.project(batch, residual.select(batch, Feed("u", 1, 10_000, 10_000, 0))).to_pylist()


def state(query: MoteQuery, temperatures: list[int | None]) -> list[Partial]:
    """One mote's partial state for each reading, as the firmware makes them."""
    partials = []
    for reading in temperatures:
        states: list[tuple[int, int | None]] = []
        for column in query.columns:
            counts = column.expr is None or reading is not None
            keeps = counts and column.aggregate is not Aggregate.COUNT
            states.append((int(counts), (reading or 0) if keeps else 0))
        partials.append(Partial(3, 1, tuple(states)))
    return partials


def test_aggregates_share_the_states_they_can() -> None:
    columns = merge([AGGREGATES]).columns
    assert [(c.name, c.aggregate.name, c.expr is None) for c in columns] == [
        ("f0", "AVG", False), ("f1", "MAX", False), ("f2", "MIN", False), ("f3", "COUNT", True),
    ]  # fmt: skip


@given(st.lists(st.none() | st.integers(-4000, 12500), min_size=1, max_size=20), st.randoms())
def test_partial_states_give_the_aggregates_in_any_order(readings: list[int | None], random: object) -> None:
    query = merge([AGGREGATES])
    parts = state(query, readings)
    random.shuffle(parts)  # type: ignore[attr-defined]
    half = len(parts) // 2
    merged = merge_partials(query, [merge_partials(query, parts[half:]), *parts[:half]])
    (row,) = aggregated(query, [merged])
    known = [reading / 100 for reading in readings if reading is not None]
    assert (row["n"], row["motes"]) == (len(known), len(readings))
    if not known:
        assert [row[name] for name in ("a", "s", "low", "high", "spread")] == [None] * 5
        return
    assert row["a"] == pytest.approx(sum(known) / len(known), abs=0.5000001e-5)
    assert row["s"] == pytest.approx(sum(known))
    assert (row["low"], row["high"]) == (min(known), max(known))
    assert row["spread"] == pytest.approx(max(known) - min(known))


def test_a_sum_that_left_64_bits_is_null_and_its_count_is_not() -> None:
    query = merge([AGGREGATES])
    data = encode_packet(
        PacketType.PARTIAL, query=1, epoch=3, motes=2, overflow=1,
        states=[{"count": 2, "value": value} for value in (0, 9, 7, 0)],
    )  # fmt: skip
    (row,) = aggregated(query, [from_packet(query, decode_record(data[1], data[2:]).body)])
    assert (row["a"], row["s"], row["n"], row["high"]) == (None, None, 2, 0.09)
    big = Partial(3, 1, ((1, 2**31 - 1),) * 4)
    assert merge_partials(query, [big, big]).states[:2] == ((2, 2**32 - 2), (2, 2**31 - 1))
    wide = Partial(3, 1, ((1, 2**63 - 1),) * 4)
    assert merge_partials(query, [wide, big]).states[:2] == ((2, None), (2, 2**63 - 1))
    (row,) = aggregated(
        query, [merge_partials(query, [replace(big, motes=9, states=((60_000, 2**47), *big.states[1:]))] * 9)]
    )
    assert row["a"] == round(2**47 / 60_000 / 100, 5)


@given(
    st.lists(
        st.lists(st.none() | st.integers(-4000, 12500), min_size=1, max_size=6), min_size=1, max_size=12
    ),
    st.integers(-40, 125),
)
def test_having_keeps_the_epochs_that_duckdb_keeps(epochs: list[list[int | None]], limit: int) -> None:
    sql = f"MAX(temp) - MIN(temp) > 20 OR AVG(temp) < {limit} AND COUNT(temp) >= 2"
    wanted = plan(f"SELECT COUNT(*) AS motes FROM sensors HAVING {sql} SAMPLE PERIOD 10 s")
    query = merge([wanted])
    parts = [
        replace(merge_partials(query, state(query, readings)), epoch=epoch)
        for epoch, readings in enumerate(epochs)
    ]
    batch = Rows(partials_batch(query, parts), query)
    kept = Residual(wanted).select(batch, Feed("u", 1, 10_000, 10_000, 0)).tolist()
    trace = pa.table(  # noqa: F841 duckdb finds it by its name
        {
            "epoch": [epoch for epoch, readings in enumerate(epochs) for _ in readings],
            "temp": pa.array(
                [None if t is None else Decimal(t) / 100 for readings in epochs for t in readings],
                pa.decimal128(9, 2),
            ),
        }
    )
    # The gateway's averages are rounded to three more digits than the readings have.
    exact = sql.replace("AVG(temp)", "round(AVG(temp), 5)")
    expected = duckdb.sql(f"SELECT epoch FROM trace GROUP BY epoch HAVING {exact} ORDER BY epoch").fetchall()
    assert kept == [epoch for (epoch,) in expected]


def test_epochs_inside_an_aggregate_are_the_motes() -> None:
    wanted = plan("SELECT MAX(epoch) AS last FROM sensors SAMPLE PERIOD 10 s")
    query = merge([wanted])
    batch = Rows(partials_batch(query, [Partial(3, 1, ((1, 3),))]), query)
    residual = Residual(wanted)
    indices = residual.select(batch, Feed("u", 1, 10_000, 10_000, 0))
    assert residual.project(batch, indices).to_pylist() == [{"last": 3}]


def test_a_partial_state_of_another_shape_is_refused() -> None:
    query = merge([AGGREGATES])
    data = encode_packet(
        PacketType.PARTIAL, query=1, epoch=3, motes=1, overflow=0, states=[{"count": 1, "value": 1}] * 5
    )
    with pytest.raises(ValueError, match="5 cells: the query has 4"):
        from_packet(query, decode_record(data[1], data[2:]).body)
