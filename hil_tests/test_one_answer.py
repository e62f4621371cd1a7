"""An aggregate's answer is one row for each epoch, in their order, of all motes that are there; what it says of itself is true."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas
import pytest

from hil_tests.datasets import DATA
from hil_tests.desk import Desk
from hil_tests.lab import lab
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid

MakeDesk = Callable[[NetworkHandle], Desk]
FIELDS = Environment(
    fields={
        "temp": Field(base=20.0, gradient=(0.31, 0.17)),
        "light": Field(base=100.0, gradient=(7.0, 3.0)),
        "humidity": Field(base=40.0, gradient=(0.2, 0.1)),
    }
)
LIGHT = Environment(fields={"light": FIELDS.fields["light"]})


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDesk:
    return lambda net: Desk(net, tmp_path, monkeypatch)


def consecutive(epochs: list[int]) -> bool:
    return epochs == list(range(epochs[0], epochs[0] + len(epochs)))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "lab-connectivity.txt").exists(), reason=f"{DATA} is not here")
def test_the_labs_motes_give_a_row_for_each_epoch(desk: MakeDesk) -> None:
    counted = 0
    for seed in (1, 2, 3):
        made = desk(NetworkHandle(lab(seed)))
        made.advance(100)
        sql = "SELECT {}epoch, motes, AVG(temp), COUNT(*) AS n FROM sensors SAMPLE PERIOD 10 s FOR 2 min"
        plain, revised, soon = (made.ask(sql.format(more)) for more in ("", "revision, ", "0 AS soon, "))
        made.advance(300)
        rows = made.rows[plain]
        assert len(rows) == 12
        assert consecutive([row["epoch"] for row in rows])
        assert all(row["motes"] == row["n"] <= 54 for row in rows)
        counted += sum(row["n"] for row in rows)
        assert [row | {"soon": 0} for row in rows] == made.rows[soon]
        for row in rows:
            told = [one for one in made.rows[revised] if one["epoch"] == row["epoch"]]
            assert [one["revision"] for one in told] == list(range(len(told)))
            assert told[0] == row | {"revision": 0}
            assert [one["motes"] for one in told] == sorted(one["motes"] for one in told)
    # A mote whose links are all bad may hear of such a short query too late.
    assert counted > 0.98 * 3 * 12 * 54


@pytest.mark.slow
def test_counts_beside_groups_are_of_all_motes_and_raise_no_alarm(
    network: MakeNetwork, desk: MakeDesk
) -> None:
    made = desk(
        network(grid(4, 3, spacing=10, boards=("iris", "cc2538")), radio=disc(15), environment=FIELDS)
    )
    made.advance(100)
    counted = made.ask("SELECT epoch, motes, COUNT(*) AS n FROM sensors SAMPLE PERIOD 10 s")
    alarm = made.ask("SELECT COUNT(*) FROM sensors HAVING COUNT(*) < 12 SAMPLE PERIOD 10 s")
    groups = [
        made.ask(
            "SELECT epoch, motes, nodeid, AVG(temp), MAX(light), MIN(humidity), SUM(light) FROM sensors GROUP BY nodeid "
            f"SAMPLE PERIOD 10 s{more}"
        )
        for more in ("", " FOR 10 min", " WAIT 30 s")
    ]
    windows = made.ask("SELECT epoch, motes, COUNT(*, 20 s) AS n FROM sensors SAMPLE PERIOD 10 s")
    made.advance(330)
    rows = made.rows[counted]
    assert len(rows) >= 26
    assert consecutive([row["epoch"] for row in rows])
    first = next(place for place, row in enumerate(rows) if row["n"] == 12)
    assert {(row["n"], row["motes"]) for row in rows[first:]} == {(12, 12)}
    assert len(made.rows[alarm]) == first
    for user in groups:
        of_epochs = [(row["epoch"], row["nodeid"]) for row in made.rows[user]]
        assert of_epochs == [
            (epoch, node)
            for epoch in dict.fromkeys(e for e, _ in of_epochs)
            for node in sorted(made.net.motes)
        ]
        assert len(of_epochs) >= 26 * 12
        assert {row["motes"] for row in made.rows[user]} == {12}
    assert len(made.rows[windows]) >= 13
    assert [row["epoch"] for row in made.rows[windows]] == list(
        range(made.rows[windows][0]["epoch"], made.rows[windows][-1]["epoch"] + 1, 2)
    )
    assert {(row["motes"], row["n"]) for row in made.rows[windows][1:]} == {(12, 24)}


def draw(rng: random.Random) -> tuple[str, str, str]:
    """Aggregates, condition and groups of a query that somebody might ask."""
    asked = [
        "AVG(temp)",
        "COUNT(*)",
        "MAX(light)",
        "MIN(humidity)",
        "SUM(light)",
        "AVG(humidity)",
        "COUNT(temp)",
    ]
    where = rng.choice(["TRUE", "TRUE", f"light > {rng.randint(90, 180)}", f"temp > {rng.randint(20, 23)}"])
    return ", ".join(rng.sample(asked, rng.randint(1, 3))), where, rng.choice(["", "", "", "nodeid"])


@pytest.mark.slow
def test_users_who_come_and_go_have_each_a_row_for_each_epoch(network: MakeNetwork, desk: MakeDesk) -> None:
    """What motes see does not change, so that DuckDB knows each epoch's answer."""
    made = desk(
        network(grid(4, 3, spacing=10, boards=("iris", "cc2538")), radio=disc(15), environment=FIELDS)
    )
    made.advance(60)
    seen = made.ask("SELECT nodeid, temp, light, humidity FROM sensors ONCE")
    made.advance(80)
    readings = pandas.DataFrame(made.rows[seen])
    assert len(readings) == 12
    rng, queries, going = random.Random(5), {}, {}
    for now in range(0, 600, 5):
        for user in [user for user, until in going.items() if until <= now]:
            made.stop(user)
            del going[user]
        while len(going) < 8:
            what, where, groups = draw(rng)
            condition = "" if where == "TRUE" else f" WHERE {where}"
            period = rng.choice([5, 5, 10, 10, 20])
            text = f"SELECT epoch, motes, {f'{groups}, ' if groups else ''}{what} FROM sensors{condition}"
            by = f" GROUP BY {groups}" if groups else ""
            user = made.ask(f"{text}{by} SAMPLE PERIOD {period} s")
            queries[user], going[user] = (what, where, groups), now + rng.randint(80, 300)
        made.advance(5)
    told = short = 0
    for user, (what, where, groups) in queries.items():
        rows = made.rows[user]
        epochs = list(dict.fromkeys(row["epoch"] for row in rows))
        assert epochs == sorted(epochs)
        group = f"GROUP BY {groups} ORDER BY {groups}" if groups else ""
        answer = duckdb.sql(
            f"SELECT 12 AS motes, {f'{groups}, ' if groups else ''}{what} FROM readings WHERE {where} {group}"
        ).fetchall()
        for epoch in epochs:
            found = [list(row.values())[1:] for row in rows if row["epoch"] == epoch]
            motes = {values[0] for values in found}
            assert len(motes) == 1
            short += motes != {12}
            if motes == {12}:
                assert found == [pytest.approx(list(one), abs=1e-5) for one in answer]
        told += len(epochs)
    # Where a state of a mote has not come within 12 s, the row says so.
    assert short <= 0.02 * told, (short, told)
    assert told > 200, told


def test_what_an_event_starts_has_a_row_for_each_epoch(network: MakeNetwork, desk: MakeDesk) -> None:
    made = desk(network(grid(4, 3, spacing=10, boards=("iris", "cc2538")), radio=disc(15), environment=LIGHT))
    made.advance(60)
    seen = made.ask("SELECT nodeid, light FROM sensors ONCE")
    made.ask("SELECT nodeid FROM sensors WHERE temp > 50 SIGNAL hot SAMPLE PERIOD 1 s")
    counted = made.ask(
        "ON EVENT hot: SELECT epoch, motes, COUNT(*), AVG(light), MAX(light) FROM sensors SAMPLE PERIOD 4 s FOR 60 s"
    )
    made.advance(60)
    assert made.rows[counted] == []
    readings = pandas.DataFrame(made.rows[seen])
    assert len(readings) == 12
    made.net.motes[7].sense(temp=60.0)
    made.advance(2)
    made.net.motes[7].sense(temp=20.0)
    made.advance(120)
    rows = made.rows[counted]
    assert consecutive([row["epoch"] for row in rows])
    assert len(rows) >= 14
    [expected] = duckdb.sql("SELECT count(*), avg(light), max(light) FROM readings").fetchall()
    # Motes hear of the event one after another: the first epoch or two may be of those that have.
    whole = [list(row.values())[1:] for row in rows if row["motes"] == 12]
    assert whole == [pytest.approx([12, *expected], abs=1e-5)] * len(whole)
    assert len(whole) >= 12, [row["motes"] for row in rows]
