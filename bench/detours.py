"""How late rows are that have to take another way, after a link dies. ``python -m bench.detours``

A ladder of two by six motes, links that lose a twentieth of the frames of 100 bytes. Either the link from mote 3 to its parent is cut, and
those of its neighbours that are left stand no closer to the root than itself: with later news of the root alone it may follow one. Or a
mote between both sides, which hears each, loses one of them, and takes the other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from hil_tests.queries import ask, rows
from skerry_testbed.network import Mote, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid

#: Network seconds until the tree stands and is old enough to be slow; rows of so long are looked at, and for so long waited for.
TREE_S, ROWS_S, WAIT_S = 400, 60, 400
PERIODS = (5, 30, 60)
#: The number of a mote that hears two closer to the root, and its place in m.
BETWEEN = 12
PLACE = (25.0, 5.0)


def motes_of(closer: bool) -> list[Mote]:
    """The ladder, and what is between its sides if one closer to the root is to be heard."""
    motes = grid(6, 2, spacing=10)
    return [*motes, Mote(id=BETWEEN, x=PLACE[0], y=PLACE[1])] if closer else motes


def lateness(seed: int, *, closer: bool, period_s: int) -> float:
    """Of the latest row of :data:`ROWS_S` after the cut, s behind its epoch; infinite where one has not come."""
    mote = BETWEEN if closer else 3
    description = Network(
        name="detours", seed=seed, mote=motes_of(closer), radio=disc(12, 0.95), clock_ppm=40.0
    )
    with contextlib.redirect_stdout(io.StringIO()):  # the table's first line tells the seeds
        net = NetworkHandle(check(description))
    net.advance("2.5s")
    net.line.connect()
    net.advance("20s")
    query = ask(net, 1, f"SELECT parent FROM sensors SAMPLE PERIOD {period_s} s")
    # Cuts at different moments of the control windows and epochs.
    net.advance(TREE_S + 7 * seed % period_s)
    parent = next(row["parent"] for row in reversed(rows(net.line, 1, query)) if row["nodeid"] == mote)
    cut, network_time = net.now, net.line.network_time()
    for sender, receiver in ((mote, parent), (parent, mote)):
        net.inject(kind="link_down", mote=sender, to=receiver)
    net.advance(WAIT_S)
    found = [
        row["at"] - cut - (row["epoch"] * period_s - network_time)
        for row in rows(net.line, 1, query)
        if row["nodeid"] == mote and network_time < row["epoch"] * period_s < network_time + ROWS_S
    ]
    return max(found) if len(found) == ROWS_S // period_s else float("inf")


def line(name: str, period_s: int, found: Iterable[float]) -> str:
    """One of the table."""
    late = sorted(found)
    within = sum(one < 2 * period_s + 4 for one in late)
    shown = (
        f"{name}",
        f"{period_s} s",
        f"{statistics.median(late):.0f} s",
        f"{within} of {len(late)}",
        f"{late[-1]:.0f} s",
    )
    return f"| {' | '.join(shown)} |"


def main() -> None:
    """The table, a line as soon as it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=24, help="runs of each kind")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print(f"seeds 1 to {options.seeds}; the latest row of the {ROWS_S} s after the cut")
    print("| another way | period | median | within two periods and a control window of 4 s | worst |")
    print("| --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(options.processes) as pool:
        for closer in (True, False):
            name = "over a mote closer to the root" if closer else "over none that is closer"
            for period_s in PERIODS:
                one = partial(lateness, closer=closer, period_s=period_s)
                print(line(name, period_s, pool.map(one, range(1, options.seeds + 1))), flush=True)


if __name__ == "__main__":
    main()
