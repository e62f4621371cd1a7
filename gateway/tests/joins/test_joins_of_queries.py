"""Joins as users ask them, over real TCP sources, through a real gateway, its log and Spark."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb
import pytest

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SITES
from gateway.tests.joins.drawn_queries import ENDS, LONGEST_S, Batch, DrawnQuery
from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
SELECT = (
    "SELECT a.reading.gas, c.level FROM detectors AS a, detectors AS b, detectors AS c WINDOW = 1 h "
    "WHERE a.id = 1 AND b.id = 2 AND c.id = 3 AND a.reading.gas = b.reading.gas AND b.reading.gas = c.reading.gas"
)
ALONE = (
    "CREATE STREAM alone AS SELECT a.gas, a.level FROM detectors a LEFT JOIN detectors b ON b.id = 2 AND a.gas = b.gas WINDOW 2 min "
    "WHERE a.id = 1 AND b.gas IS NULL LATENESS 5 min"
)
FURTHER = (
    "SELECT x.gas, x.level, c.level AS third FROM alone x ASOF JOIN detectors c ON c.id = 3 AND x.gas = c.gas WINDOW 1 h "
    "LATENESS 6 min"
)
#: Windows over the answers of the first one.
COUNTED = (
    SELECT.replace(
        "a.reading.gas, c.level", "time, a.reading.gas, COUNT(*, 5 min) AS n, MAX(c.level, 5 min)", 1
    )
    + " GROUP BY a.reading.gas WAIT 0 s"
)
#: Its answers joined with a table of a file, and rows of one stream with one of sensors.
LABELLED = SELECT.replace("c.level", "c.level, l.label", 1).replace(
    " WINDOW", " LEFT JOIN labels l ON l.gas = a.gas AND c.level > l.least WINDOW", 1
)
LABELS = [("CH4", 4, None), ("CH4", 9, "methane"), ("CO", 3.5, "carbon"), ("CO", 5, "carbon")]
FLOORS = (
    "SELECT d.level, r.floor FROM detectors d, rooms r WHERE r.name = d.place AND d.id = 1 AND d.gas = 'CO'"
)
ENDING = (
    "SELECT a.level AS one, b.level AS other FROM detectors a, b WINDOW 1 ROWS WHERE a.id = 11 AND b.id = 12"
)
ENDING_COUNTED = "SELECT SUM(b.level, 1 h), COUNT(*, 1 h) AS n FROM detectors a, b WINDOW 1 ROWS WHERE a.id = 13 AND b.id = 14"


@pytest.fixture
def servers() -> Iterator[list[LineServer]]:
    made = [LineServer() for _ in range(4)]
    yield made
    for server in made:
        server.close()


def at(minute: int) -> str:
    return f"2002-11-06T12:{minute:02}:00Z"


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


@pytest.mark.spark
@pytest.mark.slow
def test_a_join_of_three_detectors_streams_back_also_after_kill_9(
    daemon: Daemon, servers: list[LineServer]
) -> None:
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    values = ", ".join(f"({i}, 'gate {i}', '{server.address}')" for i, server in enumerate(servers, 1))
    ada.execute(f"INSERT INTO detectors VALUES {values}")
    _bring_tables(daemon)
    reader = Reader(ada.query(SELECT, linger_s=None))
    _bring_files(daemon)
    counted = Reader(ada.query(COUNTED, linger_s=None))
    labelled, floors = (Reader(ada.query(sql, linger_s=None)) for sql in (LABELLED, FLOORS))
    ending, ending_counted = (Reader(ada.query(sql, linger_s=None)) for sql in (ENDING, ENDING_COUNTED))
    ada.execute(ALONE)
    further = Reader(ada.query(FURTHER, linger_s=None))
    one, two, three, _ = servers
    one.send({"gas": "CO", "level": 1, "at": at(0)}, {"gas": "CH4", "level": 1, "at": at(1)})
    two.send({"gas": "CO", "level": 2, "at": at(2)}, {"gas": None, "level": 2, "at": at(3)})
    three.send({"gas": "CH4", "level": 9, "at": at(0)}, {"gas": "CO", "level": 3.5, "at": at(4)})
    eventually(lambda: [tuple(row.values()) for row in reader.got], [("CO", 3.5)])
    wait_for(lambda: not ending.thread.is_alive())
    levels = sorted(tuple(row.values()) for row in ending.got)
    assert levels == [(1, 10), (2, 10), (2, 20)], "the last answers come once all sources have ended"
    wait_for(lambda: not ending_counted.thread.is_alive())
    assert [tuple(row.values()) for row in ending_counted.got] == [(40, 3)]
    assert servers[3].calls == 0, "what no alias follows is not opened"
    daemon.kill()
    wait_for(lambda: one.listeners == 0)
    # As a disk may leave it: what is kept is made again of the log.
    for file in (daemon.data / "joins" / "checkpoint" / "state").rglob("*.delta"):
        file.write_bytes(b"")
    daemon.start()
    wait_for(lambda: all(server.listeners == 1 for server in servers[:3]))
    three.send({"gas": "CH4", "level": 4, "at": at(5)}, {"gas": "CO", "level": 5, "at": at(6)})
    two.send({"gas": "CH4", "level": 6, "at": at(7)}, {"gas": None, "level": 6, "at": at(9)})
    eventually(
        lambda: sorted(tuple(row.values()) for row in reader.got),
        [("CH4", 4), ("CH4", 9), ("CO", 3.5), ("CO", 5)],
    )
    eventually(lambda: sorted(tuple(row.values()) for row in labelled.got), LABELS)
    eventually(lambda: [tuple(row.values()) for row in floors.got], [(1, 3)])
    # An answer of the time behind its end, and none before, has brought the first window.
    eventually(
        lambda: [(micros(row["time"].isoformat()), *[*row.values()][1:]) for row in counted.got],
        [(micros(at(5)), "CO", 1, 3.5)],
    )
    _check_further(daemon, further, three)
    again = Reader(daemon.client("ada").resume(reader.rows.id))
    eventually(lambda: again.got, reader.got)
    status: list[dict[str, Any]] = daemon.client().status()["joins"]
    told = [(one["query"], one["kind"], one["algorithm"], one["late"]) for one in status]
    assert (reader.rows.id, "inner", "HW", 0) in told
    assert (further.rows.id, "asof", "HW", 0) in told
    greatest = dict(zip("abc", (at(1), at(9), at(8)), strict=True))
    own = next(one for one in status if one["query"] == reader.rows.id)
    assert own["greatest_us"] == {alias: micros(text) for alias, text in greatest.items()}
    said = daemon.log.read_text()
    assert said.count("joins/checkpoint cannot be read") == 1
    assert "Spark reads the log again from row 0 on" in said
    _stop(daemon, further, counted, labelled, floors, reader)
    wait_for(lambda: sum(server.listeners for server in servers) == 0)


def _stop(daemon: Daemon, *readers: Reader) -> None:
    for one in readers[:-1]:
        one.rows.stop()
    daemon.client("ada").execute("DROP STREAM alone")
    readers[-1].rows.stop()


def _bring_tables(daemon: Daemon) -> None:
    """One of a file, and one of sensors."""
    folder = daemon.data / "tables"
    folder.mkdir(exist_ok=True)
    (folder / "labels.csv").write_text("gas,least,label\nCO,0,carbon\nCH4,5,methane\n")
    daemon.client("ada").execute("CREATE SENSORS rooms (name TEXT, floor INT)")
    daemon.client("ada").execute("INSERT INTO rooms VALUES ('gate 1', 3), ('gate 2', 4)")


def _bring_files(daemon: Daemon) -> None:
    """Sources that end: each of two files twice."""
    folder = daemon.data / "streams"
    folder.mkdir(exist_ok=True)
    for number, rows in ((11, ((0, 1), (2, 2))), (12, ((1, 10), (3, 20)))):
        lines = [f"CO,{level},{at(minute)}" for minute, level in rows]
        (folder / f"{number}.csv").write_text("\n".join(["gas,level,at", *lines, ""]))
        for tuple_ in (number, number + 2):
            daemon.client("ada").execute(
                f"INSERT INTO detectors VALUES ({tuple_}, 'file', 'replay:{number}.csv?speed=max')"
            )


def _check_further(daemon: Daemon, further: Reader, three: LineServer) -> None:
    """The stream that was made of a join has its one row, which is joined further, and stays to be asked for."""
    newest = list(daemon.client("ada").query("SELECT gas, level FROM LATEST alone ONCE WAIT 4 min"))
    assert [tuple(row.values()) for row in newest] == [("CH4", 1)]
    three.send({"gas": "N2", "level": 0, "at": at(8)})
    eventually(lambda: [tuple(row.values()) for row in further.got], [("CH4", 1, 9)])
    past = list(daemon.client("ada").query("SELECT gas, level FROM alone HISTORY 20000 days ONLY"))
    assert [tuple(row.values()) for row in past] == [("CH4", 1)]


@pytest.mark.spark
@pytest.mark.slow
def test_how_a_join_is_is_told_by_a_gateway_that_has_started_again(
    daemon: Daemon, servers: list[LineServer]
) -> None:
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(CREATE)
    one, two, *_ = servers
    ada.execute(f"INSERT INTO detectors VALUES (1, 'a', '{one.address}'), (2, 'b', '{two.address}')")
    pairs = "SELECT a.gas FROM detectors a, detectors b WINDOW 1 h WHERE a.id = 1 AND b.id = 2 AND a.gas = b.gas LATENESS 30 s"
    reader = Reader(ada.query(pairs, linger_s=None))
    one.send({"gas": "CO", "level": 1, "at": at(3)}, {"gas": "CH4", "level": 1, "at": at(1)})
    wait_for(lambda: [join["late"] for join in daemon.client().status()["joins"]] == [1])
    two.send({"gas": "CO", "level": 1, "at": at(4)})
    eventually(lambda: [tuple(row.values()) for row in reader.got], [("CO",)])
    [before] = daemon.client().status()["joins"]
    told = [before[name] for name in ("query", "rows", "late", "greatest_us", "progress_us")]
    greatest = {"a": micros(at(3)), "b": micros(at(4))}
    assert told == [reader.rows.id, 2, 1, greatest, micros(at(4)) - 30_000_000]
    daemon.kill(signal.SIGTERM)
    daemon.start()
    assert daemon.client().status()["joins"] == [before], "before any row has come"
    reader.rows.stop()


#: Joins beside each other on one gateway, twice; and of what is there then, asked of the past.
BESIDE, PAST = 125, 50
#: How often something is killed in each batch.
KILLS = (3, 2)


@pytest.fixture
def eight() -> Iterator[list[LineServer]]:
    made = [LineServer() for _ in SITES]
    yield made
    for server in made:
        server.close()


@pytest.mark.spark
@pytest.mark.slow
def test_three_hundred_drawn_joins_of_one_gateway_answer_what_duckdb_does(
    daemon: Daemon, eight: list[LineServer], drawn_seed: int
) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    daemon.start()
    ada = daemon.client("ada")
    ada.execute(users_joins.CREATE)
    ada.execute(users_joins.insert([server.address for server in eight]))
    # Has all of them open, whichever sources a join selects.
    ada.query("SELECT n FROM drawn", linger_s=None)
    ends = [*ENDS, chance.choice(ENDS)]
    chance.shuffle(ends)
    for number, kills in enumerate(KILLS):
        first = drawn_seed + BESIDE * number
        batch = Batch.ask(chance, daemon, range(first, first + BESIDE))
        batch.send(chance, eight, number, [ends.pop() for _ in range(kills)])
        total = 0
        for one, reader, expected in zip(batch.asked, batch.readers, batch.expected(connection), strict=True):
            count = expected.total()
            wait_for(lambda reader=reader, count=count: len(reader.got) >= count, LONGEST_S)
            assert Counter(map(users_joins.given, reader.got)) == expected, one.said
            total += count
        assert total > BESIDE
        assert sum(len(reader.got) for reader in batch.readers) == total, "none came twice meanwhile"
        batch.stop()
    assert ends == []
    there, total = users_joins.logged(daemon.data, 0), 0
    for place in range(PAST):
        one = DrawnQuery.draw(chance, drawn_seed + 2 * BESIDE + place)
        expected = one.expected(*there, connection, ended=True)
        found = ada.query(f"{one.sql} HISTORY 50 year ONLY")
        assert Counter(map(users_joins.given, found)) == expected, one.said
        total += expected.total()
    assert total > PAST
