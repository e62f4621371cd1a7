"""Questions that a mote asks of an index, and others answer, past the gateway: rows are DuckDB's over what was sampled, and the mote acts
while nothing listens at the root's line. Motes of both boards ask, each period or when an event comes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from hil_tests.office import Office
from skerry.sql.errors import QueryError
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid

#: All hear each other.
BOARDS = ("iris", "cc2538", "iris", "cc2538", "cc2538", "iris")
#: Motes that store and others but the root, by their boards.
STORING, OTHERS = [1, 3, 4], [2, 5]
PERIOD_S, EPOCHS = 40, 5
#: Virtual s in which what was sampled has come to who stores it, and ways to the mote that gathers have been opened.
SETTLED_S, OPENED_S = 260, 400
#: Virtual s in which motes have heard of an event, and within which those that store have answered it, be their ways open or not.
HEARD_S, ANSWERED_S = 30, 320


class Stored(NamedTuple):
    """What an index of light and temp has: its epochs, and a table climate of what was sampled in them."""

    first: int
    last: int
    database: duckdb.DuckDBPyConnection

    def told(self, sql: str) -> tuple[Any, ...]:
        """One row of DuckDB's."""
        [row] = self.database.execute(sql).fetchall()
        return tuple(row)


def stored(net: NetworkHandle, office: Office, rng: random.Random) -> Stored:
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(BOARDS))
    sampled = office.ask(f"SELECT nodeid, epoch, light, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    office.ask(
        f"CREATE INDEX climate ON sensors (JOINT (light FROM 200 TO 1000, temp FROM 10 TO 50)) SAMPLE PERIOD {PERIOD_S} s"
    )
    for _ in range(EPOCHS * 2):
        for mote in net.motes.values():
            mote.sense(light=rng.randrange(200, 1000), temp=rng.randrange(1000, 3500) / 100)
        office.advance(PERIOD_S / 2)
    epochs = [row["epoch"] for row in office.told(sampled)]
    first, last = min(epochs) + 1, max(epochs)
    office.advance(SETTLED_S)
    rows = [tuple(row.values()) for row in office.told(sampled) if first <= row["epoch"] <= last]
    database = duckdb.connect()
    database.execute("CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE)")
    database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?)", rows)
    return Stored(first, last, database)


def test_a_mote_asks_and_acts_while_the_gateway_is_away(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(3, 2, spacing=5, boards=BOARDS), radio=disc(15))
    office = Office(net, tmp_path, monkeypatch)
    index = stored(net, office, rng)
    gathers, acts = rng.sample([rng.choice(STORING), rng.choice(OTHERS)], 2)
    with pytest.raises(QueryError, match="where mote 9 stands is not known"):
        office.ask("SELECT COUNT(*) FROM climate AT MOTE 9")
    within = f"epoch BETWEEN {index.first} AND {index.last} AND temp > 15 AND light < 900"
    what = "COUNT(*), SUM(light), AVG(temp)"
    asked = office.ask(f"SELECT {what} FROM climate WHERE {within} AT MOTE {gathers} SAMPLE PERIOD 80 s")
    # Two more in the same moment, one of them at the root, which stands at (0, 0).
    others = {"MIN(light), MAX(light)": gathers, "MAX(temp), COUNT(*)": 0}
    beside = [
        office.ask(f"SELECT {one} FROM climate WHERE {within} AT MOTE {mote} SAMPLE PERIOD 80 s")
        for one, mote in others.items()
    ]
    never = office.ask(
        f"SELECT MAX(temp) FROM climate WHERE {within} AT MOTE {gathers} HAVING MAX(temp) > 35"
    )
    office.ask(
        f"SELECT COUNT(*) FROM climate WHERE temp > 40 AT MOTE {acts} HAVING COUNT(*) > 3 OUTPUT ACTION leds(2) SAMPLE PERIOD 60 s"
    )
    office.advance(OPENED_S)
    count, total, mean = index.told(f"SELECT {what} FROM climate WHERE {within}")
    told = [tuple(row.values())[-3:] for row in office.told(asked)]
    assert count > 5
    assert told
    assert told[-1][:2] == (count, total)
    assert told[-1][2] == pytest.approx(mean, abs=0.00501)
    assert not office.told(never)
    for one, query in zip(others, beside, strict=True):
        rows = [tuple(row.values())[-2:] for row in office.told(query)]
        assert rows, one
        assert rows[-1] == pytest.approx(index.told(f"SELECT {one} FROM climate WHERE {within}"), abs=0.00501)

    # Nobody listens at the root's line, nor says anything.
    assert "green" not in net.motes[acts].outputs
    for mote in net.motes.values():
        mote.sense(temp=45)
    waited = 0
    while "green" not in net.motes[acts].outputs and waited < 1500:
        net.advance("10s")
        waited += 10
    print(
        f"mote {acts} ({BOARDS[acts]}) acted after {waited} s without a gateway; mote {gathers} ({BOARDS[gathers]}) gathered {count}"
        " tuples' aggregates"
    )
    assert "green" in net.motes[acts].outputs
    assert not any("green" in mote.outputs for number, mote in net.motes.items() if number != acts)
    office.gateway.close()


def test_a_mote_asks_when_an_event_comes(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(3, 2, spacing=5, boards=BOARDS), radio=disc(15))
    office = Office(net, tmp_path, monkeypatch)
    index = stored(net, office, rng)
    asks = rng.choice(OTHERS)
    hears = rng.choice([mote for mote in (*STORING, *OTHERS) if mote != asks])
    other = rng.choice([mote for mote in (*STORING, *OTHERS) if mote not in (asks, hears)])
    within = f"epoch BETWEEN {index.first} AND {index.last}"
    # Its own button, and no other's: an IRIS's.
    pressed = office.ask(
        f"ON EVENT button: SELECT event.nodeid, COUNT(*), SUM(light) FROM climate WHERE {within} AND light > 300"
        f" AND event.nodeid = {asks} AT MOTE {asks}"
    )
    # What another mote has measured is what is asked for.
    office.ask("SELECT nodeid FROM sensors WHERE temp > 36 OUTPUT ACTION SIGNAL hot(temp) SAMPLE PERIOD 10 s")
    hot = office.ask(
        "ON EVENT hot(temp): SELECT event.nodeid, event.temp, COUNT(*), MIN(temp) FROM climate"
        f" WHERE {within} AND temp < event.temp - 15 AND nodeid <> event.nodeid AT MOTE {hears}"
    )
    acting = office.ask(
        f"ON EVENT button: SELECT COUNT(*) FROM climate WHERE temp > 40 AND event.nodeid = {asks} AT MOTE {asks}"
        " HAVING COUNT(*) > 3 OUTPUT ACTION leds(2)"
    )
    office.advance(60)
    net.motes[other].press()
    office.advance(HEARD_S)
    for mote in net.motes.values():
        mote.sense(temp=20)
    net.motes[other].sense(temp=39.5)
    office.advance(HEARD_S)
    net.motes[other].sense(temp=20)
    net.motes[asks].press()
    office.advance(ANSWERED_S)
    of_button = index.told(f"SELECT {asks}, COUNT(*), SUM(light) FROM climate WHERE {within} AND light > 300")
    assert of_button[1] > 5
    assert [tuple(row.values())[-3:] for row in office.told(pressed)] == [of_button]
    [(node, temp, *found)] = [list(map(float, row.values()))[-4:] for row in office.told(hot)]
    assert (node, temp) == (other, pytest.approx(39.5, abs=0.05))
    of_heat = index.told(
        f"SELECT COUNT(*), MIN(temp) FROM climate WHERE {within} AND temp < {temp} - 15 AND nodeid <> {other}"
    )
    assert of_heat[0] > 5
    assert found == pytest.approx(of_heat)
    assert not office.told(acting)

    # Nobody listens at the root's line, nor says anything: the mote asks all the same.
    for mote in net.motes.values():
        mote.sense(temp=45)
    net.advance(f"{PERIOD_S * 4}s")
    assert not any("green" in mote.outputs for mote in net.motes.values())
    net.motes[asks].press()
    waited = 0
    while "green" not in net.motes[asks].outputs and waited < ANSWERED_S:
        net.advance("10s")
        waited += 10
    print(f"mote {asks} ({BOARDS[asks]}) acted {waited} s after its button was pressed")
    assert [number for number, mote in net.motes.items() if "green" in mote.outputs] == [asks]

    # A gateway that starts again knows what is asked, and where those stand that ask.
    texts = {query.sql for query in office.gateway.queries.all()}
    office.gateway.close()
    again = Office(net, tmp_path, monkeypatch)
    assert {query.sql for query in again.gateway.queries.all()} == texts
    assert not again.gateway.queries.ended()
    again.gateway.close()
