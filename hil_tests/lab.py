"""The Intel lab in Berkeley: where its 54 motes stood, and the links that were measured between them."""

from __future__ import annotations

import numpy as np

from hil_tests.datasets import data
from skerry_testbed import radio
from skerry_testbed.network import Environment, Field, Mote, Network, Radio, check


def positions() -> dict[int, tuple[float, float]]:
    """Of motes 1..54; the gateway, 0, whose place is not told, stands in the middle."""
    lines = data("lab-mote-locations.txt").read_text().split("\n")
    places = {
        int(n): (float(x), float(y)) for n, x, y in (line.split() for line in lines[1:] if line.strip())
    }
    return {0: (20.0, 15.0), **places}


def links() -> dict[tuple[int, int], float]:
    """Measured delivery; what the gateway sent was not measured: as what it heard."""
    found: dict[tuple[int, int], float] = {}
    for line in data("lab-connectivity.txt").read_text().split("\n"):
        fields = line.split()
        if len(fields) == 3 and fields[0] != fields[1]:
            found[int(fields[0]), int(fields[1])] = float(fields[2])
    for sender, receiver in list(found):
        if receiver == 0:
            found[0, sender] = found[sender, 0]
    return found


def heard(network: Network) -> dict[tuple[int, int], float]:
    """Share of frames of 100 bytes that arrive on each link of a description, by mote id, without bursts."""
    model, motes = network.radio, network.mote
    found = radio.links(model, motes, np.random.default_rng(network.seed))
    return {
        (motes[a].id, motes[b].id): radio.reception(*link, model.noise_dbm, motes[b].board)
        for (a, b), link in found.items()
    }


def reachable(found: dict[tuple[int, int], float], least: float = 0.01, root: int = 0) -> set[int]:
    """Motes that have a way to the root and back over links of at least so much, each way."""
    reached, new = {root}, {root}
    while new:
        new = {
            b for (b, a), p in found.items() if a in new and b not in reached and p >= least and found.get((a, b), 0) >= least
        }  # fmt: skip
        reached |= new
    return reached


def lab(seed: int, model: Radio | None = None, scale: float = 1.0, board: str = "iris") -> Network:
    """The Intel lab, of one kind of boards; with its own links unless a model of others is given, and then its places may be ``scale``
    times as far apart."""
    motes = [
        Mote(id=n, x=scale * x, y=scale * y, root=n == 0, board=board) for n, (x, y) in positions().items()
    ]
    model = model or Radio(model="matrix", links=[(a, b, p) for (a, b), p in links().items()])
    return check(
        Network(
            name="lab",
            seed=seed,
            mote=motes,
            radio=model,
            environment=Environment(fields={"temp": Field(base=20, amplitude=5, noise=0.3)}),
        )
    )


def on_time(energy: dict[str, float]) -> float:
    """Seconds that the radio was on: receiving, sending or between them."""
    return energy["radio_rx_s"] + energy["radio_tx_s"] + energy["radio_idle_s"]
