"""Rows of the past joined with tables and with what the stream was before them, against DuckDB over the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.tests.pasts import past_engine, plain_records, rows_behind, shuffled, stream_of
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.storage.history.answer import Answer
from skerry.storage.history.past_table import earlier_reader
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.tables import store as store_module
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.journal import TableJournal
from skerry.tables.store import TableStore

#: Rows before this one meet the first reading of the places, those before the next the second.
CHANGES = (700, 1500)
FLOORS = pa.table(
    {"name": ["hall", "attic", "cellar"], "floor": [0, 2, -1], "note": ["a%b", None, "under_the house"]}
)


def places(draw: np.random.Generator) -> pa.Table:
    count = 14
    return pa.table(
        {
            "node": pa.array(draw.integers(1, 5, count), mask=draw.random(count) < 0.1),
            "name": pa.array(
                draw.choice(["hall", "attic", "cellar", "Über"], count), mask=draw.random(count) < 0.2
            ),
            "height": pa.array(draw.integers(0, 99, count) / 4, mask=draw.random(count) < 0.2),
        }
    )


class Site:
    """Rows of two sessions, and tables of which one has changed twice."""

    def __init__(self, data: Path) -> None:
        self.streams = [
            stream_of(1, "SELECT temp, light FROM sensors SAMPLE PERIOD 5 s"),
            stream_of(2, "SELECT temp, light FROM sensors SAMPLE PERIOD 2 s", session=2),
        ]
        parts = [
            plain_records(stream, range(20, 260), [1, 2, 3, 4], seed=stream.number) for stream in self.streams
        ]
        # Of the second session as if it had begun while the first one went on.
        parts[1]["sample"] += int(parts[0]["sample"][0] - parts[1]["sample"][0]) + 300_000_000
        self.log, self.history = StreamLog(data), History(data)
        self.log.append(shuffled(parts))
        self.history.compact(self.log.path, self.log.rows - 300, self.streams)
        self.store, self.rows = TableStore(data / "tables"), 0
        self.journal = TableJournal(data, self.store, lambda: self.rows, nullcontext())
        draw = np.random.default_rng(11)
        pq.write_table(FLOORS, data / "tables" / "floors.parquet")
        self.journal.want(["floors"])
        self.readings = []
        for row in (0, *CHANGES):
            self.rows = row
            self.readings.append(places(draw))
            pq.write_table(self.readings[-1], data / "tables" / "new")
            (data / "tables" / "new").rename(data / "tables" / "places.parquet")
            self.journal.look() if row else self.journal.want(["places"])
        self.database = duckdb.connect()
        whole = Reader(
            self.history,
            self.log.path,
            self.streams,
            plan_of("SELECT temp, light FROM sensors ONCE").attributes,
            0,
        )
        self.database.register("sensors", table_of(whole, self.log.rows))
        self.database.register("floors", FLOORS)
        for i, table in enumerate(self.readings):
            self.database.register(f"places{i}", table)
        bounds = [0, *CHANGES, self.log.rows]
        parts_of = " UNION ALL ".join(
            f"SELECT *, {bounds[i]} AS since, {bounds[i + 1]} AS until FROM places{i}"
            for i in range(len(self.readings))
        )
        self.database.execute(f"CREATE VIEW places AS {parts_of}")

    def plan(self, sql: str) -> QueryPlan:
        plan = plan_query(sql, tables=self.store.schemas())
        assert isinstance(plan, QueryPlan)
        return plan

    def answered(self, sql: str, speed: float = 1.0) -> list[tuple[object, ...]]:
        """All pieces, each row with its number."""
        plan = self.plan(sql)
        joiner = Joiner(
            plan, self.store.get, {"h": None} if "HISTORY 20 s AS h" in sql else None, self.journal
        )  # type: ignore[dict-item]

        def reader(attributes: frozenset[int], since_us: int) -> Reader:
            return Reader(self.history, self.log.path, self.streams, attributes, since_us)

        def earlier(utc: float, span_ms: int) -> float:
            return utc - span_ms / 1000 / speed

        answer = Answer(
            plan,
            reader(plan.attributes, 0),
            self.log.rows,
            past_engine(),
            0,
            joiner,
            lambda table: earlier_reader(plan, table, reader, earlier, 0),
            speed=speed,
        )
        found, position, more = list[tuple[object, ...]](), -1, True
        while more:
            rows, position, more = rows_behind(answer, position)
            assert all(number <= position for number, _ in rows)
            found += [(number, *values.values()) for number, values in rows]
        return found


def plan_of(sql: str) -> QueryPlan:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    return plan


def table_of(reader: Reader, end: int) -> pa.Table:
    """Rows as a reader has them, their values in SI."""
    samples = reader.read(0, end)
    columns: dict[str, Any] = {
        "row": samples.numbers,
        "session": samples.sessions,
        "net": samples.rows.sample_ms,
        "utc": samples.rows.utc_ms,
    }
    for name, digits in (("nodeid", 0), ("temp", 2), ("light", 0)):
        values, known = samples.rows.column(name)
        columns[name] = pa.array(values / 10**digits if digits else values, mask=~known)
    return pa.table(columns)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "LOOK_S", -1.0)
        yield Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


MET = "JOIN places p ON p.node = s.nodeid AND s.row >= p.since AND s.row < p.until"
#: What is asked, and the same of DuckDB.
QUESTIONS = {
    "SELECT s.temp, p.name, p.height * 2 AS high FROM sensors s, places p WHERE p.node = s.nodeid AND s.temp > 20":
        f"SELECT row, temp, name, height * 2 FROM sensors s {MET} WHERE temp > 20",
    "SELECT p.name, s.light, s.nodeid FROM sensors s, places p WHERE p.node = s.nodeid AND p.height > 5 AND p.height < s.light - 4000 "
    "AND (p.name LIKE '%l' OR p.name > 'hall' OR p.name IS NULL)":
        f"SELECT row, name, light, nodeid FROM sensors s {MET} WHERE height > 5 AND height < light - 4000 "
        "AND (name LIKE '%l' OR name > 'hall' OR name IS NULL)",
    "SELECT s.nodeid, f.floor, f.note FROM sensors s, places p, floors f "
    "WHERE p.node = s.nodeid AND f.name = p.name AND f.floor < s.temp - 20":
        f"SELECT row, nodeid, floor, note FROM sensors s {MET} JOIN floors f ON f.name = p.name WHERE floor < temp - 20",
    "SELECT s.temp, f.floor FROM sensors s, floors f WHERE f.name = 'attic' AND f.floor = s.nodeid":
        "SELECT row, temp, floor FROM sensors s JOIN floors f ON f.name = 'attic' AND f.floor = s.nodeid",
}  # fmt: skip


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_each_row_meets_the_reading_of_its_number(site: Site, number: int) -> None:
    sql, same = list(QUESTIONS.items())[number]
    got = site.answered(f"{sql} HISTORY 7 day ONLY")
    wanted = site.database.sql(same).fetchall()
    assert [row[0] for row in got] == sorted(int(row[0]) for row in wanted)
    assert ordered(got) == ordered(wanted)
    assert len(got) > 200


@pytest.mark.parametrize(("piece", "least"), [(400, 0), (2, 8900)])
def test_pieces_keep_the_pairs_of_a_row_together(
    site: Site, piece: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.storage.history.answer.PIECE_ROWS", piece)
    sql = "SELECT s.light, p.name FROM sensors s, places p WHERE p.node = s.nodeid AND s.light > {} HISTORY 7 day ONLY"
    got = site.answered(sql.format(least))
    wanted = site.database.sql(
        f"SELECT row, light, name FROM sensors s {MET} WHERE light > {least}"
    ).fetchall()
    assert [row[0] for row in got] == sorted(int(row[0]) for row in wanted)
    assert ordered(got) == ordered(wanted)
    assert len(got) > 10 * piece or piece > 2


def test_of_longer_epochs_the_first_readings_are_joined(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skerry.storage.history.answer.PIECE_ROWS", 50)
    got = site.answered(
        "SELECT s.temp, p.name FROM sensors s, places p WHERE p.node = s.nodeid HISTORY 7 day ONLY SAMPLE PERIOD 1 min"
    )
    first = firsts("net // 60000", "net, row")
    wanted = site.database.sql(
        f"WITH first AS ({first}) SELECT row, temp, name FROM first s {MET}"
    ).fetchall()
    assert ordered(got) == ordered(wanted)
    assert [row[0] for row in got] == sorted(int(row[0]) for row in wanted)
    assert len(got) > 200


def test_pairs_come_in_the_order_asked_for(site: Site) -> None:
    got = site.answered(
        "SELECT s.temp, p.height, p.name FROM sensors s, places p WHERE p.node = s.nodeid "
        "ORDER BY p.height DESC, s.light LIMIT 300 HISTORY 7 day ONLY"
    )
    wanted = site.database.sql(
        f"SELECT temp, height, name FROM sensors s {MET} ORDER BY height DESC NULLS LAST, light NULLS LAST, row LIMIT 300"
    ).fetchall()
    assert [row[1:3] for row in got] == [row[:2] for row in wanted]
    assert {row[0] for row in got} == {site.log.rows - 1}


BEFORE = (
    "h.nodeid = s.nodeid AND h.row < s.row AND CASE WHEN h.session = s.session THEN s.net - h.net BETWEEN 1 AND 20000 "
    "ELSE (s.utc - h.utc) * {speed} BETWEEN 1 AND 20000 END"
)
PAST_QUESTIONS = {
    "SELECT s.nodeid, s.temp, h.temp AS was, h.light * 2 AS lit": "SELECT s.row, s.nodeid, s.temp, h.temp, h.light * 2",
    "SELECT s.temp, h.time": "SELECT s.row, s.temp, make_timestamptz(h.utc * 1000)",
    "SELECT s.temp - h.temp AS rise": "SELECT s.row, round(s.temp - h.temp, 2)",
}  # fmt: skip


@pytest.mark.parametrize("speed", [1.0, 4.0, 0.5])
def test_rows_meet_what_the_stream_was_before_them(site: Site, speed: float) -> None:
    for (sql, same), rest in zip(
        PAST_QUESTIONS.items(),
        ("", "AND h.temp < s.temp AND s.light IS NOT NULL", "AND h.light > 4000"),
        strict=True,
    ):
        got = site.answered(
            f"{sql} FROM sensors AS s, sensors HISTORY 20 s AS h WHERE h.nodeid = s.nodeid {rest} HISTORY 7 day ONLY SAMPLE PERIOD 1 s",
            speed,
        )
        wanted = site.database.sql(
            f"{same} FROM sensors s JOIN sensors h ON {BEFORE.format(speed=speed)} {rest}"
        ).fetchall()
        assert [row[0] for row in got] == sorted(int(row[0]) for row in wanted)
        assert ordered(got) == ordered(wanted)
        assert len(got) > 500
    assert site.database.sql(
        f"SELECT count(*) FROM sensors s JOIN sensors h ON {BEFORE.format(speed=speed)} WHERE h.session <> s.session"
    ).fetchall() > [(200,)]


def test_epochs_of_one_session_are_compared_and_the_reading_counts_that_came_first(site: Site) -> None:
    got = site.answered(
        "SELECT s.epoch AS epoch, h.epoch AS before, h.temp FROM sensors AS s, sensors HISTORY 20 s AS h "
        "WHERE h.nodeid = s.nodeid AND h.epoch = s.epoch - 1 HISTORY 7 day ONLY SAMPLE PERIOD 10 s"
    )
    wanted = site.database.sql(
        f"WITH first AS ({firsts('net // 10000', 'net, row')}), came AS ({firsts('net // 10000', 'row')}) "
        f"SELECT s.row, s.net // 10000, h.net // 10000, h.temp FROM first s JOIN came h ON {BEFORE.format(speed=1)} "
        "AND h.session = s.session AND h.net // 10000 = s.net // 10000 - 1"
    ).fetchall()
    assert ordered(got) == ordered(wanted)
    assert len(got) > 200


def test_windows_hold_pairs_of_the_stream_and_its_past(site: Site) -> None:
    got = site.answered(
        "SELECT s.epoch, s.nodeid, COUNT(*, 1 min), SUM(s.light - h.light, 1 min) FROM sensors AS s, sensors HISTORY 20 s AS h "
        "WHERE h.nodeid = s.nodeid GROUP BY s.nodeid HISTORY 7 day ONLY SAMPLE PERIOD 1 s"
    )
    wanted = site.database.sql(
        "SELECT s.net // 60000 * 60 + 59, s.nodeid, count(*), sum(s.light - h.light) FROM sensors s JOIN sensors h "
        f"ON {BEFORE.format(speed=1)} GROUP BY s.session, s.net // 60000, s.nodeid "
        "HAVING (s.net // 60000 + 1) * 60000 + 1000 <= (SELECT max(net) FROM sensors l WHERE l.session = s.session)"
    ).fetchall()
    assert ordered(row[1:] for row in got) == ordered(wanted)
    assert len(got) > 50


def test_a_table_that_is_missing_is_waited_for(site: Site) -> None:
    sql = "SELECT s.temp, f.floor FROM sensors s, floors f WHERE f.floor = s.nodeid HISTORY 7 day ONLY"
    plan = site.plan(sql)
    file = site.store.directory / "floors.parquet"
    whole = file.read_bytes()
    file.unlink()
    with TemporaryJournal(site) as journal:
        answer = Answer(plan, Reader(site.history, site.log.path, site.streams, plan.attributes, 0), site.log.rows, past_engine(), 0,
                        Joiner(plan, site.store.get, None, journal))  # fmt: skip
        with pytest.raises(TableError, match="floors"):
            answer.after(-1)
        file.write_bytes(whole)
        journal.look()
        assert len(answer.after(-1)[0][0].numbers) > 20


class TemporaryJournal:
    """A journal that has seen nothing yet."""

    def __init__(self, site: Site) -> None:
        self._journal = TableJournal(
            site.store.directory.parent / "other", site.store, lambda: 0, nullcontext()
        )

    def __enter__(self) -> TableJournal:
        self._journal.want(["floors"])
        return self._journal

    def __exit__(self, *_: object) -> None:
        self._journal.stop()


def firsts(epoch: str, order: str) -> str:
    return f"SELECT * FROM sensors QUALIFY row_number() OVER (PARTITION BY session, nodeid, {epoch} ORDER BY {order}) = 1"


def ordered(rows: Any) -> list[tuple[str, ...]]:
    """Rows in an order, numbers by their values."""
    return sorted(
        tuple("" if v is None else repr(float(v)) if isinstance(v, int | float) else str(v) for v in row)
        for row in rows
    )
