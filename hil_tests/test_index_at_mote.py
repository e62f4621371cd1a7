"""Questions that a mote asks of an index, and others answer, past the gateway: rows are DuckDB's over what was sampled, and the mote acts
while nothing listens at the root's line."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from hil_tests.office import Office
from skerry.sql.errors import QueryError
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: All hear each other.
BOARDS = ("iris", "cc2538", "iris", "cc2538", "cc2538", "iris")
STORING = [1, 3, 4]
PERIOD_S, EPOCHS = 40, 5
#: Virtual s in which what was sampled has come to who stores it, and ways to the mote that gathers have been opened.
SETTLED_S, OPENED_S = 260, 400


def test_a_mote_asks_and_acts_while_the_gateway_is_away(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(3, 2, spacing=5, boards=BOARDS), radio=disc(15))
    office = Office(net, tmp_path, monkeypatch)
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
    gathers, acts = rng.sample(STORING, 2)
    with pytest.raises(QueryError, match="mote 5 does not store index climate"):
        office.ask("SELECT COUNT(*) FROM climate AT MOTE 5")
    within = f"epoch BETWEEN {first} AND {last} AND temp > 15 AND light < 900"
    what = "COUNT(*), SUM(light), AVG(temp)"
    asked = office.ask(f"SELECT {what} FROM climate WHERE {within} AT MOTE {gathers} SAMPLE PERIOD 80 s")
    never = office.ask(
        f"SELECT MAX(temp) FROM climate WHERE {within} AT MOTE {gathers} HAVING MAX(temp) > 35"
    )
    office.ask(
        f"SELECT COUNT(*) FROM climate WHERE temp > 40 AT MOTE {acts} HAVING COUNT(*) > 3 OUTPUT ACTION leds(2) SAMPLE PERIOD 60 s"
    )
    office.advance(OPENED_S)
    database = duckdb.connect()
    database.execute("CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE)")
    database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?)", rows)
    [(count, total, mean)] = database.execute(f"SELECT {what} FROM climate WHERE {within}").fetchall()
    told = [tuple(row.values())[-3:] for row in office.told(asked)]
    assert count > 5
    assert told
    assert told[-1][:2] == (count, total)
    assert told[-1][2] == pytest.approx(mean, abs=0.00501)
    assert not office.told(never)

    # Nobody listens at the root's line, nor says anything.
    assert "green" not in net.motes[acts].outputs
    for mote in net.motes.values():
        mote.sense(temp=45)
    waited = 0
    while "green" not in net.motes[acts].outputs and waited < 1500:
        net.advance("10s")
        waited += 10
    print(
        f"mote {acts} acted after {waited} s without a gateway; mote {gathers} gathered {count} tuples' aggregates"
    )
    assert "green" in net.motes[acts].outputs
    assert not any("green" in mote.outputs for number, mote in net.motes.items() if number != acts)
    office.gateway.close()
