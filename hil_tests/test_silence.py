"""What it costs a parent that its children have nothing to say; and what they have to say arrives all the same."""

from __future__ import annotations

import pytest

from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import ask, rows

BOARDS = ("iris", "cc2538")
WARM = Environment(fields={"temp": Field(base=20.0)})
#: Of a cell in which nothing comes, s (CELL_TICKS of firmware/net/schedule/rx_window.c).
CELL_S = 0.008
#: Rounds that have data slots whatever is asked, each 32 s, fall everywhere beside such epochs; so many of them are five times 512 s, in
#: which each mote reports once.
PERIOD_S, EPOCHS = 20, 128


def listened_s(net: NetworkHandle, seconds: float) -> dict[int, float]:
    """In that time, by mote."""

    def now() -> dict[int, float]:
        meters = {mote: net.motes[mote].energy for mote in net.motes}
        return {mote: meter["radio_rx_s"] + meter["radio_idle_s"] for mote, meter in meters.items()}

    before = now()
    net.advance(f"{seconds}s")
    return {mote: seconds - before[mote] for mote, seconds in now().items()}


@pytest.mark.slow
def test_an_epoch_in_which_a_child_is_silent_takes_two_cells(network: MakeNetwork) -> None:
    """0 - 1 - 2 - 3: 1 and 2 have a child each. A round in 32 s has data slots of its own: in it they listen in any case, and where it
    comes among those of an epoch, in one more: 17 cells more than at rest in 8 epochs. With its start the radio takes more than 8 ms."""
    net = network(line_of(4, spacing=10, boards=BOARDS), radio=disc(12), environment=WARM)
    net.advance("300s")
    at_rest = listened_s(net, EPOCHS * PERIOD_S)
    query = ask(net, 1, f"SELECT nodeid FROM sensors WHERE temp > 60 SAMPLE PERIOD {PERIOD_S} s")
    net.advance("120s")
    asked = listened_s(net, EPOCHS * PERIOD_S)
    assert rows(net.line, 1, query) == []
    cells = {mote: (asked[mote] - at_rest[mote]) / EPOCHS / CELL_S for mote in net.motes}
    print({mote: round(number, 2) for mote, number in cells.items()})
    for mote in (1, 2):
        assert 1.5 < cells[mote] < 2.6, cells
    assert abs(cells[3]) < 0.2, "who has no children listens to nobody"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_of_who_might_have_been_silent_are_not_lost_over_lossy_links(
    network: MakeNetwork, seed: int
) -> None:
    """Of ten frames or acknowledgements two are lost: what has not come through in the first two rounds comes with a later epoch's."""
    net = network(
        line_of(5, spacing=10, boards=BOARDS), radio=disc(12, reception=0.8), environment=WARM, seed=seed
    )
    net.advance("200s")
    end = int(net.line.network_time()) + 10 + 15 * PERIOD_S
    query = ask(
        net, 1, f"SELECT temp FROM sensors WHERE temp > 0 SAMPLE PERIOD {PERIOD_S} s", end=end, lead_s=60
    )
    net.advance(f"{15 * PERIOD_S + 120}s")
    found = {(row["nodeid"], row["epoch"]) for row in rows(net.line, 1, query)}
    epochs = sorted({epoch for _, epoch in found})
    assert len(epochs) >= 12
    missing = {(node, epoch) for node in net.motes for epoch in epochs} - found
    assert not missing, (seed, missing)


@pytest.mark.parametrize(
    ("sql", "least_s", "most_s"),
    [
        (f"SELECT nodeid FROM sensors WHERE temp > 60 SAMPLE PERIOD {PERIOD_S} s", 0.0, 0.3),
        (
            "SELECT s.nodeid, t.nodeid FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
            f"WHERE s.room = t.room AND s.temp > 60 AND t.temp > 60 SAMPLE PERIOD {PERIOD_S} s JOIN AT BASE",
            0.5,
            0.8,
        ),
    ],
    ids=["plain", "joined"],
)
def test_a_root_listens_on_where_rows_are_joined(
    network: MakeNetwork, sql: str, least_s: float, most_s: float
) -> None:
    """Motes below it count on that: what comes to them late goes on at once. A slot takes 80 ms and more, and an epoch has nine rounds."""
    net = network(line_of(2, spacing=10, boards=BOARDS), radio=disc(12), environment=WARM)
    net.advance("200s")
    epochs = 24
    at_rest = listened_s(net, epochs * PERIOD_S)
    query = ask(net, 1, sql)
    net.advance("120s")
    asked = listened_s(net, epochs * PERIOD_S)
    assert rows(net.line, 1, query) == []
    of_root, below = ((asked[mote] - at_rest[mote]) / epochs for mote in (0, 1))
    print(f"root {of_root:.3f} s, mote 1 {below:.3f} s in an epoch")
    assert least_s < of_root < most_s
    assert abs(below) < 0.01, "who has no children listens to nobody"
