"""Where states of aggregates say all, motes send these and no tuples: the answer is the same, and the air is free sooner."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest

from bench.measuring.air import counted
from hil_tests.drawn_boxes import plain
from hil_tests.office import Office
from skerry.service.queries import UserQuery
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import MakeNetwork, disc, grid

BOARDS = ("iris", "cc2538", "cc2538")
PERIOD_S, EPOCHS, SETTLED_S = 40, 24, 300
#: Of which motes have few and many: what is asked by group of the latter takes more than their tuples.
BY_STATES = ("nodeid, COUNT(*)", "nodeid, AVG(temp), MIN(light), COUNT(light)", "nodeid, MAX(temp)")
BY_TUPLES = ("light, COUNT(*), SUM(temp), MAX(temp)", "epoch, COUNT(*), SUM(light), MAX(temp)")


def test_states_are_sent_in_place_of_tuples(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = Random(drawn_seed)
    net = network(grid(4, 3, spacing=10, boards=BOARDS), radio=disc(15), seed=drawn_seed)
    net.advance(0.5)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(300, lambda: bool(office.gateway.site.status()["motes"] == len(net.motes)))
    office.ask(
        f"CREATE INDEX climate ON sensors (JOINT (light FROM 0 TO 1000, temp FROM 10 TO 30)) SAMPLE PERIOD {PERIOD_S} s"
    )
    office.advance(80)
    first = int(net.line.network_time()) // PERIOD_S + 1
    for _ in range(EPOCHS):
        for mote in net.motes.values():
            mote.sense(light=round(rng.uniform(0, 1000)), temp=round(rng.uniform(10, 30), 2))
        office.advance(PERIOD_S)
    office.advance(SETTLED_S)
    what = f"FROM climate WHERE temp > 15 AND epoch BETWEEN {first} AND {first + EPOCHS - 1}"
    bundled = frozenset({PacketType.BUNDLE})

    def answered(select: str, behind: str = "") -> tuple[UserQuery, int]:
        """The query, and bytes of answers that it takes."""
        net.frames.clear()
        query = office.ask(f"SELECT {select} {what}{behind}")
        office.answers([query])
        assert (office.gateway.queries.indexed(query) or {})["complete"]
        return query, counted(net.frames, len(net.motes), bundled).total

    tuples, by_tuples = answered("nodeid, epoch, light, temp")
    states, by_states = answered("COUNT(*), SUM(light), MIN(temp)")
    rows = office.told(tuples)
    [row] = office.told(states)
    assert list(row.values()) == [
        len(rows), sum(one["light"] for one in rows), min(one["temp"] for one in rows),
    ]  # fmt: skip
    print(f"seed {drawn_seed}: {len(rows)} tuples: {by_tuples} bytes; their states: {by_states}")
    assert len(rows) > 150
    assert by_states * 2 < by_tuples

    database = duckdb.connect()
    database.execute("CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE)")
    database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?)", [tuple(one.values()) for one in rows])
    for asked in (*BY_STATES, *BY_TUPLES):
        behind = f" GROUP BY {asked.split(',')[0]}"
        text = office.gateway.queries.explain(f"SELECT {asked} {what}{behind}")["text"]
        assert ("sends a state of each aggregate for each nodeid" in text) == (asked in BY_STATES), text
        assert ("tuples travel, not states: by estimate" in text) == (asked in BY_TUPLES), text
        query, taken = answered(asked, behind)
        theirs = database.execute(f"SELECT {asked} {what}{behind}").fetchall()
        assert plain([tuple(one.values()) for one in office.told(query)]) == plain(theirs), asked
        print(f"{asked}: {taken} bytes for {len(theirs)} groups")
        # Frames that are repeated count as well, and some bundles go several times.
        assert asked in BY_TUPLES or taken < by_tuples
    office.gateway.close()
