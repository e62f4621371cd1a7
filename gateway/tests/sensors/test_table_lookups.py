"""Streams, joins of streams and static columns joined with tables: what DuckDB answers about the same rows, also where tables change."""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gateway.tests.opened import opened
from gateway.tests.process import wait_for
from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import rows
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.sql.errors import QueryError

CREATE = (
    "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', counted INT, heat DOUBLE, "
    "ok BOOLEAN, moment TIMESTAMP FORMAT 'unix ms' TIME))"
)
ROOMS = (
    "CREATE SENSORS rooms (name TEXT, floor INT, factor DOUBLE, most DECIMAL, open BOOLEAN, since TIMESTAMP)"
)
PAST = "HISTORY 36500 day ONLY"
START = 1_036_584_000_000
GASES = ["CO", "CH4", "Cl2", "naïve", ""]
PLACES = ["gate A", "gate B", "gate C"]
#: What of a row decides which of a table's belong to it, by how tables are called.
MEETS = {
    "l": ["d.gas = l.gas", "l.number = d.counted", "d.counted % 3 = l.number % 3 AND d.gas <> l.gas",
          "d.level BETWEEN l.most AND l.most + 2", "l.most = d.level", "d.gas = l.gas AND d.level > l.most",
          "l.gas LIKE 'C%' AND l.number > d.counted", "d.moment > l.since AND d.gas = l.gas"],
    "r": ["r.name = d.place", "r.factor * 2 > d.heat", "r.floor = d.id", "r.open = d.ok", "r.most = d.level AND r.floor IS NOT NULL",
          "r.since <= d.moment AND r.name = d.place", "r.factor = d.heat"],
}  # fmt: skip
SHOWN = {
    "l": ["l.label", "l.most", "l.number", "l.since"],
    "r": ["r.floor", "r.factor", "r.most", "r.open", "r.since"],
}
NAMES = {"l": "limits", "r": "rooms"}
AGGREGATES = ["COUNT(*)", "MAX(d.level)", "MIN(l.most)", "SUM(d.counted)", "MAX(l.label)", "COUNT(DISTINCT l.gas)"]  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """``select``: for both languages. ``tables``: what follows the streams, as both understand it."""

    select: str
    tables: str
    where: str
    groups: str = ""

    def sql(self, streams: str) -> str:
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {self.select} FROM {streams}{self.tables}{where}{self.groups}"


def drawn(chance: random.Random, *, first: str = "d", aggregated: bool = False) -> Drawn:
    """A query of one or two tables, joined or LEFT JOINed."""
    called = ["l"] if aggregated else chance.choice([["l"], ["r"], ["l", "r"], ["r", "l"]])
    tables, where = "", []
    for one in called:
        on = chance.choice(MEETS[one]).replace("d.", f"{first}.")
        if chance.random() < 0.4 and not aggregated:
            tables += f" LEFT JOIN {NAMES[one]} {one} ON {on}"
            where += [chance.choice([f"{SHOWN[one][0]} IS NULL", f"{SHOWN[one][1]} > 1"])] * (
                chance.random() < 0.3
            )
        elif chance.random() < 0.5 and "LEFT" not in tables:
            # Behind a LEFT JOIN a comma means another thing to DuckDB.
            tables, where = f"{tables}, {NAMES[one]} {one}", [*where, on]
        else:
            tables += f" JOIN {NAMES[one]} {one} ON {on}"
    if chance.random() < 0.4:
        where.append(chance.choice(["d.level > 0", "d.id < 3", "d.ok", "d.place <> 'gate B'"]).replace("d.", f"{first}."))  # fmt: skip
    if aggregated:
        columns = ["l.gas AS g", *(f"{one} AS a{i}" for i, one in enumerate(chance.sample(AGGREGATES, 3)))]
        return Drawn(", ".join(columns), tables, " AND ".join(where), " GROUP BY l.gas")
    shown = [name for one in called for name in SHOWN[one]]
    own = [f"{first}.id", f"{first}.level", f"{first}.gas", f"{first}.moment"]
    names = chance.sample(own, 2) + chance.sample(shown, min(3, len(shown)))
    select = ", ".join(f"{name} AS c{i}" for i, name in enumerate(names))
    return Drawn(select, tables, " AND ".join(where))


def drawn_rows(chance: random.Random, count: int, since_ms: int) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        fields = {
            "gas": chance.choice(GASES), "level": chance.choice([0.5, 2, chance.randrange(-300, 300) / 100]),
            "counted": chance.randrange(-3, 7), "heat": chance.choice([1.5, 2.0, chance.uniform(-2, 6), -0.0, 0.0]),
            "ok": chance.random() < 0.5,
        }  # fmt: skip
        row = {name: value for name, value in fields.items() if chance.random() < 0.9}
        found.append({**row, "moment": since_ms + 1000 * number})
    return found


def drawn_limits(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {"gas": chance.choice([*GASES, ""]), "number": chance.choice([*range(-3, 7), ""]),
         "most": chance.choice(["0.5", "2.00", "-1.25", ""]), "label": f"l{i}",
         "since": chance.choice(["2002-11-06 12:00:10", "2002-11-06 12:00:30.5", ""])}
        for i in range(chance.randrange(8, 20))
    ]  # fmt: skip


def drawn_rooms(chance: random.Random) -> list[str]:
    values = [
        [["'gate A'", "'gate B'", "NULL"], ["1", "2", "3", "NULL"], ["1.5", "2", "-0.0", "NULL"], ["0.5", "2", "-1.25", "NULL"],
         ["TRUE", "FALSE", "NULL"], ["'2002-11-06 12:00:20'", "NULL"]]
        for _ in range(chance.randrange(4, 9))
    ]  # fmt: skip
    return [f"({', '.join(chance.choice(choices) for choices in row)})" for row in values]


def write_limits(path: Path, limits: list[dict[str, Any]]) -> None:
    """As spreadsheets do, in one piece."""
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(limits[0]))
        writer.writeheader()
        writer.writerows(limits)
    new.replace(path)


class Oracle:
    """DuckDB with the same rows, each in the part of the test in which it came, and tables as they were in that part."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self.database.execute("SET TimeZone = 'UTC'")
        self.database.execute(
            "CREATE TABLE detectors (part INT, id BIGINT, place VARCHAR, gas VARCHAR, level DECIMAL(28, 9), counted BIGINT, heat DOUBLE, "
            "ok BOOLEAN, moment TIMESTAMPTZ)"
        )
        self.database.execute(
            "CREATE TABLE limits (part INT, gas VARCHAR, number BIGINT, most DECIMAL(28, 9), label VARCHAR, since TIMESTAMPTZ)"
        )
        self.database.execute(
            "CREATE TABLE rooms (part INT, name VARCHAR, floor BIGINT, factor DOUBLE, most DECIMAL(28, 9), open BOOLEAN, since TIMESTAMPTZ)"
        )

    def came(self, part: int, number: int, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            names = ("gas", "level", "counted", "heat", "ok")
            values = [row.get(name) for name in names]
            values[1] = None if values[1] is None else Decimal(str(values[1]))
            at = datetime.fromtimestamp(row["moment"] / 1000, UTC)
            self.database.execute(
                "INSERT INTO detectors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [part, number, PLACES[number - 1], *values, at],
            )

    def tables(self, part: int, limits: list[dict[str, Any]], rooms: list[str]) -> None:
        for one in limits:
            # A field with nothing in it is NULL, as a table's is.
            values = [value if value != "" else None for value in one.values()]
            self.database.execute("INSERT INTO limits VALUES (?, ?, ?, ?, ?, ?)", [part, *values])
        self.database.execute(f"INSERT INTO rooms VALUES {', '.join(f'({part}, {row[1:]}' for row in rooms)}")

    def answer(self, one: Drawn, streams: str, parts: list[int]) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for part in parts:
            sql = f"WITH {self.of_part(part)} {one.sql(streams)}"
            found += Counter(map(plain, self.database.execute(sql).fetchall()))
        return found

    def of_part(self, part: int) -> str:
        names = ("detectors", "limits", "rooms")
        return ", ".join(
            f"{name} AS (SELECT * EXCLUDE part FROM memory.{name} WHERE part = {part})" for name in names
        )


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """To be compared: numbers as doubles, -0.0 as 0.0."""
    return tuple(
        round(float(value) + 0.0, 12)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        else value.astimezone(UTC)
        if isinstance(value, datetime)
        else value
        for value in row
    )


def got(gateway: Gateway, query: UserQuery) -> Counter[tuple[Any, ...]]:
    return Counter(map(plain, rows(gateway, query)))


def ask(gateway: Gateway, sql: str) -> UserQuery:
    found = gateway.queries.ask(sql, "ada")
    assert isinstance(found, UserQuery)
    return found


def make(gateway: Gateway, servers: list[LineServer], rooms: list[str]) -> None:
    """A detector for each server, and rooms."""
    gateway.queries.ask(CREATE, "ada")
    values = [f"({i}, '{place}', '{servers[i - 1].address}')" for i, place in enumerate(PLACES, 1)]
    gateway.queries.ask(f"INSERT INTO detectors VALUES {', '.join(values)}", "ada")
    gateway.queries.ask(ROOMS, "ada")
    gateway.queries.ask(f"INSERT INTO rooms VALUES {', '.join(rooms)}", "ada")


def changed(gateway: Gateway, change: Any) -> None:
    """Tables are others, and it is noted from which row of the log on."""
    notes = gateway.log.path.parent / "tables.versions" / "notes"
    before = notes.read_text().count("\n")
    change()
    # Of two tables, each.
    wait_for(lambda: gateway.delivery.deliver() or notes.read_text().count("\n") == before + 2)


def test_streams_joined_with_tables_answer_what_duckdb_does_also_where_tables_change_and_after_a_restart(
    tmp_path: Path, drawn_seed: int
) -> None:
    chance, oracle = random.Random(drawn_seed), Oracle()
    servers = [LineServer() for _ in PLACES]
    path = tmp_path / "tables" / "limits.csv"
    path.parent.mkdir()
    limits, rooms = drawn_limits(chance), drawn_rooms(chance)
    write_limits(path, limits)
    oracle.tables(0, limits, rooms)
    singles = [drawn(chance) for _ in range(40)]
    windowed = [drawn(chance, aggregated=True) for _ in range(10)]
    asked: list[tuple[Drawn, UserQuery]] = []
    with opened([], tmp_path) as gateway:
        make(gateway, servers, rooms)
        for one in singles:
            asked.append((one, ask(gateway, one.sql("detectors d"))))
        everything = ask(gateway, "SELECT moment FROM detectors")
        counting = [(one, ask(gateway, _windowed(one))) for one in windowed]
        gateway.sources.start()

        def bring(part: int) -> None:
            for number, server in enumerate(servers, 1):
                came = drawn_rows(chance, 25, START + 60_000 * part + number)
                oracle.came(part, number, came)
                server.send(*came)
            wait_for(lambda: len(rows(gateway, everything)) == 75 * (part + 1))

        bring(0)
        limits, rooms = drawn_limits(chance), drawn_rooms(chance)
        oracle.tables(1, limits, rooms)

        def change() -> None:
            gateway.queries.ask("DELETE FROM rooms", "ada")
            gateway.queries.ask(f"INSERT INTO rooms VALUES {', '.join(rooms)}", "ada")
            write_limits(path, limits)

        changed(gateway, change)
        bring(1)
        first = {query.id: got(gateway, query) for _, query in asked}
        for one, query in asked:
            assert first[query.id] == oracle.answer(one, "detectors d", [0, 1]), query.sql
        assert sum(map(len, first.values())) > 300
        for one in singles:
            past = ask(gateway, f"{one.sql('detectors d')} {PAST}")
            assert got(gateway, past) == oracle.answer(one, "detectors d", [0, 1]), past.sql
        for one, query in counting:
            # All windows are of a minute, in which tables did not change, and are over when rows of the next one come.
            wanted = oracle.answer(one, "detectors d", [0])
            assert got(gateway, query) == wanted, query.sql
            past = ask(gateway, f"{_windowed(one)} {PAST}")
            assert got(gateway, past) == wanted + oracle.answer(one, "detectors d", [1]), past.sql
            _check_groups(gateway, oracle, one)
    path.unlink()
    _check_restarted(tmp_path, first)
    for server in servers:
        server.close()


def _check_restarted(data: Path, first: dict[str, Counter[tuple[Any, ...]]]) -> None:
    """Where the file is gone."""
    with opened([], data) as gateway:
        for query in gateway.queries.all():
            if query.id not in first:
                continue
            assert got(gateway, query) == first[query.id], "rows meet the table that they met before"
            trouble = gateway.delivery.paused(query)
            if "limits" in query.sql:
                assert trouble is not None
                assert "table limits is not there" in trouble
                assert trouble.endswith("rows meet it as it was")


def _windowed(one: Drawn) -> str:
    """Over minutes."""
    parts = one.select.split(", ")
    select = ", ".join([parts[0], *(part.replace(") AS", ", 1 min) AS") for part in parts[1:])])
    return Drawn(select, one.tables, one.where, one.groups).sql("detectors d")


def _check_groups(gateway: Gateway, oracle: Oracle, one: Drawn) -> None:
    """Without windows, over all that has come, each row with the tables of its part."""
    past = ask(gateway, f"{one.sql('detectors d')} {PAST}")
    columns = "d.*, l.gas AS lgas, l.most AS lmost, l.label AS llabel"
    inner = Drawn(columns, one.tables, one.where)
    select = one.sql("(x)").split(" FROM ")[0].replace("d.", "").replace("l.", "l")
    parts = " UNION ALL ".join(f"(WITH {oracle.of_part(part)} {inner.sql('detectors d')})" for part in (0, 1))
    wanted = oracle.database.execute(f"{select} FROM ({parts}) GROUP BY lgas").fetchall()
    assert got(gateway, past) == Counter(map(plain, wanted)), past.sql


def test_joins_of_streams_and_static_columns_are_joined_with_tables(tmp_path: Path, drawn_seed: int) -> None:
    chance, oracle = random.Random(drawn_seed), Oracle()
    servers = [LineServer() for _ in PLACES]
    (tmp_path / "tables").mkdir()
    limits, rooms = drawn_limits(chance), drawn_rooms(chance)
    write_limits(tmp_path / "tables" / "limits.csv", limits)
    oracle.tables(0, limits, rooms)
    with opened([], tmp_path) as gateway:
        make(gateway, servers, rooms)
        everything = ask(gateway, "SELECT moment FROM detectors")
        newest = ask(
            gateway, "SELECT d.id, l.label FROM LATEST detectors d LEFT JOIN limits l ON l.gas = d.gas"
        )
        gateway.sources.start()
        for number, server in enumerate(servers, 1):
            came = drawn_rows(chance, 25, START + number)
            oracle.came(0, number, came)
            server.send(*came)
        wait_for(lambda: len(rows(gateway, everything)) == 75)
        total = 0
        for _ in range(25):
            one = drawn(chance, first="a")
            both = replace_where(one, "a.gas = b.gas AND a.id < b.id")
            ours = f"{both.sql('detectors a, detectors b')} WINDOW 10 s {PAST}"
            within = replace_where(both, "abs(epoch_us(a.moment) - epoch_us(b.moment)) <= 10000000")
            wanted = oracle.answer(within, "detectors a JOIN detectors b ON true", [0])
            assert got(gateway, ask(gateway, ours)) == wanted, ours
            total += sum(wanted.values())
        assert total > 200
        wait_for(lambda: len({id for id, _ in got(gateway, newest)}) == 3)
        last = list(rows(gateway, newest))[-sum(_newest(oracle).values()) :]
        assert Counter(map(plain, last)) == _newest(oracle)
        for sql in (
            "SELECT d.place, r.floor FROM detectors d, rooms r WHERE r.name = d.place ORDER BY d.place",
            "SELECT r.name, l.label FROM rooms r LEFT JOIN limits l ON l.most > r.most",
            "SELECT r.open, COUNT(*) FROM rooms r, limits l WHERE l.most = r.most GROUP BY r.open",
        ):
            oracle_sql = f"WITH {oracle.of_part(0)}, d AS (SELECT DISTINCT id, place FROM detectors) {sql.replace('detectors d', 'd')}"
            wanted = Counter(map(plain, oracle.database.execute(oracle_sql).fetchall()))
            assert got(gateway, ask(gateway, sql)) == wanted, sql
    for server in servers:
        server.close()


def replace_where(one: Drawn, more: str) -> Drawn:
    return Drawn(one.select, one.tables, " AND ".join(part for part in (one.where, more) if part))


def _newest(oracle: Oracle) -> Counter[tuple[Any, ...]]:
    found = oracle.database.execute(
        f"WITH {oracle.of_part(0)} SELECT d.id, l.label FROM (SELECT * FROM detectors QUALIFY row_number() OVER (PARTITION BY id "
        "ORDER BY moment DESC) = 1) d LEFT JOIN limits l ON l.gas = d.gas"
    ).fetchall()
    return Counter(map(plain, found))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM detectors d, limits l", "all rows of l would be joined with each row.*as in WHERE l.gas = d"),
        ("SELECT d.gas FROM detectors d ASOF JOIN limits l ON l.gas = d.gas", "ASOF JOIN with a table.*its rows have no time"),
        ("SELECT d.gas FROM limits l LEFT JOIN detectors d ON d.gas = l.gas", "write the stream first, and LEFT JOIN the table"),
        ("CREATE STREAM x AS SELECT d.gas FROM detectors d, limits l WHERE l.gas = d.gas", "a stream is made of streams.*FROM x AS s"),
        ("SELECT d.gas FROM detectors d, limits reading WHERE reading.gas = d.gas", "detectors has a stream of that name"),
        ("SELECT gas FROM detectors d, limits l WHERE l.gas = d.gas", "'gas' is of several tables.*write d.gas or l.gas"),
        ("SELECT d.gas FROM detectors d, limit5 l WHERE l.gas = d.gas", "'limit5' is no table of sensors"),
        ("SELECT d.gas FROM detectors d, limits l WHERE l.label > d.level", "a text is compared with a number"),
        ("SELECT d.gas FROM detectors d, limits d WHERE d.label = 'x'", "two tables are called 'd'"),
        ("SELECT d.gas FROM detectors d, broken l WHERE l.gas = d.gas", "table broken cannot be read"),
        ("SELECT d.gas FROM detectors d, many m WHERE m.gas = d.gas", "compared with 5,001 of its rows, and at most 5,000 may be"),
        ("SELECT a.gas FROM detectors a, detectors b, limits l WINDOW(a, l) = 1 h WHERE a.gas = l.gas", "l has no stream"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON b.gas = l.gas, limits l WINDOW 1 h WHERE a.gas = l.gas",
         "which rows of streams meet is said of a table"),
        ("SELECT a.gas FROM LATEST detectors a, detectors b WHERE a.gas = b.gas", "FROM LATEST is of the newest rows of one stream"),
        ("SELECT d.gas FROM detectors d LEFT JOIN limits l ON l.gas = r.name LEFT JOIN rooms r ON r.name = l.gas",
         "ON of l asks for r, which is joined behind it"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_told(tmp_path: Path, sql: str, why: str) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "limits.csv").write_text("gas,label\nCO,one\n")
    (tmp_path / "tables" / "broken.csv").write_text('gas,"label\n')
    (tmp_path / "tables" / "many.csv").write_text("gas\n" + "CO\n" * 5001)
    with opened([], tmp_path) as gateway:
        gateway.queries.ask(CREATE, "ada")
        gateway.queries.ask(ROOMS, "ada")
        with pytest.raises(QueryError, match=f"(?s){why}"):
            gateway.queries.ask(sql, "ada")


def test_explain_says_how_a_table_is_met_and_a_table_that_queries_read_is_not_dropped(tmp_path: Path) -> None:
    with opened([], tmp_path) as gateway:
        gateway.queries.ask(CREATE, "ada")
        gateway.queries.ask("INSERT INTO detectors (id) VALUES (1)", "ada")
        gateway.queries.ask(ROOMS, "ada")
        sql = "SELECT d.gas, r.floor FROM detectors AS d LEFT JOIN rooms AS r ON r.name = d.place"
        assert (
            "then joined with table rooms as r: found by r.name; NULLs where there is none"
            in gateway.queries.explain(sql)["text"]
        )
        loose = gateway.queries.explain("SELECT d.gas FROM detectors d, rooms WHERE rooms.factor > d.heat")
        assert "then joined with table rooms: each row is compared with all of its rows" in loose["text"]
        query = ask(gateway, sql)
        with pytest.raises(QueryError, match=f"query {query.id} reads"):
            gateway.queries.ask("DROP SENSORS rooms", "ada")
        gateway.queries.ask("ALTER SENSORS rooms DROP factor", "ada")
        with pytest.raises(QueryError, match="reads"):
            gateway.queries.ask("ALTER SENSORS rooms DROP floor", "ada")


def test_a_table_is_joined_by_what_a_left_join_before_it_found(tmp_path: Path, drawn_seed: int) -> None:
    chance, oracle, server = random.Random(drawn_seed), Oracle(), LineServer()
    (tmp_path / "tables").mkdir()
    limits, rooms = drawn_limits(chance), drawn_rooms(chance)
    write_limits(tmp_path / "tables" / "limits.csv", limits)
    oracle.tables(0, limits, rooms)
    with opened([], tmp_path) as gateway:
        make(gateway, [server] * 3, rooms)
        everything = ask(gateway, "SELECT moment FROM detectors WHERE id = 1")
        gateway.sources.start()
        came = drawn_rows(chance, 40, START)
        oracle.came(0, 1, came)
        server.send(*came)
        wait_for(lambda: len(rows(gateway, everything)) == 40)
        left = "SELECT d.level, l.label, r.floor FROM detectors d LEFT JOIN limits l ON l.gas = d.gas"
        for sql in (
            f"{left} JOIN rooms r ON r.most = l.most WHERE d.id = 1",
            f"{left} JOIN rooms r ON r.floor < l.number WHERE d.id = 1",
            f"{left} JOIN rooms r ON r.name = d.place AND (l.most IS NULL OR l.most < r.most) WHERE d.id = 1",
            "SELECT d.level, l.label, r.floor FROM detectors d JOIN rooms r ON r.name = d.place LEFT JOIN limits l ON l.most = r.most "
            "WHERE d.id = 1 AND (l.number IS NULL OR l.number > r.floor)",
        ):
            wanted = Counter(
                map(plain, oracle.database.execute(f"WITH {oracle.of_part(0)} {sql}").fetchall())
            )
            assert got(gateway, ask(gateway, f"{sql} {PAST}")) == wanted, sql
    server.close()
