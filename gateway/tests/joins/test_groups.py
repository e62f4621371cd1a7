"""Joins that share an operator: each has the answers that it has by itself, whoever comes and goes; what is kept, and for how long."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skerry.joins.choice import check_limit, choose, kept_of, limit_of
from skerry.joins.conditions import AllOf, Column, Compared, Condition, Value, decode, encode
from skerry.joins.group import Group
from skerry.joins.intake import Intake
from skerry.joins.join import Join, JoinError
from skerry.joins.operator import Operator, StateLimitError
from skerry.joins.single import SingleJoin
from skerry.joins.windows import Window, uniform

SECOND = 1_000_000
SCHEMA = pa.schema([("item", pa.int64()), ("level", pa.float64())])
SCHEMAS = {"s": SCHEMA, "t": SCHEMA}
ITEM = Compared("=", Column("a", "item"), Column("b", "item"))


def join(seconds: float, *more: Condition, lateness: int = SECOND) -> Join:
    windows = uniform("ab", Window(int(seconds * SECOND)))
    return Join({"a": "s", "b": "t"}, windows, AllOf((ITEM, *more)), (Column("a", "level"),), lateness)


def batch(first: int, rows: int, *, items: int = 5) -> dict[str, pa.Table]:
    """Rows of two streams in turn, each 0.1 s after the one before."""
    rng = np.random.default_rng(first)
    number = np.arange(first, first + rows)
    whole = {
        "number": number,
        "time": number * 100_000,
        "item": rng.integers(0, items, rows),
        "level": rng.random(rows),
    }
    made = pa.table(whole)
    return {"s": made.filter(pa.array(number % 2 == 0)), "t": made.filter(pa.array(number % 2 == 1))}


def test_joins_share_rows_and_each_has_its_own_answers() -> None:
    joins = {
        "short": join(1),
        "long": join(3, Compared(">", Column("a", "level"), Value(0.5))),
        "other": join(2, Compared("<", Column("a", "level"), Column("b", "level"))),
    }
    group = Group(SCHEMAS, "HW", SECOND)
    group.add("short", joins["short"])
    intake, operator = Intake(group), Operator(group)
    singles = {"short": SingleJoin(joins["short"], SCHEMAS, "HW")}
    for step in range(12):
        if step == 3:
            group.add("long", joins["long"], since=300)
            singles["long"] = SingleJoin(joins["long"], SCHEMAS, "HW")
        if step == 5:
            group.add("other", joins["other"], since=500)
            singles["other"] = SingleJoin(joins["other"], SCHEMAS, "HW")
            assert len(group.needs) == 2, "rows of each stream are kept once"
            assert {need.retention_us for need in group.needs.values()} == {3 * SECOND}
        if step == 8:
            group.remove("long")
            del singles["long"]
        tables = batch(100 * step, 100)
        found = operator.advance(intake.take(tables), intake.progress.us)
        assert found.keys() == singles.keys()
        for name, single in singles.items():
            assert found[name].equals(single.feed(tables)), (step, name)
            assert found[name].num_rows
    assert {need.retention_us for need in group.needs.values()} == {2 * SECOND}


def test_joins_that_share_a_condition_have_no_answers_where_no_rows_meet() -> None:
    less = Compared("<", Column("a", "level"), Column("b", "level"))
    group = Group(SCHEMAS, "HW", SECOND)
    group.add("short", join(1, less))
    group.add("long", join(3, less))
    operator = Operator(group)
    assert {name: table.num_rows for name, table in operator.advance({}, 0).items()} == {
        "short": 0,
        "long": 0,
    }
    rows = Intake(group).take({name: part for name, part in batch(0, 100).items() if name == "s"})
    assert sum(map(len, rows.values())) == 50
    assert {name: table.num_rows for name, table in operator.advance(rows, 0).items()} == {
        "short": 0,
        "long": 0,
    }


def test_rows_are_kept_until_progress_exceeds_their_time_by_the_window() -> None:
    running = SingleJoin(join(10), SCHEMAS, "HW")
    most = 0
    for step in range(100):
        running.feed(batch(100 * step, 100))
        most = max(most, running.operator.rows)
    # 10 rows/s for 11 s, a batch of 10 s, and panes that are not over.
    assert 110 <= running.operator.rows <= most <= 140
    assert 48 * running.operator.rows < running.operator.bytes < 56 * running.operator.rows


def test_a_silent_stream_keeps_a_bounded_state() -> None:
    running = SingleJoin(join(10), SCHEMAS, "MW")
    for step in range(50):
        running.feed({"s": batch(100 * step, 100)["s"]})
    assert running.operator.rows <= 70


def test_a_limit_is_held() -> None:
    group = Group(SCHEMAS, "HW", SECOND)
    group.add("j", join(1000))
    intake, operator = Intake(group), Operator(group, limit_bytes=5000)
    with pytest.raises(
        StateLimitError, match=r"keeps 5,200 bytes, more than its limit of 5,000: choose shorter windows"
    ):
        operator.advance(intake.take(batch(0, 100)), intake.progress.us)


def test_the_chooser_says_why() -> None:
    rates = {"s": 10.0, "t": 10.0}
    assert (
        choose(join(1), SCHEMAS, rates).reason == "HW, as a.item = b.item over all streams: rows meet by key"
    )
    unequal = Join(
        {"a": "s", "b": "t"},
        uniform("ab", Window(SECOND)),
        Compared("<", ITEM.left, ITEM.right),
        lateness_us=SECOND,
    )
    assert choose(unequal, SCHEMAS, rates).algorithm == "NLW"
    assert "at most 20 rows" in choose(unequal, SCHEMAS, rates).reason
    assert choose(unequal, SCHEMAS, {"s": 1e3, "t": 1.0}).algorithm == "MW"
    assert choose(unequal, SCHEMAS, {}).algorithm == "MW"
    assert choose(join(1), SCHEMAS, rates, "MW").reason == "MW, as asked for"
    with pytest.raises(JoinError, match="HW needs an equality over all streams"):
        choose(unequal, SCHEMAS, rates, "HW")
    assert limit_of(join(1), "HW") == 8 * limit_of(join(1), "MW") == 8 << 29


def test_windows_that_would_keep_more_than_the_limit_are_told_what_would_fit() -> None:
    rates = {"s": 10.0, "t": 10.0}
    check_limit(join(10), kept_of(join(10), rates, {}, keyed=True), 10_000)
    with pytest.raises(JoinError) as long:
        check_limit(join(1001), kept_of(join(1001), rates, {"t": 0}, keyed=True), 10_000)
    assert str(long.value) == (
        "the windows would keep about 0.802 MB, more than the limit of 0.01 MB, of a alone 10,020 rows, as 10 come in a second of "
        "their times, each of 40 bytes: WINDOW = 11 s would fit, or conditions that fewer rows pass"
    )
    late = join(1, lateness=20 * SECOND)
    kept = kept_of(late, rates, {}, keyed=True)
    with pytest.raises(JoinError, match=r"LATENESS 5 s would leave room for windows, or conditions"):
        check_limit(late, kept, 8_000)
    assert [one.alias for one in kept_of(join(1), {"t": 1.0}, {}, keyed=True)] == ["b"]


def test_what_is_wrong_with_a_join_is_named() -> None:
    group = Group(SCHEMAS, "MW", SECOND)
    for wrong, said in (
        (
            lambda: group.add("j", join(1, Compared("=", Column("a", "rain"), Value(1)))),
            "a.rain: stream 's' has item, level",
        ),
        (
            lambda: group.add("j", join(1, lateness=5)),
            "LATENESS 5 µs: joins that share an operator have 1000000 µs",
        ),
        (
            lambda: join(1, Compared("=", Column("x", "item"), Value(1))),
            "x.item: 'x' is no alias of this join: they are a, b",
        ),
        (lambda: join(1, lateness=-1), "LATENESS -1 µs: it must be 0 or longer"),
    ):
        with pytest.raises(JoinError) as error:
            wrong()
        assert str(error.value) == said


def test_joins_over_other_streams_do_not_share_an_operator() -> None:
    group = Group(SCHEMAS, "HW", SECOND)
    group.add("j", join(1))
    same = Join({"a": "s", "b": "s"}, uniform("ab", Window(SECOND)), ITEM, lateness_us=SECOND)
    with pytest.raises(JoinError, match="a join over s: joins that share this operator are over s, t"):
        group.add("k", same)
    assert list(group.entries) == ["j"]


def test_conditions_come_back_from_json() -> None:
    where = join(
        1, Compared("<", Column("a", "level"), Value(2.5)), Compared("<>", Column("b", "item"), Value(None))
    ).where
    assert decode(encode(where)) == where
    assert decode(encode(None)) is None
