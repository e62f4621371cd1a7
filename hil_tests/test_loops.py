"""Ways to the root that lead in a circle: none, whatever happens to links and motes."""

from __future__ import annotations

import itertools
import random

import pytest

from hil_tests.soaked import soaked
from hil_tests.trees import loop_among, tree_seen
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid
from skerry_testbed.queries import ask, rows

COLUMNS, ROWS = 5, 4
MOTES = range(COLUMNS * ROWS)
LINKS = [
    (a, b)
    for a, b in itertools.combinations(MOTES, 2)
    if abs(a % COLUMNS - b % COLUMNS) <= 1 and abs(a // COLUMNS - b // COLUMNS) <= 1
]


def both_ways(net: NetworkHandle, kind: str, link: tuple[int, int]) -> None:
    for mote, to in (link, link[::-1]):
        net.inject(kind=kind, mote=mote, to=to)


def test_a_loop_is_seen() -> None:
    assert loop_among({1: 0, 2: 1, 3: 2}) == ()
    assert loop_among({1: 3, 2: 1, 3: 2, 4: 3, 5: 0}) == (1, 3, 2)


def test_who_lost_the_root_does_not_take_it_from_each_other(network: MakeNetwork) -> None:
    """Neighbours that have had their own way by a mote were its parents by turns, at ever deeper levels, for five to twenty minutes."""
    net = network(grid(COLUMNS, ROWS, spacing=10), radio=disc(15), seed=1)
    net.advance("20s")
    query = ask(net, 1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    net.advance("100s")
    before = tree_seen(net).deepest
    net.frames.clear()
    cut = net.now
    around = [link for link in LINKS if 0 in link]
    for link in around:
        both_ways(net, "link_down", link)
    net.advance("5min")
    seen = tree_seen(net)
    assert not seen.loops
    assert seen.deepest <= before + 2
    # After fifteen windows without the root its neighbours are sure of it; then the others have to hear of that.
    assert seen.last - cut < 160
    for link in around:
        both_ways(net, "link_up", link)
    net.advance("60s")
    healed = net.now
    net.advance("60s")
    found = {
        (row["nodeid"], row["epoch"])
        for row in rows(net.line, 1, query)
        if healed <= row["at"] - 5 < healed + 40
    }
    assert {node for node, _ in found} == set(MOTES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "period", "turn_s"),
    [(1, "5 s", 20), (1, "30 s", 60), *soaked([(2, "5 s", 20), (2, "30 s", 60)])],
)
def test_links_that_come_and_go_make_no_loops(
    network: MakeNetwork, seed: int, period: str, turn_s: int
) -> None:
    """Three each turn, of 55, a third of which are missing after a while."""
    net = network(grid(COLUMNS, ROWS, spacing=10), radio=disc(15, 0.95), seed=seed)
    net.advance("20s")
    query = ask(net, 1, f"SELECT temp FROM sensors SAMPLE PERIOD {period}")
    net.advance("300s")
    net.frames.clear()
    began, chance = net.now, random.Random(seed)
    down: list[tuple[int, int]] = []
    for _ in range(30):
        for _ in range(3):
            if down and (len(down) > 18 or chance.random() < 0.3):
                both_ways(net, "link_up", down.pop(chance.randrange(len(down))))
            else:
                down.append(chance.choice([link for link in LINKS if link not in down]))
                both_ways(net, "link_down", down[-1])
        net.advance(turn_s)
    ended = net.now
    net.advance("120s")
    assert tree_seen(net).loops == []
    found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query) if began <= row["at"] < ended}
    epochs = {epoch for _, epoch in found}
    assert len(found) >= 0.97 * len(MOTES) * len(epochs)
