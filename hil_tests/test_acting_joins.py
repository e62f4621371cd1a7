"""What two rows that match do, the mote does that joins them: it acts and raises events while nothing listens at the root's line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil_tests.office import Office
from skerry_testbed.network import Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc

#: The root, mote 1 beside it, and behind that, out of the root's range, 2 and 3.
PLACES = ((0, 0), (10, 0), (20, 3), (20, -3))
PAIR = (
    "SELECT s.nodeid, s.epoch, t.nodeid, t.epoch FROM sensors AS s, sensors AS t WINDOW 2 ROWS "
    "WHERE s.nodeid < t.nodeid AND s.nodeid > 1 AND s.temp - t.temp > 2 "
)
#: Virtual s until rows of a period of 10 s are joined at a mote, by their own way and by that of the tree, with some time to spare.
JOINED_S = 120


def office_of(
    network: MakeNetwork, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[NetworkHandle, Office]:
    boards = ("cc2538", host, "iris", "cc2538")
    motes = [
        Mote(id=number, x=x, y=y, root=number == 0, board=board)
        for number, ((x, y), board) in enumerate(zip(PLACES, boards, strict=True))
    ]
    net = network(motes, radio=disc(12), seed=3)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(motes))
    temperatures(net, 20, 20)
    return net, office


def temperatures(net: NetworkHandle, of_s: float, of_t: float) -> None:
    net.motes[2].sense(temp=of_s)
    net.motes[3].sense(temp=of_t)


def lit(net: NetworkHandle, colour: str) -> set[int]:
    return {number for number, mote in net.motes.items() if colour in mote.outputs}


@pytest.mark.parametrize(("host", "where"), [("iris", "AT ANCESTOR"), ("cc2538", "IN NETWORK")])
def test_the_mote_that_joins_acts_while_the_gateway_is_away(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, where: str
) -> None:
    net, office = office_of(network, host, tmp_path, monkeypatch)
    asked = office.ask(f"{PAIR} OUTPUT ACTION leds(2) SAMPLE PERIOD 10 s JOIN {where}")
    office.advance(2 * JOINED_S)
    [joined] = office.gateway.site.status()["joins"]
    [placed] = joined["hosts"]
    assert placed["pairs"] == [[2, 3]]
    assert not office.told(asked)
    assert lit(net, "green") == set(), "no own row acts, and no row of a child"
    office.gateway.close()

    temperatures(net, 25, 20)
    net.advance(f"{JOINED_S}s")
    assert lit(net, "green") == {placed["mote"]}


def test_an_event_of_two_rows_starts_a_query_with_what_it_was_told(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, office = office_of(network, "iris", tmp_path, monkeypatch)
    asked = office.ask(
        f"{PAIR} OUTPUT ACTION SIGNAL apart(s.temp) OUTPUT ACTION leds(t.nodeid) SAMPLE PERIOD 10 s JOIN AT ANCESTOR"
    )
    started = office.ask("ON EVENT apart(temp) SELECT nodeid, event.nodeid AS at, event.temp AS told ONCE")
    office.advance(JOINED_S)
    assert not office.told(asked)
    temperatures(net, 25, 20)
    office.advance(2 * JOINED_S)
    assert {(row["s.nodeid"], row["t.nodeid"]) for row in office.told(asked)} == {(2, 3)}
    assert len(office.told(asked)) > 5
    assert net.motes[1].outputs >= {"red", "green"}, "3: the number of t's mote"
    rows = [(row["nodeid"], row["at"], row["told"]) for row in office.told(started)]
    assert sorted(rows) == [(number, 1, 25.0) for number in net.motes], (
        "the first of several raises it, and each mote starts once"
    )
    temperatures(net, 20, 20)
    office.advance(JOINED_S)
    temperatures(net, 26, 20)
    office.advance(2 * JOINED_S)
    assert len(office.told(started)) == 2 * len(net.motes), "it is raised anew where two match after none has"
    office.gateway.close()
