"""Joins over HISTORY … ONLY: what DuckDB answers about the same rows, of files, of the log, and of both."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import draw_any
from gateway.tests.joins.test_joins_of_log import batch_of, drawn_rows, table
from gateway.tests.joins.users_joins import Aggregated
from skerry.sensors.planning import planned
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.source_answer import SourceAnswer
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog

PAST = "HISTORY 50 year ONLY"
SEGMENT_ROWS = 8
ROWS, JOINS = 150, 40


def test_drawn_joins_of_files_and_of_the_log_answer_what_duckdb_does(tmp_path: Path, drawn_seed: int) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    log, history, engine = (
        StreamLog(tmp_path, SEGMENT_ROWS),
        History(tmp_path),
        PastEngine(tmp_path / "engine"),
    )
    rows, at, first = drawn_rows(chance, ROWS), 0, 0
    while at < len(rows):
        size = chance.choice([1, 2, 3, 7])
        log.append_sources([batch_of(rows[at : at + size])])
        if at < len(rows) // 3 <= at + size or at < 2 * len(rows) // 3 <= at + size:
            history.compact(log.path, log.rows, [])
            first = first or log.rows
        at += size
    streams, own = users_joins.logged(tmp_path, 0)
    log.drop_before(first)
    assert log.first > 0, "the first third is in files alone"

    def answer(sql: str) -> list[dict[str, object]]:
        plan = planned(f"{sql} {PAST}", {"drawn": table()})
        assert plan is not None
        asked = SourceAnswer(plan, history, log.path, engine, 0, log.rows)
        position, more, found = -1, True, list[dict[str, object]]()
        while more:
            deliveries, position, more = asked.after(position, Waiting())
            found += [row for part in deliveries for row in part.columns.to_pylist()]
        return found

    total = 0
    try:
        for place in range(JOINS):
            join, aggregated = draw_any(drawn_seed + place).join, None
            if place % 4 == 0:
                join, aggregated = Aggregated.draw(chance, join)
            right = users_joins.answers(join, streams, own, connection, ended=True)
            if aggregated is not None:
                right = aggregated.expected(join, right, connection)
            sql = users_joins.sql(join, aggregated)
            assert Counter(map(users_joins.given, answer(sql))) == right, f"seed {drawn_seed + place}: {sql}"
            total += right.total()
        _check_ordered(answer)
    finally:
        engine.stop()
        log.close()
    assert total > 300


def _check_ordered(answer) -> None:  # type: ignore[no-untyped-def]
    """Answers that are there may be grouped without windows, ordered and cut off."""
    pairs = "FROM drawn a LEFT JOIN drawn b ON b.kind = 1 AND a.item = b.item WINDOW 20 s WHERE a.kind = 0 LATENESS 1 h"
    whole = answer(f"SELECT a.n AS one, b.n AS other {pairs}")
    by_row = Counter(row["one"] for row in whole if row["other"] is not None)
    counted = answer(f"SELECT a.n AS one, COUNT(b.n) AS met {pairs} GROUP BY a.n")
    assert {row["one"]: row["met"] for row in counted} == {row["one"]: by_row[row["one"]] for row in whole}
    ordered = answer(f"SELECT a.n AS one, b.n AS other {pairs} ORDER BY a.n DESC LIMIT 5")
    assert [row["one"] for row in ordered] == sorted((row["one"] for row in whole), reverse=True)[:5]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT a.n FROM drawn a, drawn b WINDOW 1 s WHERE a.item = b.item HISTORY 1 day", "does not go on into the present"),
        ("SELECT s.nodeid FROM sensors s, drawn b WINDOW 1 s WHERE s.nodeid = b.item HISTORY 1 day ONLY",
         "the past of motes joins no streams"),
        ("CREATE STREAM x AS SELECT a.n FROM drawn a, drawn b WINDOW 1 s WHERE a.item = b.item HISTORY 1 day ONLY",
         "HISTORY is for rows that have an end"),
    ],
)  # fmt: skip
def test_what_has_no_past_is_told(sql: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        planned(sql, {"drawn": table()})
