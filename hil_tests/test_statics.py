"""Static attributes on emulated motes of both boards: set while they run, by their description, kept over reboots, told to who is late."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hil_tests.desk import Desk
from skerry.catalog.tags import Tags
from skerry.network.commands import check
from skerry.service.attribute_service import AttributeService
from skerry.service.queries import Queries
from skerry_protocol.attributes import STATIC_ATTRIBUTES
from skerry_testbed.moving import Moves
from skerry_testbed.network import Fault, Mote
from skerry_testbed.pytest import MakeNetwork, disc, line_of

BOTH = ("iris", "cc2538")


class Users:
    """Who asks a desk's gateway, and sets attributes."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.queries = desk, Queries()
        self.attributes = AttributeService(
            threading.RLock(), desk.networks, self.queries, Tags(), lambda: None
        )

    def set(self, command: str, argument: int, mote: int | None) -> None:
        """As ``skerry run`` does."""
        action = check(command, argument, mote, self.queries.statics.all())
        name = action.name.removeprefix("set_")
        self.attributes.want(mote, {name: argument})
        self.attributes.sent(name, mote)
        self.desk.networks.run(action, argument, mote)

    def advance(self, seconds: int) -> None:
        """Let virtual time pass, with what the gateway does each second."""
        for _ in range(seconds):
            self.desk.advance(1)
            self.attributes.tell()

    def answered(self, sql: str, seconds: int) -> list[dict[str, Any]]:
        """Rows of a query that runs for so long."""
        user = self.desk.ask(sql, statics=self.queries.statics.all())
        self.advance(seconds)
        self.desk.stop(user)
        return self.desk.rows[user]


def test_values_are_read_where_they_were_set_and_outlive_a_reboot(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    motes = line_of(4, spacing=10, boards=BOTH)
    motes[3].boot = "100s"
    motes[1].attributes = {"rack": 7}
    net = network(motes, radio=disc(12), attributes=["rack"])
    users = Users(Desk(net, tmp_path, monkeypatch))
    users.attributes.run("CREATE ATTRIBUTE rack", "ada")
    users.attributes.run("CREATE ATTRIBUTE height m", "ada")
    users.advance(20)
    users.set("set_rack", 4, 2)
    users.set("set_rack", -5, 3)
    users.set("set_height", -32767, None)
    users.advance(20)
    net.motes[2].reboot()
    users.advance(120)
    rows = users.answered("SELECT nodeid, rack, height, board FROM sensors SAMPLE PERIOD 4 s", 40)
    assert {(row["nodeid"], row["rack"], row["height"], row["board"]) for row in rows} == {
        (0, None, -32767, 1), (1, 7, -32767, 2), (2, 4, -32767, 1), (3, -5, -32767, 2),
    }, "mote 3 came when all had been sent long ago"  # fmt: skip
    assert len(rows) >= 16
    chosen = users.answered(
        "SELECT nodeid FROM sensors WHERE rack > 0 AND height < 3 m SAMPLE PERIOD 4 s", 40
    )
    assert {row["nodeid"] for row in chosen} == {1, 2}
    groups = users.answered("SELECT rack, COUNT(*) AS n FROM sensors GROUP BY rack SAMPLE PERIOD 8 s", 60)
    assert {(row["rack"], row["n"]) for row in groups[-8:]} == {(None, 1), (-5, 1), (4, 1), (7, 1)}
    catalog = users.desk.networks.catalog
    assert {mote.nodeid: dict(mote.statics) for mote in catalog.all()} == {
        0: {49: -32767}, 1: {48: 7, 49: -32767}, 2: {48: 4, 49: -32767}, 3: {48: -5, 49: -32767},
    }  # fmt: skip


def test_all_ten_are_kept_and_a_new_attribute_has_none_of_an_old_ones_values(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"a{number}" for number in range(len(STATIC_ATTRIBUTES))]
    motes = [
        Mote(id=0, x=0, y=0, root=True),
        Mote(
            id=1, x=10, y=0, board="cc2538", attributes={name: -n for n, name in enumerate(names)}, floor=-2
        ),
    ]
    net = network(motes, radio=disc(12), attributes=names)
    users = Users(Desk(net, tmp_path, monkeypatch))
    for name in names:
        users.attributes.run(f"CREATE ATTRIBUTE {name}", "ada")
    users.advance(50)
    catalog = users.desk.networks.catalog
    mote = catalog.mote(1)
    assert mote is not None
    assert users.attributes.of(mote) == {"floor": -2} | {name: -n for n, name in enumerate(names)}
    users.attributes.run("DROP ATTRIBUTE a4", "ada")
    users.attributes.run("CREATE ATTRIBUTE other", "ada")
    users.advance(80)
    rows = users.answered("SELECT nodeid, other, a9 FROM sensors SAMPLE PERIOD 4 s", 20)
    assert {(row["nodeid"], row["other"], row["a9"]) for row in rows} == {(0, None, None), (1, None, -9)}
    # A page of flash holds 39 records; a network that runs a query passes commands on at once.
    user = users.desk.ask("SELECT other, a5 FROM sensors SAMPLE PERIOD 4 s", users.queries.statics.all())
    users.advance(20)
    for value in range(45):
        users.set("set_other", value, 1)
        users.advance(4)
    users.advance(20)
    net.motes[1].reboot()
    users.advance(60)
    users.desk.stop(user)
    own = [row["other"] for row in users.desk.rows[user] if row["a5"] == -5]
    assert own[-5:] == [44] * 5
    assert len(set(own)) > 39, "more records than a page holds were kept, one after the other"


def test_a_running_mote_is_told_where_it_is(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = network(line_of(3, spacing=10, boards=BOTH), radio=disc(12))
    users = Users(Desk(net, tmp_path, monkeypatch))
    for mote in (1, 2):
        users.desk.networks.place(mote, -350, 100_000 * mote)
    users.advance(20)
    mote = users.desk.networks.catalog.mote(2)
    assert mote is not None
    assert (mote.xpos, mote.ypos) == (-3.5, 2000.0), "it reports at once"
    net.motes[1].reboot()
    users.advance(60)
    sql = "SELECT nodeid, xpos, ypos FROM sensors WHERE dist(loc, point(-4 m, 1 km)) < 1 m SAMPLE PERIOD 4 s"
    rows = users.answered(sql, 20)
    assert {(row["nodeid"], row["xpos"], row["ypos"]) for row in rows} == {(1, -3.5, 1000.0)}


def test_motes_that_move_are_told_where_they_are(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is carried in a straight line, another is elsewhere at once."""
    motes = line_of(3, spacing=10, boards=BOTH)
    motes[1].path = [("60s", 10.0, 0.0), ("160s", 10.0, 10.0)]
    fault = Fault(at="80s", kind="move", mote=2, x=12.0, y=1.5)
    net = network(motes, radio=disc(15), faults=[fault])
    users, told = Users(Desk(net, tmp_path, monkeypatch)), list[tuple[int, float]]()

    def tell(mote: int, x: float, y: float) -> None:
        if not told:
            told.append((mote, -1.0))
            raise OSError("the gateway does not answer")
        told.append((mote, round(y, 1)))
        users.desk.networks.place(mote, round(x * 100), round(y * 100))

    Moves(net.bed, tell, waits=True)
    users.advance(250)
    assert [y for mote, y in told if mote == 2] == [1.5]
    along = [y for mote, y in told if mote == 1]
    assert along[0] == -1.0
    assert along[-1] == 10.0
    assert len(along) <= 6, "not with each step"
    rows = users.answered("SELECT nodeid, xpos, ypos FROM sensors SAMPLE PERIOD 4 s", 20)
    assert {(row["nodeid"], row["xpos"], row["ypos"]) for row in rows} == {
        (0, 0, 0),
        (1, 10, 10),
        (2, 12, 1.5),
    }
