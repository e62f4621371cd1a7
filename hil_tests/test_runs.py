"""Whole networks as they are shipped, and that a run is its seed."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

import pytest

from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid
from skerry_testbed.queries import ask

NETWORKS = Path(__file__).resolve().parent.parent / "testbed" / "networks"
REDWOOD = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "redwood-log.parquet"


def some_run(network: MakeNetwork, seed: int) -> NetworkHandle:
    net = network(grid(3, 3, spacing=10), radio=disc(15, reception=0.85), seed=seed)
    net.advance("20s")
    ask(net, 1, "SELECT temp, light FROM sensors SAMPLE PERIOD 2 s")
    net.advance("40s")
    return net


def test_two_runs_of_a_seed_are_the_same_to_the_bit(network: MakeNetwork) -> None:
    one, other = some_run(network, 5), some_run(network, 5)
    assert len(one.frames) > 400
    assert one.frames == other.frames
    assert one.report() == other.report()


def test_another_seed_is_another_run(network: MakeNetwork) -> None:
    assert some_run(network, 5).frames != some_run(network, 6).frames


@pytest.mark.slow
def test_the_demo_network_delivers(network: MakeNetwork) -> None:
    """20 motes over three hops and more: 99.9 % of the rows, each once, over links that are good."""
    net = network(NETWORKS / "demo.toml")
    net.advance("37s")
    ask(net, 1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s FOR 300 s")
    net.advance("335s")
    report = net.report()
    assert max(mote["level"] for mote in report["motes"]) >= 3
    (query,) = report["queries"]
    assert query["duplicates"] == 0
    assert query["delivered"] >= 0.999 * 20 * 60
    sent, heard = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for frame, header, _ in net.packets():
        if header.acknowledged:
            link = header.source, header.destination
            sent[link] += 1
            heard[link] += frame.received_by > 0
    shares = sorted(heard[link] / count for link, count in sent.items() if count >= 20)
    # A link that gets more than half of its frames across costs less than two good ones; those in use are mostly good.
    assert shares[0] > 0.5
    assert statistics.median(shares) > 0.95


@pytest.mark.skipif(not REDWOOD.exists(), reason=f"{REDWOOD} is not here")
def test_the_redwood_network_delivers(network: MakeNetwork) -> None:
    net = network(NETWORKS / "redwood.toml")
    net.advance("40s")
    ask(net, 1, "SELECT nodeid, temp, humidity, light FROM sensors SAMPLE PERIOD 10 s FOR 100 s")
    net.advance("140s")
    report = net.report()
    assert max(mote["level"] for mote in report["motes"]) >= 5
    (query,) = report["queries"]
    assert (query["delivered"], query["duplicates"]) == (12 * 10, 0)
