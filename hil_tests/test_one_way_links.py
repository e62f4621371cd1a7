"""Links that work one way alone: who hears well is not heard, and rows take another way before anybody misses them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from skerry_testbed.network import Mote, Network, Radio, check
from skerry_testbed.pytest import NetworkHandle
from skerry_testbed.queries import ask, rows

PERIOD_S = 10
#: From one row of a mote to the next, at most: two epochs, a control window of a slow network, and as much again.
SILENT_S = 60
#: Both ways of a link that is worth having; one way of one that is heard, and does not hear.
GOOD, HEARD = 0.8, 0.5
#: A ladder: 2 and 3 hear the root and each other, 4 and 5 them and each other, and so on.
ROWS, ROOT = 4, 1


def both(a: int, b: int, share: float = GOOD) -> list[tuple[int, int, float]]:
    """Both ways of a link."""
    return [(a, b, share), (b, a, share)]


def ladder() -> list[tuple[int, int, float]]:
    """Its links: steps, rungs and diagonals."""
    found = [link for mote in (2, 3) for link in both(ROOT, mote)] + both(2, 3)
    for low in range(4, 2 * ROWS + 2, 2):
        for mote in (low, low + 1):
            found += both(low - 2, mote) + both(low - 1, mote)
        found += both(low, low + 1)
    return found


def network_of(links: list[tuple[int, int, float]], seed: int) -> Network:
    """All motes that the links name."""
    motes = sorted({mote for a, b, _ in links for mote in (a, b)})
    return check(
        Network(
            name="one way",
            seed=seed,
            mote=[Mote(id=n, x=float(n), y=0, root=n == ROOT) for n in motes],
            radio=Radio(model="matrix", links=links),
        )
    )


def longest_silences(net: NetworkHandle, found: list[dict[str, float]], began: float) -> dict[int, float]:
    """Of each mote, s, from then on until now."""
    arrivals: dict[int, list[float]] = defaultdict(list)
    for row in found:
        if row["at"] >= began:
            arrivals[int(row["nodeid"])].append(row["at"])
    return {
        n: max(b - a for a, b in pairwise([began, *sorted(arrivals[n]), net.now]))
        for n in net.motes
        if n != ROOT
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_who_is_heard_and_does_not_hear_is_no_parent_for_long(seed: int) -> None:
    """The root and the first rungs are heard everywhere; only their neighbours reach them."""
    links = ladder()
    there = {(a, b) for a, b, _ in links}
    links += [
        (loud, mote, HEARD)
        for loud in (ROOT, 2, 3)
        for mote in range(4, 2 * ROWS + 2)
        if (loud, mote) not in there
    ]
    net = NetworkHandle(network_of(links, seed))
    net.advance(2.5)
    net.line.connect()
    net.advance("57.5s")
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance("30s")
    began = net.now
    net.advance("500s")
    silent = longest_silences(net, rows(net.line, 1, query), began)
    assert max(silent.values()) <= SILENT_S, silent


@pytest.mark.parametrize("seed", [1, 2])
def test_a_parent_that_acknowledges_nothing_any_more_is_left_within_two_epochs(seed: int) -> None:
    """It is heard as well as ever, and all other ways lead over motes that stand no closer to the root."""
    links = [*both(ROOT, 2), *both(ROOT, 3), *both(2, 4), *both(3, 5), *both(4, 5), *both(4, 6), *both(5, 7)]
    net = NetworkHandle(network_of(links, seed))
    net.advance(2.5)
    net.line.connect()
    net.advance("57.5s")
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance("240s")  # a slow network now: control windows each 16 s
    net.inject(kind="link_down", mote=4, to=2)
    began = net.now
    net.advance("200s")
    found = rows(net.line, 1, query)
    silent = longest_silences(net, found, began)
    assert max(silent.values()) <= SILENT_S, silent
    assert [row["parent"] for row in found if row["nodeid"] == 4][-1] == 5
