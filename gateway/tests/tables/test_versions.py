"""Rows meet each table as it was when they came: whenever they are read, by whomever, also after a restart."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.tests.pasts import plain_records
from skerry.execution.residual import Rows
from skerry.execution.stream_batches import stream_batch
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.streams.stream import Stream
from skerry.tables import journal as journal_module
from skerry.tables import store as store_module
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.journal import TableJournal
from skerry.tables.store import TableStore
from skerry.tables.versions import DIRECTORY, TableVersions

SQL = "SELECT s.nodeid, p.name, p.height FROM sensors s, places p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s"
MOTES, EPOCHS = [1, 2, 3, 4], 50
ROWS = len(MOTES) * EPOCHS


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


class Site:
    """A log whose rows come when they are told to, and a table of places."""

    def __init__(self, data: Path) -> None:
        self.data, self.rows = data, 0
        self.path = data / "tables" / "places.parquet"
        self.path.parent.mkdir(parents=True)

    def put(self, places: pa.Table) -> None:
        new = self.path.with_suffix(".new")
        pq.write_table(places, new)
        new.rename(self.path)

    def start(self) -> TableJournal:
        """A gateway's, which starts (again)."""
        self.store = TableStore(self.path.parent)
        return TableJournal(self.data, self.store, lambda: self.rows, threading.RLock())

    @property
    def plan(self) -> QueryPlan:
        plan = plan_query(SQL, tables=self.store.schemas())
        assert isinstance(plan, QueryPlan)
        return plan


def places(draw: np.random.Generator) -> pa.Table:
    count = int(draw.integers(1, 8))
    return pa.table(
        {
            "node": draw.integers(1, 5, count),
            "name": [f"room {n}" for n in draw.integers(0, 9, count)],
            "height": pa.array(draw.integers(0, 99, count) / 4, mask=draw.random(count) < 0.2),
        }
    )


def joined(
    plan: QueryPlan, versions: TableVersions, store: TableStore, first: int, end: int
) -> list[tuple[object, ...]]:
    """Rows ``first`` .. ``end`` - 1 of the log, joined."""
    stream = Stream(1, 1, 1, merge([plan]))
    rows = Rows(
        stream_batch(plain_records(stream, range(EPOCHS), MOTES)[first:end], stream), stream.mote_query
    )
    rows.numbers = np.arange(first, end)
    left, batch = Joiner(plan, store.get, None, versions).join(rows, np.arange(end - first))
    return [(first + int(at), *row.values()) for at, row in zip(left, batch.to_pylist(), strict=True)]


def ordered(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("seed", range(5))
def test_rows_meet_the_table_of_their_time(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    draw, site = np.random.default_rng(seed), Site(tmp_path)
    site.put(places(draw))
    journal = site.start()
    plan = site.plan
    journal.want(["places"])
    held, at_once = [(0, pq.read_table(site.path))], []
    while site.rows < ROWS:
        came = min(int(draw.integers(1, 25)), ROWS - site.rows)
        site.rows += came
        # Read as they come, by whom looks at the files alone.
        at_once += joined(plan, TableVersions(tmp_path / DIRECTORY), site.store, site.rows - came, site.rows)
        match draw.integers(0, 4):
            case 0:
                site.put(places(draw))
                journal.look()
                held.append((site.rows, pq.read_table(site.path)))
            case 1:
                # The same, written again.
                site.put(held[-1][1])
                journal.look()
            case 2:
                journal = site.start()
                journal.want(["places"])
    expected: list[tuple[object, ...]] = []
    stream = pa.table(
        {
            "row": range(ROWS),
            "nodeid": plain_records(Stream(1, 1, 1, merge([plan])), range(EPOCHS), MOTES)["node"].astype(int),
        }
    )
    for (begin, table), (end, _) in zip(held, [*held[1:], (ROWS, None)], strict=True):
        with duckdb.connect() as connection:
            connection.register("s", stream)
            connection.register("p", table)
            expected += connection.execute(
                f"SELECT row, nodeid, name, height FROM s JOIN p ON p.node = s.nodeid WHERE row >= {begin} AND row < {end}"
            ).fetchall()
    assert ordered(at_once) == ordered(expected)
    # All of them at once, when the table is long another one; and from a row in the midst.
    site.put(places(draw))
    later = site.start()
    assert ordered(joined(plan, later, site.store, 0, ROWS)) == ordered(expected)
    middle = int(draw.integers(1, ROWS - 1))
    assert joined(plan, later, site.store, middle, ROWS) == [
        row for row in joined(plan, later, site.store, 0, ROWS) if int(str(row[0])) >= middle
    ]
    assert len(list((tmp_path / DIRECTORY).glob("*.arrow"))) == len({id(table) for _, table in held})


def test_rows_of_a_time_without_the_table_meet_the_one_that_comes_back(tmp_path: Path) -> None:
    site = Site(tmp_path)
    first = pa.table({"node": [1, 2], "name": ["lab", "hall"], "height": [1.5, 2.5]})
    site.put(first)
    journal = site.start()
    plan = site.plan
    journal.want(["places"])
    site.rows = 4
    site.path.unlink()
    journal.look()
    site.rows = 8
    with pytest.raises(TableError, match="table places is not there"):
        joined(plan, journal, site.store, 0, 8)
    assert [row[:3] for row in joined(plan, journal, site.store, 0, 4)] == [(0, 1, "lab"), (1, 2, "hall")]
    # Without a column that the query reads it is as good as not there.
    site.put(first.drop_columns(["height"]))
    journal.look()
    site.rows = 12
    with pytest.raises(TableError, match="table places has changed: column height is gone"):
        joined(plan, journal, site.store, 4, 12)
    site.put(first.set_column(1, "name", pa.array(["den", "roof"])))
    journal.look()
    assert [row[:3] for row in joined(plan, journal, site.store, 0, 12)] == [
        (0, 1, "lab"), (1, 2, "hall"), (4, 1, "den"), (5, 2, "roof"), (8, 1, "den"), (9, 2, "roof"),
    ]  # fmt: skip


def test_what_no_row_meets_any_more_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, site = np.random.default_rng(1), Site(tmp_path)
    site.put(places(draw))
    journal = site.start()
    plan = site.plan
    journal.want(["places"])
    for _ in range(5):
        site.rows += 10
        site.put(places(draw))
        journal.look()
    before = joined(plan, journal, site.store, 20, 60)
    site.rows = 60
    journal.drop_before(25)
    for versions in (journal, TableVersions(tmp_path / DIRECTORY), site.start()):
        assert joined(plan, versions, site.store, 20, 60) == before
    assert len(list((tmp_path / DIRECTORY).glob("*.arrow"))) == 4
    # Where all of them take too much, rows meet what took the place of theirs.
    monkeypatch.setattr(journal_module, "REPLACED_BYTES", 1)
    journal.drop_before(25)
    assert len(list((tmp_path / DIRECTORY).glob("*.arrow"))) == 1
    other = TableVersions(tmp_path / DIRECTORY)
    assert joined(plan, other, site.store, 20, 50) == [
        row for row in joined(plan, other, site.store, 20, 60) if int(str(row[0])) < 50
    ]
