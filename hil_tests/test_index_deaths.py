"""Motes that store tuples of an index die and come back: rows that come are right, and what is missing is named, wherever one looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

import skerry
from gateway.tests.served import served
from hil_tests.drawn_boxes import plain
from hil_tests.office import Office
from skerry.cli.queries import _tell_zones as tell_zones
from skerry.index.code import motes_code
from skerry.index.questions import codes, point
from skerry.planner.features.indexing import Index
from skerry.service.queries import UserQuery
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: All hear each other; who stores is on nobody else's way.
BOARDS = ("iris", "cc2538", "iris", "iris", "cc2538", "iris")
PERIOD_S, EPOCHS = 40, 5
#: Virtual s in which what was sampled has come to who stores it, and in which a mote that reboots has its queries again.
SETTLED_S, BACK_S = 240, 120
FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(40.0, 30.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.3, 0.5), amplitude=5.0, period="310 s"),
    }
)


def owner(index: Index, row: tuple[Any, ...]) -> int:
    """Whose zone a tuple is in: the code nearest to its own by XOR."""
    [part] = index.parts
    _, _, light, temp = row
    integers = (light, round(temp * 100))
    points = [point(axis.low, axis.high, value) for axis, value in zip(index.axes, integers, strict=True)]
    code, known = motes_code().code(points), codes(part.owners)
    return min(known, key=lambda node: known[node] ^ code)


class Asked:
    """Questions to an index of which each tuple's owner is known."""

    def __init__(self, office: Office, rows: list[tuple[Any, ...]], index: Index) -> None:
        self.office = office
        #: Those that were asked last.
        self.queries: list[UserQuery] = []
        self._owned = [(*row, owner(index, row)) for row in rows]
        epochs = [row[1] for row in rows]
        within = f"epoch BETWEEN {min(epochs)} AND {max(epochs)}"
        self.texts = [
            f"SELECT nodeid, epoch, light, temp FROM climate WHERE {within}",
            f"SELECT COUNT(*), MIN(temp), MAX(light), SUM(light) FROM climate WHERE {within} AND temp > 12",
            f"SELECT nodeid, COUNT(*), MAX(temp) FROM climate WHERE {within} AND light < 900 GROUP BY nodeid",
        ]

    def stored_by(self, *motes: int) -> int:
        """How many tuples these own."""
        return sum(row[-1] in motes for row in self._owned)

    def answers(self, living: set[int], queries: list[UserQuery]) -> list[dict[str, Any]]:
        """What is said of each answer, whose rows are DuckDB's over what the ``living`` store."""
        self.office.answers(queries)
        database = duckdb.connect()
        database.execute(
            "CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE, owner INTEGER)"
        )
        database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?, ?)", self._owned)
        database.execute(f"DELETE FROM climate WHERE owner NOT IN ({', '.join(map(str, living or {-1}))})")
        for text, query in zip(self.texts, queries, strict=True):
            rows = [tuple(row.values()) for row in self.office.told(query)]
            assert plain(rows) == plain(database.execute(text).fetchall()), text
        return [self.office.gateway.queries.indexed(query) or {} for query in queries]

    def ask(self) -> list[UserQuery]:
        """All of them."""
        self.queries = [self.office.ask(text) for text in self.texts]
        return self.queries


def test_what_dead_motes_store_is_named_and_comes_back_with_them(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    motes = grid(3, 2, spacing=5, boards=BOARDS)
    net = network(motes, radio=disc(15), environment=FIELDS)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(motes))
    sampled = office.ask(f"SELECT nodeid, epoch, light, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    kept = office.ask(
        f"CREATE INDEX climate ON sensors (JOINT (light FROM 200 TO 1000, temp FROM 10 TO 30)) SAMPLE PERIOD {PERIOD_S} s"
    )
    office.advance(EPOCHS * PERIOD_S)
    epochs = [row["epoch"] for row in office.told(sampled)]
    first, last = min(epochs) + 1, max(epochs)
    office.advance(SETTLED_S)
    rows = [tuple(row.values()) for row in office.told(sampled) if first <= row["epoch"] <= last]
    assert kept.index is not None
    asked = Asked(office, rows, kept.index)
    one, other = sorted(kept.index.storing)
    assert asked.stored_by(one)
    assert asked.stored_by(other)
    whole = asked.answers({one, other}, asked.ask())
    assert all(told["complete"] for told in whole)

    net.motes[other].kill()
    lacking = asked.ask()
    found = asked.answers({one}, lacking)
    assert [told["missing"] for told in found] == [[other]] * len(found)
    assert not any(told["complete"] for told in found)

    # It comes back while it is asked.
    again = asked.ask()
    office.advance(30)
    net.motes[other].reboot()
    found = asked.answers({one, other}, again)
    assert all(told["complete"] for told in found), found

    for mote in (one, other):
        net.motes[mote].kill()
    found = asked.answers(set(), asked.ask())
    assert [told["missing"] for told in found] == [[one, other]] * len(found)
    nobody = asked.queries[-1]
    for mote in (one, other):
        net.motes[mote].reboot()
    office.advance(BACK_S)
    assert all(told["complete"] for told in asked.answers({one, other}, asked.ask()))
    with served(office.gateway) as url:
        client = skerry.connect(url, user="ada")
        by_http = {entry["id"]: entry["indexed"] for entry in httpx.get(f"{url}/queries?user=ada").json()}
        assert by_http[lacking[0].id]["missing"] == [other]
        assert client.resume(lacking[0].id).status()["indexed"] == by_http[lacking[0].id]
        for query in (lacking[0], nobody, asked.queries[-1]):
            tell_zones(client.resume(query.id))
    first_said, second_said, third_said = capsys.readouterr().err.splitlines()[-3:]
    assert first_said.startswith(
        f"missing: mote {other} did not answer, ask again when it is back; 2 of the 2 motes"
    )
    assert second_said.startswith(
        f"missing: nobody answered: motes {one}, {other} alone may store what was asked for"
    )
    assert third_said.startswith("complete: 2 of the 2 motes")
    office.gateway.close()
