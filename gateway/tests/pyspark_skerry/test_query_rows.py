"""A user's query: the rows and columns of its feed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from gateway.tests.pasts import plain_records, plan_of
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, ask, queue_rows
from gateway.tests.published import (
    AVERAGE,
    PLAIN,
    Written,
    plain,
    rows_of,
    whole,
)
from pyspark_skerry.options import reading_of
from pyspark_skerry.reading import LostError
from skerry.planner.model.plans import Feed
from skerry.service.queries import UserQuery
from skerry.storage.log.record import Kind
from skerry.storage.state import DataError

QUERIES = {
    "1": ("SELECT nodeid, temp * 2 AS twice, light FROM sensors WHERE temp > 20 SAMPLE PERIOD 10 s", PLAIN),
    "2": ("SELECT AVG(temp) AS mean, COUNT(*) AS rows FROM sensors SAMPLE PERIOD 30 s", AVERAGE),
    "3": ("SELECT AVG(temp, 5 min) FROM sensors SAMPLE PERIOD 5 s", PLAIN),
    "4": ("SELECT nodeid, temp FROM sensors HISTORY 1 day SAMPLE PERIOD 5 s", PLAIN),
}


@pytest.fixture
def queried(growing: Written) -> Written:
    """Four users ask: of a hundred rows the first twenty were there before."""
    growing.streams += [AVERAGE]
    queries = []
    for name, (sql, stream) in QUERIES.items():
        plan = plan_of(sql)
        feed = Feed("ada", stream.query, plan.period_ms, stream.mote_query.period_ms, 0)
        query = UserQuery(name, "ada", sql, plan, 0.0, 20, feeds={stream.number: feed})
        queries.append(query)
    growing.remember(queries)
    revised = plain_records(AVERAGE, range(6), [0], seed=9)
    revised["revision"], revised["kind"] = 1, Kind.REVISED
    averages = plain_records(AVERAGE, range(10), [0], seed=4)
    averages["kind"], averages["motes"] = Kind.TOLD, 2
    rows = np.concatenate([plain_records(PLAIN, range(42), [1, 2]), averages, revised])
    for first in range(0, 100, 20):
        growing.append(rows[first : first + 20])
    return growing


def test_a_query_has_the_rows_and_columns_of_its_user(queried: Written, tmp_path: Path) -> None:
    whole(queried, tmp_path, "sensors")
    files = f"{tmp_path}/copy/history"
    expected = duckdb.sql(f"""
        SELECT row, nodeid, 2 * temp AS twice, light, time FROM '{files}/sensors/*.parquet'
        WHERE row >= 20 AND temp > 20 AND network_ms % 10000 = 0 ORDER BY row
    """)
    reading = reading_of({"data": str(queried.data), "query": "1"}, None)
    assert reading.schema().names == [
        "row", "root", "session", "stream", "epoch", "time", "arrival", "nodeid", "twice", "light",
    ]  # fmt: skip
    assert reading.schema().field("twice").metadata == {b"unit": b"degC", b"digits": b"2"}
    got = rows_of(queried, expected.columns, query="1")
    assert len(got) > 5
    assert plain(got) == plain(expected.fetchall())
    expected = duckdb.sql(f"""
        SELECT row, "AVG(temp)" AS mean, "COUNT(*)" AS rows, motes, revision
        FROM '{files}/stream-3/*.parquet' WHERE revision = 0 ORDER BY row
    """)
    got = rows_of(queried, expected.columns, query="2")
    assert len(got) == 10, "it does not ask for revisions"
    assert plain(got) == plain(expected.fetchall())
    assert rows_of(queried, ["row"], query="1", startRow="60", motes="1") == [
        (row,) for row, mote in rows_of(queried, ["row", "nodeid"], query="1") if row >= 60 and mote == 1
    ]


def test_a_query_reaches_back_as_far_as_its_feed(queried: Written) -> None:
    there = [row for (row,) in rows_of(queried, ["row"], query="1")]
    queried.compact()
    queried.keep(log_bytes=10_000)
    first = queried.log.first
    assert 20 < first < 80
    left = [row for row in there if row >= first]
    assert [row for (row,) in rows_of(queried, ["row"], query="1")] == left
    said = f"from row 20 on some are gone.*the first row that is still there is row {left[0]}"
    with pytest.raises(LostError, match=said):
        rows_of(queried, ["row"], query="1", startRow="20")
    assert len(rows_of(queried, ["row"], query="1", startRow="20", failOnDataLoss="false")) == len(left)


@pytest.mark.spark
@pytest.mark.slow
def test_rows_are_those_of_the_feed_while_the_gateway_runs(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    rows, query, program = ask(peer, daemon)
    feed, got = iter(rows), []
    for first in (60, 64):
        queue_rows(peer, query, range(first, first + 4), program)
        got += [next(feed) for _ in range(12)]
        read = rows_of(daemon.data, ["row", "nodeid", "temp"], query=rows.id)
        assert [values for _, *values in sorted(read)] == [[row["nodeid"], row["temp"]] for row in got]
        assert sorted(rows_of(daemon.data, ["row", "nodeid", "temp"], stream="sensors")) == sorted(read)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("3", r"query 3 \(SELECT AVG.*\): its rows are windows, which the gateway makes: read one of its"),
        ("4", r"query 4 \(SELECT .*\): its rows begin in the past"),
        ("5", r"has no query 5: it has 1 \(SELECT nodeid, temp \* 2 AS twice.*\); 2 \(.*\); 3"),
    ],
)
def test_queries_that_cannot_be_read_are_named(queried: Written, query: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        rows_of(queried, ["row"], query=query)
