"""Packets delivered of those that motes offer, by how many they offer: the paper's figure 15 on the emulated IRIS.

One mote, then four, around a root sample 2 to 16 times a second. A packet is a row, as in the paper: of one reading, of which
several travel in a frame, and of the twelve attributes that take most room. What the radio does not carry is left out by the
queue's policy, and counted in rows that arrive.
"""

from __future__ import annotations

import sys
from collections import Counter

from bench.machine import table
from hil_tests.queries import ask, rows
from skerry_protocol.packets import PacketType
from skerry_testbed.network import Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid

RATES = (2, 4, 8, 16)
SECONDS = 60
SEED = 15
ROWS = {
    "one reading": "accel_x",
    "12 attributes": "uptime, energy, xpos, ypos, accel_x, accel_y, voltage, free_ram, radio_duty, link, resets",
}


def measured(motes: int, rate: int, columns: str, policy: str) -> tuple[float, float, float]:
    """A second: rows that arrive, frames on the air, and samples that the rows account for."""
    description = Network(name="contention", seed=SEED, mote=grid(motes + 1, 1, spacing=2), radio=disc(30))
    net = NetworkHandle(check(description))
    net.advance("2.5s")
    net.line.connect()
    net.advance("30s")
    query = ask(
        net,
        1,
        f"SELECT {columns} FROM sensors WHERE level > 0 SAMPLE PERIOD {1000 // rate} ms QUEUE {policy}",
    )
    net.advance("30s")
    began = net.now
    net.advance(SECONDS)
    arrived = [row for row in rows(net.line, 1, query) if row["at"] >= began]
    assert len({(row["nodeid"], row["epoch"]) for row in arrived}) == len(arrived)
    accounted = sum(row["combined"] + row["left_out"] for row in arrived)
    sent = Counter(packet.type for frame, _, packet in net.packets() if frame.start_ns >= began * 1e9)
    return len(arrived) / SECONDS, sent[PacketType.BUNDLE] / SECONDS, accounted / SECONDS


def main() -> None:
    """Print the table."""
    shown = []
    for motes, (what, columns), policy in (
        (1, ("one reading", ROWS["one reading"]), "NAIVE"),
        *((4, row, policy) for row in ROWS.items() for policy in ("NAIVE", "DELTA")),
    ):
        found = []
        for rate in RATES:
            print(f"{motes} motes, {what}, {policy}, {rate}/s …", file=sys.stderr)
            found.append(measured(motes, rate, columns, policy))
        shown.append(
            (
                f"{motes} mote{'s' * (motes > 1)}, rows of {what}, {policy}",
                "; ".join(f"{a:.1f} ({f:.1f} frames, {c:.1f} accounted for)" for a, f, c in found),
                "never falls",
            )
        )
    rates = ", ".join(map(str, RATES))
    table(f"Rows a second that arrive of {rates} that each mote samples, seed {SEED}", shown)


if __name__ == "__main__":
    main()
