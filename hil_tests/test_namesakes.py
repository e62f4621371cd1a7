"""Two motes of one number in a network, on the firmware's real image: both are named, by themselves or by their reports."""

from __future__ import annotations

from collections import Counter

import pytest

from skerry.catalog import Catalog
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import ask, rows


def factories(net: NetworkHandle) -> dict[int, int]:
    """Factory numbers by the numbers that motes began with."""
    return {number: mote.settings.factory for number, mote in net.motes.items()}


def told(net: NetworkHandle) -> set[tuple[int, int, int]]:
    return {
        (r.body.node, r.body.factory, r.body.other) for r in net.line.records if r.type is PacketType.NAMESAKE
    }


def known(net: NetworkHandle) -> dict[int, tuple[int, int]]:
    """As the gateway finds by reports alone."""
    catalog = Catalog()
    for record in net.line.of(PacketType.STATUS):
        catalog.update(record.body, record.at)
    return catalog.namesakes(net.now)


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_motes_that_hear_each_other_say_so(network: MakeNetwork, seed: int) -> None:
    net = network(line_of(3, spacing=5), radio=disc(12), seed=seed)
    net.advance("30s")
    own = factories(net)
    assert len(set(own.values())) == 3
    net.motes[2].flash(nodeid=1)
    net.advance("40s")
    query = ask(net, 1, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 5 s")
    net.advance("40s")
    assert told(net) == {(1, own[1], own[2]), (1, own[2], own[1])}
    counted = Counter((row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query))
    assert counted[1, max(epoch for _, epoch in counted) - 1] == 2, "rows of both come to the gateway"


def test_of_motes_that_do_not_hear_each_other_reports_tell(network: MakeNetwork) -> None:
    motes = [Mote(id=number, x=number * 10, y=0, root=number == 2) for number in range(5)]
    net = network(motes, radio=disc(12))
    net.advance("30s")
    own = factories(net)
    net.motes[4].flash(nodeid=0)
    net.advance("150s")
    assert told(net) == set()
    assert known(net) == {0: (min(own[0], own[4]), max(own[0], own[4]))}


def test_who_has_the_roots_number_is_named_and_disturbs_nobody(network: MakeNetwork) -> None:
    """It hears the root; and it hears another, who passes it on."""
    net = network(line_of(4, spacing=10), radio=disc(12))
    net.advance("30s")
    own = factories(net)
    net.motes[3].flash(nodeid=0)
    net.advance("60s")
    assert told(net) == {(0, own[3], 0)}
    query = ask(net, 1, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 5 s")
    net.advance("60s")
    assert {row["nodeid"] for row in rows(net.line, 1, query) if row["at"] > net.now - 30} == {0, 1, 2}
    net.motes[1].flash(nodeid=0)
    net.advance("100s")
    assert told(net) == {(0, own[3], 0), (0, own[1], own[0])}
