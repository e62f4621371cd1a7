"""ORDER BY over a past that ends, against DuckDB over the same files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import past_engine, plan_of, rows_behind
from gateway.tests.storage.history.test_answer import (
    NOW,
    numbers,
    past,
    records,
    sensors_view,
    streams,
    where_of,
    wheres,
)
from gateway.tests.storage.history.test_answer import plain as as_double
from skerry.planner.features.history import explain_past
from skerry.sql.errors import QueryError
from skerry.storage.history import answer as answer_module
from skerry.storage.history import sorting as ordered_module
from skerry.storage.history.answer import Answer
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream

#: Fixtures of the module above.
__all__ = ["past", "records", "streams"]


def answered(history: History, log: StreamLog, streams: list[Stream], sql: str) -> list[tuple[Any, ...]]:
    """In three readings: it begins again for whoever has not come to its end, and then there is no more."""
    plan = plan_of(sql)
    reader = Reader(history, log.path, streams, plan.attributes, NOW - 7 * 86_400_000_000)
    answer = Answer(plan, reader, log.rows, past_engine())
    rows, position, more = rows_behind(answer)
    assert (position, more) == (log.rows - 1, False)
    assert {number for number, _ in rows} <= {log.rows - 1}
    assert rows_behind(answer, log.rows - 2)[0] == rows
    assert rows_behind(answer, log.rows - 1)[0] == []
    return [tuple(row.values()) for _, row in rows]


orders = st.lists(st.tuples(numbers, st.sampled_from(["", "ASC", "DESC"])), min_size=1, max_size=2)
limits = st.sampled_from([None, 1, 40, 100_000])


@settings(max_examples=20, deadline=None)
@given(orders, limits, wheres, st.integers(0, 2), st.sampled_from([97, 65_536]))
def test_rows_come_in_the_order_that_duckdb_says(
    past: Any,
    streams: list[Stream],
    order: list[tuple[str, str]],
    limit: int | None,
    where: str,
    which: int,
    piece: int,
) -> None:
    history, log = past[which]
    by = ", ".join(f"{expr} {direction}" for expr, direction in order)
    most = f"LIMIT {limit}" if limit else ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_module, "PIECE_ROWS", piece)
        if limit in (1, 40):
            patch.setattr(ordered_module, "PAST_MAXIMUM", 40)
        sql = f"SELECT nodeid, temp, light FROM sensors {where_of(where)} ORDER BY {by} {most} HISTORY 7 day ONLY"
        rows = answered(history, log, streams, sql)
    by = ", ".join(f"{expr} {direction} NULLS LAST" for expr, direction in order)
    with sensors_view(past[2][0], NOW - 7 * 86_400_000_000, log.rows) as connection:
        expected = connection.sql(
            f"SELECT nodeid, temp, light FROM sensors {where_of(where)} ORDER BY {by}, row {most}"
        ).fetchall()
    assert rows == [tuple(map(as_double, row)) for row in expected]


@pytest.mark.parametrize("limit", ["", "LIMIT 2"])
@pytest.mark.parametrize("direction", ["", "DESC"])
def test_so_do_aggregates(past: Any, streams: list[Stream], limit: str, direction: str) -> None:
    history, log = past[1]
    rows = answered(
        history, log, streams,
        "SELECT level, SUM(temp) AS warmth, COUNT(*) FROM sensors GROUP BY level "
        f"ORDER BY warmth {direction} {limit} HISTORY 7 day ONLY",
    )  # fmt: skip
    with sensors_view(past[2][0], NOW - 7 * 86_400_000_000, log.rows) as connection:
        expected = connection.sql(
            "SELECT level, sum(temp), count(*) FROM sensors GROUP BY level "
            f"ORDER BY 2 {direction} NULLS LAST, level NULLS LAST {limit}"
        ).fetchall()
    assert rows == [tuple(map(as_double, row)) for row in expected]
    by_epoch = answered(
        history, log, streams,
        "SELECT COUNT(*) AS n FROM sensors ORDER BY n DESC LIMIT 5 SAMPLE PERIOD 1 min HISTORY 7 day ONLY",
    )  # fmt: skip
    assert by_epoch == sorted(by_epoch, reverse=True)
    assert len(by_epoch) == 5


def test_more_rows_than_can_be_ordered_are_refused(
    past: Any, streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    history, log = past[2]
    monkeypatch.setattr(ordered_module, "PAST_MAXIMUM", 100)
    sql = "SELECT nodeid, temp FROM sensors ORDER BY temp {} HISTORY 7 day ONLY"
    for limit in ("", "LIMIT 101"):
        with pytest.raises(QueryError, match="more than 100 rows, and so many can be ordered") as refused:
            answered(history, log, streams, sql.format(limit))
        assert refused.value.hint == "add LIMIT 100, or ask for fewer with WHERE or a shorter HISTORY"
    assert len(answered(history, log, streams, sql.format("LIMIT 100"))) == 100
    monkeypatch.setattr(ordered_module, "PAST_MAXIMUM", 2)
    with pytest.raises(QueryError, match="more than 2 rows"):
        answered(
            history,
            log,
            streams,
            "SELECT nodeid, AVG(temp) FROM sensors GROUP BY nodeid ORDER BY 2 HISTORY 7 day ONLY",
        )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT temp ORDER BY temp HISTORY 3 h SAMPLE PERIOD 10 s", "an endless stream has no last row"),
        ("SELECT temp ORDER BY AVG(temp) HISTORY 3 h ONLY", "an aggregate does not order single readings"),
        ("SELECT AVG(temp) ORDER BY light HISTORY 3 h ONLY", "'light' has one value for each mote"),
        ("SELECT temp ORDER BY epoch HISTORY 3 h ONLY", "no epoch of yours"),
        ("SELECT temp LIMIT 3 HISTORY 3 h ONLY", "LIMIT without ORDER BY"),
    ],
)
def test_orders_that_make_no_sense_are_refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        plan_of(sql)


def test_explain_says_what_is_ordered() -> None:
    text = explain_past(plan_of("SELECT temp FROM sensors ORDER BY temp DESC LIMIT 3 HISTORY 7 day ONLY"))[
        "text"
    ]
    assert "  orders all rows by temp DESC, and keeps the first 3" in text
