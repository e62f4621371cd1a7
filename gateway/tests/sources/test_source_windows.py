"""Windows over rows of sources, for many users on one gateway: what DuckDB answers about the same rows."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.killed_windows import check_killed
from gateway.tests.sources.line_server import LineServer, Reader
from skerry.sensors.store import Done
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.sql.errors import QueryError
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block

SOURCES = 4
CREATE = (
    "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM "
    "(gas TEXT, level DECIMAL 'ppm', counted INT, ok BOOLEAN, heat DOUBLE, seen TIMESTAMP, at TIMESTAMP FORMAT 'unix ms' TIME))"
)
TYPES = (
    "id BIGINT, place VARCHAR, gas VARCHAR, level DECIMAL(38, 9), counted BIGINT, ok BOOLEAN, heat DOUBLE, seen TIMESTAMPTZ, "
    "ms BIGINT, number BIGINT"
)
START = 1_000_000_000_000
GASES = ["CO", "CH4", "Cl_2", "", "naïve"]
AGGREGATES = [
    "COUNT(*)", "COUNT(level)", "COUNT(DISTINCT gas)", "COUNT(DISTINCT level)", "COUNT(ok)", "SUM(level)", "SUM(counted)", "SUM(heat)",
    "AVG(level)", "AVG(counted)", "AVG(heat)", "MIN(gas)", "MAX(gas)", "MIN(level)", "MAX(counted)", "MAX(heat)", "MIN(seen)",
    "MAX(counted * 2 - id)", "MIN(place)",
]  # fmt: skip
JOINED = (
    "SELECT a.gas, b.counted FROM detectors AS a, detectors AS b WINDOW = 1 h "
    "WHERE a.id = 1 AND b.id = 2 AND a.gas = b.gas AND b.counted > 0"
)
GROUPS = ["place", "gas", "ok", "counted", "id % 2", "level", "heat"]


@dataclass(frozen=True)
class Drawn:
    """A drawn query. ``length_s`` 0: of all since the start."""

    aggregates: tuple[str, ...]
    groups: tuple[str, ...]
    where: str
    length_s: int
    slide_s: int
    revises: bool

    @property
    def sql(self) -> str:
        length = "start" if not self.length_s else f"{self.length_s} s"
        columns = [
            f"{one[:-1]}, {length}, {self.slide_s} s) AS a{i}" for i, one in enumerate(self.aggregates)
        ]
        columns = ["time", "revision", *(f"{group} AS g{i}" for i, group in enumerate(self.groups)), *columns]
        groups = f" GROUP BY {', '.join(self.groups)}" if self.groups else ""
        # Rows of several sources come in any order: without revisions all have to be waited for.
        wait = "0 s" if self.revises else "6 h"
        columns = columns if self.revises else [columns[0], *columns[2:]]
        return f"SELECT {', '.join(columns)} FROM detectors WHERE {self.where}{groups} WAIT {wait}"


def drawn_queries(chance: random.Random, count: int) -> list[Drawn]:
    return [
        Drawn(
            tuple(chance.sample(AGGREGATES, chance.randrange(1, 4))),
            tuple(chance.sample(GROUPS, chance.choice([0, 1, 1, 2]))),
            chance.choice(["1 = 1", "level > 0", "gas LIKE 'C%'", "id IN (1, 3)", "counted IS NOT NULL AND ok", "heat < 0 OR ok"]),
            *chance.choice([(10, 10), (60, 10), (60, 60), (30, 20), (0, 60), (7, 3), (3600, 600)]),
            chance.random() < 0.5,
        )
        for _ in range(count)
    ]  # fmt: skip


def drawn_rows(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Of one source, in the order of their times, which are whole seconds at times."""
    rows, ms = [], START
    for _ in range(count):
        ms += chance.choice([0, 137, 1000, 1000, 2500, 9999])
        fields = {
            "gas": chance.choice(GASES), "level": chance.choice([0, chance.randrange(-300, 300) / 100, chance.randrange(10**9) / 10**9]),
            "counted": chance.choice([chance.randrange(-5, 6), chance.randrange(-(2**40), 2**40)]), "ok": chance.random() < 0.5,
            "heat": chance.choice([chance.uniform(-2, 2), 1e16, -1e16, 1e-300, 0.0, -0.0, 0.1]),
            "seen": datetime.fromtimestamp(chance.randrange(10**9), UTC).isoformat(),
        }  # fmt: skip
        row = {name: value for name, value in fields.items() if chance.random() < 0.85}
        rows.append({**row, "at": ms})
    return rows


def expected(database: duckdb.DuckDBPyConnection, one: Drawn, last_ms: int) -> list[tuple[Any, ...]]:
    """Of the windows that have a row, all there are."""
    slide, length = one.slide_s * 1000, one.length_s * 1000
    groups = "".join(f", {group} AS g{i}" for i, group in enumerate(one.groups))
    by = "".join(f", g{i}" for i in range(len(one.groups)))
    columns = "".join(f", {_listed(aggregate)}" for aggregate in one.aggregates)
    holds = f"ms < e.ends AND ms >= e.ends - {length}" if length else "ms < e.ends"
    first, last = START // slide * slide, last_ms + max(length, slide)
    found = database.execute(
        f"SELECT e.ends{groups}{columns} FROM range({first}, {last} + 1, {slide}) AS e(ends) "
        f"JOIN detectors ON {holds} WHERE {one.where} GROUP BY e.ends{by}"
    ).fetchall()
    rows = []
    for ends, *values in found:
        keys, aggregated = values[: len(one.groups)], values[len(one.groups) :]
        done = [exact(one, value) for one, value in zip(one.aggregates, aggregated, strict=True)]
        rows.append((ends / 1000, *map(plain, keys), *map(plain, done)))
    return sorted(rows, key=repr)


def latest_sql(one: Drawn, source: str) -> str:
    """Of the newest row of each source; with DuckDB's lists for what is to be exact, where ``source`` is not LATEST."""
    ours = source.startswith("LATEST")
    aggregated = one.aggregates if ours else [_listed(aggregate) for aggregate in one.aggregates]
    columns = [f"{group} AS g{i}" for i, group in enumerate(one.groups)] + [
        f"{aggregate} AS a{i}" for i, aggregate in enumerate(aggregated)
    ]
    groups = f" GROUP BY {', '.join(one.groups if ours else [f'g{i}' for i in range(len(one.groups))])}"
    return f"SELECT {', '.join(columns)} FROM {source} WHERE {one.where}{groups if one.groups else ''}"


def latest_expected(database: duckdb.DuckDBPyConnection, one: Drawn) -> list[tuple[Any, ...]]:
    newest = "SELECT * FROM detectors QUALIFY row_number() OVER (PARTITION BY id ORDER BY ms DESC, number DESC) = 1"
    found = database.execute(latest_sql(one, f"({newest})")).fetchall()
    rows = []
    for values in found:
        keys, aggregated = values[: len(one.groups)], values[len(one.groups) :]
        done = [exact(aggregate, value) for aggregate, value in zip(one.aggregates, aggregated, strict=True)]
        rows.append((*map(plain, keys), *map(plain, done)))
    return sorted(rows, key=repr)


def _listed(aggregate: str) -> str:
    # DuckDB adds doubles in whatever order, and has no exact quotients of decimals.
    argument = aggregate[4:-1]
    return (
        f"list({argument}) FILTER (WHERE {argument} IS NOT NULL)"
        if aggregate.startswith(("SUM", "AVG"))
        else aggregate
    )


def exact(aggregate: str, values: Any) -> Any:
    """SUM and AVG of a list, without rounding between."""
    if not aggregate.startswith(("SUM", "AVG")):
        return values
    if not values:
        return None
    if isinstance(values[0], float):
        total = sum(map(Fraction, values), Fraction(0))
        return float(total / (len(values) if aggregate.startswith("AVG") else 1))
    if aggregate.startswith("SUM"):
        total = sum(values)
        return total if not isinstance(total, int) or abs(total) < 2**63 else None
    return float(sum(map(Fraction, values), Fraction(0)) / len(values))


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, float):
        return value + 0.0
    return float(value) if isinstance(value, Decimal) else value


def fill(database: duckdb.DuckDBPyConnection, number: int, rows: list[dict[str, Any]]) -> None:
    names = ("gas", "level", "counted", "ok", "heat", "seen", "at")
    values = []
    for place, row in enumerate(rows):
        fields = [row.get(name) for name in names]
        fields[1] = None if fields[1] is None else json.dumps(fields[1])
        values.append([number, f"gate {number % 3}", *fields, place])
    database.executemany(f"INSERT INTO detectors VALUES ({', '.join('?' * 10)})", values)


def new_database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    made.execute(f"CREATE TABLE detectors ({TYPES})")
    return made


def rows_of(gateway: Gateway, query: UserQuery, most: int = 10**9) -> list[tuple[Any, ...]]:
    reader, found, more = gateway.delivery.reader(query, None), list[tuple[Any, ...]](), True
    while more and len(found) < most:
        portion = reader.read()
        found += [tuple(map(plain, row.values())) for part in portion.deliveries for _, row in part.values()]
        more = portion.more
    return found


def last_of(one: Drawn, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Of each window and group what it came to, without the number of its revision."""
    found: dict[tuple[Any, ...], tuple[int, tuple[Any, ...]]] = {}
    for time, revision, *rest in rows:
        key = (time, *rest[: len(one.groups)])
        assert key not in found or revision > found[key][0]
        found[key] = revision, (time, *rest)
    return [row for _, row in found.values()]


def test_drawn_windows_give_what_duckdb_answers(peer: RootPeer, tmp_path: Path, drawn_seed: int) -> None:
    """Of replays that end, whose rows come in whatever order: once they have ended all windows have come."""
    chance, database = random.Random(drawn_seed), new_database()
    (tmp_path / "streams").mkdir()
    with opened(peer, tmp_path) as gateway:
        gateway.queries.ask(CREATE, "ada")
        for number in range(1, SOURCES + 1):
            rows = drawn_rows(chance, 150)
            fill(database, number, rows)
            replayed(tmp_path / "streams" / f"{number}.parquet", rows)
            address = f"replay:{number}.parquet?speed=max&time=at"
            gateway.queries.ask(
                f"INSERT INTO detectors VALUES ({number}, 'gate {number % 3}', '{address}')", "ada"
            )
        asked = drawn_queries(chance, 60)
        queries = [gateway.queries.ask(one.sql, "ada") for one in asked]
        assert (
            "not all sources of a and b have brought rows for long enough"
            in gateway.queries.explain(JOINED)["text"]
        )
        newest = drawn_queries(chance, 15)
        latest = [gateway.queries.ask(latest_sql(one, "LATEST detectors"), "ada") for one in newest]
        once = gateway.queries.ask("SELECT COUNT(*) FROM LATEST detectors ONCE WAIT 1 h", "ada")
        gateway.sources.start()
        assert all(isinstance(query, UserQuery) for query in queries)
        wait_for(lambda: all(query.finished for query in gateway.queries.all()))
        gateway.delivery.deliver()
        [(last_ms,)] = database.execute("SELECT max(ms) FROM detectors").fetchall()
        for place, (one, query) in enumerate(zip(asked, queries, strict=True)):
            assert isinstance(query, UserQuery)
            found = rows_of(gateway, query)
            wanted = expected(database, one, last_ms)
            assert sorted(last_of(one, found) if one.revises else found, key=repr) == wanted, one.sql
            if place % 6 == 0:
                # Who is behind memory reads the log again.
                again = gateway.delivery.engine.replay(query.id, block_of(gateway), -1)
                assert [tuple(map(plain, row.values())) for _, row in again] == found
        for one, query in zip(newest, latest, strict=True):
            assert isinstance(query, UserQuery)
            wanted, found = latest_expected(database, one), sorted(last_answer(gateway, query), key=repr)
            # That there is nothing any more is no row.
            assert found == wanted or not wanted, query.sql
        kept = tmp_path / "kept"
        kept.mkdir()
        everyone = [query for query in (*queries, *latest, once) if isinstance(query, UserQuery)]
        check_killed(gateway, everyone, kept, chance, 4)
        gateway.history.compact()
        past = gateway.queries.ask("SELECT COUNT(*) FROM detectors HISTORY 50 year ONLY", "ada")
        assert isinstance(past, UserQuery)
        assert rows_of(gateway, past) == [(SOURCES * 150,)]
        check_statistics(gateway, database)
        assert isinstance(once, UserQuery)
        assert rows_of(gateway, once) == [(SOURCES,)]


def check_statistics(gateway: Gateway, database: duckdb.DuckDBPyConnection) -> None:
    """What is known of the sources stands in the catalog, and planners of joins go by it."""
    [stream] = gateway.sources.streams()
    [bounds] = database.execute("SELECT min(counted), max(counted) FROM detectors").fetchall()
    assert (stream["rows"], stream["errors"], stream["ranges"]["reading.counted"]) == (
        SOURCES * 150,
        0,
        bounds,
    )
    columns, [[least, greatest, width]] = gateway.inventory.select(
        "SELECT least, greatest, bytes FROM source_fields WHERE sensors = 'detectors' AND field = 'reading.counted'"
    )
    assert ((least, greatest), columns[2]) == (bounds, "bytes")
    assert 8 <= width < 10, "an INT has eight bytes, and each eighth one that says which are NULL"
    of_sources = gateway.inventory.select(
        "SELECT rows, errors, rate > 0 FROM sources WHERE sensors = 'detectors'"
    )
    assert of_sources[1] == [[150, 0, 1]] * SOURCES
    described = gateway.queries.ask("DESCRIBE detectors", "ada")
    assert isinstance(described, Done)
    assert ("reading.counted", "INT", "", "", *bounds) in described.rows
    shown = gateway.queries.ask("SHOW SENSORS", "ada")
    assert isinstance(shown, Done)
    assert shown.rows[0][4] == SOURCES * 150
    counts = dict(
        database.execute("SELECT id, 149000 / (max(ms) - min(ms)) FROM detectors GROUP BY id").fetchall()
    )
    keeps = gateway.queries.explain(JOINED)["text"].splitlines()[-1]
    # An hour, and ten minutes of LATENESS; of b conditions leave rows out.
    assert keeps.startswith(
        f"windows keep at most about {counts[1] * 4200:,.0f} rows of a and {counts[2] * 4200:,.0f} rows of b, "
    )
    with pytest.raises(QueryError) as refused:
        gateway.queries.ask(JOINED.replace("1 h", "36500 day"), "ada")
    assert "more than the limit of 4,295 MB, of a alone " in refused.value.message
    assert re.match(r"WINDOW = \d+ day would fit, or conditions that fewer rows pass", refused.value.hint)


def last_answer(gateway: Gateway, query: UserQuery) -> list[tuple[Any, ...]]:
    """The rows that came with the last record that brought any; the same come again from the log."""
    found = gateway.delivery.engine.replay_arrow(query.id, block_of(gateway), -1)
    rows = [(number, tuple(map(plain, row.values()))) for part in found
            for number, row in zip(part.numbers.tolist(), part.columns.to_pylist(), strict=True)]  # fmt: skip
    assert rows_of(gateway, query) == [row for _, row in rows]
    return [row for number, row in rows if number == rows[-1][0]]


@pytest.mark.spark
@pytest.mark.slow
def test_windows_of_spark_s_executors_go_on_after_kill_9(daemon: Daemon, drawn_seed: int) -> None:
    """Of one source, whose rows are in the order of their times; some users come in the middle of them."""
    chance, server = random.Random(drawn_seed), LineServer()
    database = new_database()
    rows = drawn_rows(chance, 300)
    fill(database, 1, rows)
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    ada.execute(f"INSERT INTO detectors VALUES (1, 'gate 1', '{server.address}')")
    users: list[tuple[Drawn, int | None, Reader]] = []

    def come(since: int | None) -> None:
        for drawn in drawn_queries(chance, 12):
            # Landmarks would have rows up to the last one, which is far off.
            length_s = drawn.length_s or drawn.slide_s
            one = replace(drawn, revises=True, length_s=length_s)
            users.append((one, since, Reader(ada.query(one.sql, linger_s=None))))

    everything = Reader(ada.query("SELECT at FROM detectors", linger_s=None))
    newest = Reader(
        ada.query("SELECT gas, MAX(at) FROM LATEST detectors WHERE id < 9 GROUP BY gas", linger_s=None)
    )
    come(None)
    server.send(*rows[:150])
    wait_for(lambda: len(everything.got) == 150)
    come(rows[149]["at"])
    server.send(*rows[150:200])
    wait_for(lambda: len(everything.got) == 200)
    daemon.kill()
    wait_for(lambda: server.listeners == 0)
    daemon.start()
    last = rows[-1]["at"] + 7_200_000
    server.send(*rows[200:], {"at": last, "gas": "none of the others'"})
    wait_for(lambda: len(everything.got) == 301)
    for one, since, reader in users:
        length, all_of_them = one.length_s * 1000, expected(database, one, rows[-1]["at"])
        # Who comes later has the windows that begin behind what there was before.
        wanted = [row for row in all_of_them if since is None or row[0] * 1000 - length > since]
        wait_for(lambda reader=reader, wanted=wanted: len(reader.got) >= len(wanted))
        found = [tuple(map(plain, row.values())) for row in reader.got]
        assert sorted(last_of(one, found), key=repr) == wanted, one.sql
    wait_for(lambda: newest.got and newest.got[-1]["gas"] == "none of the others'")
    assert newest.got[-1]["MAX(at)"].timestamp() * 1000 == last
    once = list(ada.query("SELECT COUNT(*) AS n FROM LATEST detectors WHERE at IS NOT NULL ONCE"))
    assert once == [{"n": 1}], "it is answered from what the log has, as the source sends nothing"
    for reader in (everything, newest, *(reader for _, _, reader in users)):
        reader.rows.stop()
    server.close()


def block_of(gateway: Gateway) -> Block:
    return Block(*stream_log.read_there(gateway.log.path, 0, gateway.log.rows))


def replayed(path: Path, rows: list[dict[str, Any]]) -> None:
    """A file for a replay."""
    names = ("gas", "level", "counted", "ok", "heat", "seen", "at")
    columns = {name: [row.get(name) for row in rows] for name in names}
    columns["level"] = [None if value is None else Decimal(json.dumps(value)) for value in columns["level"]]
    columns["at"] = [
        datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=value) for value in columns["at"]
    ]
    pq.write_table(pa.table(columns), path)
