"""Tuples of events: each event that a mote raises is one tuple, whether nobody else waits for it, several come within a second, or the
event itself says a value; what is asked of them is DuckDB's, by the gateway and among motes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from hil_tests.drawn_boxes import plain
from hil_tests.office import Office
from skerry.service.queries import UserQuery
from skerry.sql.errors import QueryError
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid

BOARDS = ("iris", "cc2538", "cc2538")
#: One that stores, and asks.
ASKS = 2
#: Virtual s in which tuples have come to who stores them, and in which ways have been opened and a mote that asks has had its answers.
SETTLED_S, ANSWERED_S = 300, 330
ROUNDS = 5


def rows_of(office: Office, text: str) -> list[tuple[Any, ...]]:
    """The answer to a question, which is complete."""
    query = office.ask(text)
    office.answers([query])
    assert (office.gateway.queries.indexed(query) or {})["complete"], text
    return told(office, query)


def told(office: Office, query: UserQuery) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in office.told(query)]


def raised(office: Office) -> int:
    """Presses that the root has heard of."""
    columns, rows = office.gateway.site.select("SELECT event, raised FROM events", None)
    assert columns == ["event", "raised"]
    return max(int(count or 0) for event, count in rows if event == "button")


def dropped(office: Office, node: int) -> int:
    """Records that a mote says it has lost."""
    _, [[count]] = office.gateway.site.select(f"SELECT dropped FROM motes WHERE nodeid = {node}", None)
    return int(count)


def raise_events(net: NetworkHandle, office: Office, rng: Random) -> tuple[list[tuple[int, float, int]], int]:
    """Buttons pressed, with their mote, when, and how light it was there; and how many motes have become hot."""
    pressed, hot = list[tuple[int, float, int]](), 0
    for _ in range(ROUNDS):
        # One is pressed several times within two seconds, some others once.
        for number, node in enumerate(rng.sample(sorted(net.motes), 4)):
            light = round(rng.uniform(50, 950))
            net.motes[node].sense(light=light)
            office.advance(1)
            for _ in range(3 if number == 0 else 1):
                pressed.append((node, net.now, light))
                net.motes[node].press()
                office.advance(0.4)
        office.advance(20)
        hotter = rng.sample(sorted(net.motes), 2)
        for node in hotter:
            net.motes[node].sense(temp=round(rng.uniform(38, 58), 2))
        hot += len(hotter)
        office.advance(30)
        for node in hotter:
            net.motes[node].sense(temp=20)
        office.advance(20)
    return pressed, hot


def tables_of(presses: list[tuple[Any, ...]], heats: list[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    """DuckDB's, of what both indexes have."""
    database = duckdb.connect()
    database.execute("CREATE TABLE presses (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE)")
    database.executemany("INSERT INTO presses VALUES (?, ?, ?, ?)", [(*row[:2], *row[3:]) for row in presses])
    database.execute("CREATE TABLE heats (nodeid INTEGER, epoch INTEGER, temp DOUBLE, light INTEGER)")
    database.executemany("INSERT INTO heats VALUES (?, ?, ?, ?)", heats)
    return database


def overflow(net: NetworkHandle, office: Office, rng: Random, before: int) -> None:
    """Presses that a query waits for as well, of which some are too many; ``before``: tuples so far."""
    # No flood has told of presses that nobody else waits for. Those that a query waits for as well are told of, and stored all the same.
    assert raised(office) == 0
    waiting = office.ask("ON EVENT button: SELECT nodeid, event.nodeid FROM sensors ONCE")
    office.advance(60)
    # More than can wait for their turn: those that do not are counted.
    node = rng.choice(sorted(net.motes))
    for _ in range(8):
        net.motes[node].press()
        office.advance(0.2)
    office.advance(SETTLED_S)
    [now] = rows_of(office, "SELECT COUNT(*) FROM presses")
    more = int(now[0]) - before
    print(f"of 8 presses within 3 s {more} are tuples, {raised(office)} are heard of")
    assert told(office, waiting)
    office.advance(1000, lambda: dropped(office, node) > 0)
    # A flood that finds no room tells of several presses as one.
    assert 4 <= more == raised(office) - dropped(office, node)


def test_each_event_is_a_tuple(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = Random(drawn_seed)
    net = network(grid(4, 3, spacing=10, boards=BOARDS), radio=disc(15), seed=drawn_seed)
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(300, lambda: bool(office.gateway.site.status()["motes"] == len(net.motes)))
    office.ask("CREATE INDEX presses ON EVENT button (JOINT (light FROM 0 TO 1000, temp FROM 10 TO 60))")
    office.ask("CREATE INDEX heats ON EVENT hot(temp) (JOINT (temp FROM 30 TO 60, light FROM 0 TO 1000))")
    with pytest.raises(QueryError, match="index heats is of an event, and has no period"):
        office.ask(f"SELECT COUNT(*) FROM heats AT MOTE {ASKS}")
    rising = office.ask(
        "SELECT nodeid, temp FROM sensors WHERE temp > 36 OUTPUT ACTION SIGNAL hot(temp) SAMPLE PERIOD 10 s"
    )
    for mote in net.motes.values():
        mote.sense(light=round(rng.uniform(0, 1000)), temp=20)
    office.advance(120)

    pressed, hot = raise_events(net, office, rng)
    office.advance(SETTLED_S)

    stored = rows_of(office, "SELECT nodeid, epoch, time, light, temp FROM presses")
    assert Counter(row[0] for row in stored) == Counter(node for node, *_ in pressed)
    assert len({row[:2] for row in stored}) == len(pressed)
    for (node, at, light), row in zip(sorted(pressed), sorted(stored), strict=True):
        moment = row[2].timestamp()
        assert row[0] == node
        assert row[3] == pytest.approx(light, abs=6), (node, at)
        # In the next whole second, or behind those before it.
        assert 0 <= moment - 1_800_000_000 - at < 6, (moment, at)
    heats = rows_of(office, "SELECT nodeid, epoch, temp, light FROM heats")
    # What the mote said that raised it, with the first of its rows.
    said = {(node, temp) for *_, node, temp in told(office, rising)}
    assert {(node, temp) for node, _, temp, _ in heats} <= said
    assert len(heats) == hot
    print(f"seed {drawn_seed}: {len(stored)} presses, {len(heats)} heats")

    database = tables_of(stored, heats)
    low, high = sorted((rng.randrange(0, 1000), rng.randrange(0, 1000)))
    for text in (
        f"SELECT nodeid, light FROM presses WHERE light BETWEEN {low} AND {high}",
        f"SELECT nodeid, COUNT(*), MAX(light) FROM presses WHERE light > {low} GROUP BY nodeid",
        f"SELECT COUNT(*), SUM(light), MIN(temp) FROM heats WHERE temp > {rng.uniform(38, 50):.2f}",
    ):
        assert plain(rows_of(office, text)) == plain(database.execute(text).fetchall()), text

    # Among motes, too: of what the event said, and of what was sampled.
    asked = "SELECT COUNT(*), MAX(temp), SUM(light) FROM heats WHERE temp > 45 AND light > 100"
    among = office.ask(f"{asked} AT MOTE {ASKS} SAMPLE PERIOD 80 s")
    office.advance(ANSWERED_S)
    assert told(office, among)[-1][-3:] == pytest.approx(database.execute(asked).fetchall()[0])
    overflow(net, office, rng, len(stored))
    office.gateway.close()


def test_starts_and_presses_are_tuples_where_frames_are_lost(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    """One frame in ten is lost, and motes of both boards start again, whose starts are events as well."""
    rng = Random(drawn_seed)
    net = network(grid(4, 3, spacing=10, boards=BOARDS), radio=disc(15, 0.9), seed=drawn_seed)
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(300, lambda: bool(office.gateway.site.status()["motes"] == len(net.motes)))
    office.ask("CREATE INDEX presses ON EVENT button (JOINT (light FROM 0 TO 1000, temp FROM 10 TO 60))")
    office.ask("CREATE INDEX starts ON EVENT boot (JOINT (voltage FROM 2 TO 4, light FROM 0 TO 1000))")
    for mote in net.motes.values():
        mote.sense(light=round(rng.uniform(0, 1000)), temp=20)
    office.advance(150)
    pressed, started = Counter[int](), Counter[int]()
    for _ in range(ROUNDS):
        for node in rng.sample(sorted(net.motes), 4):
            net.motes[node].press()
            pressed[node] += 1
            office.advance(5)
        # What waits on a mote that starts again is lost.
        office.advance(SETTLED_S)
        node = rng.choice(sorted(net.motes)[1:])
        net.motes[node].reboot()
        started[node] += 1
        office.advance(SETTLED_S)
    office.advance(SETTLED_S)
    found = {name: office.ask(f"SELECT nodeid, epoch FROM {name}") for name in ("presses", "starts")}
    office.answers(list(found.values()))
    rows = {name: told(office, query) for name, query in found.items()}
    print(
        f"seed {drawn_seed}: {len(rows['presses'])} of {pressed.total()} presses, {len(rows['starts'])} of {started.total()} starts"
    )
    assert Counter(node for node, _ in rows["presses"]) == pressed
    assert Counter(node for node, _ in rows["starts"]) == started
    office.gateway.close()
