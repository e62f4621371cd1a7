"""CC2538 motes beside IRIS motes: one firmware above the drivers, one network."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from skerry.ingest.partial_states import from_packet, merge_partials
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid, line_of
from skerry_testbed.queries import ask, rows

SLOPE = Environment(
    fields={
        "temp": Field(base=20.0, gradient=(0.31, 0.17)),
        "light": Field(base=100.0, gradient=(7.0, 3.0)),
        "humidity": Field(base=40.0, gradient=(0.2, 0.1)),
        "accel_x": Field(base=-0.5, gradient=(0.01, 0.0)),
        "accel_y": Field(base=0.25),
        "voltage": Field(base=2.9),
    }
)
#: LSB of what the analogue board measures (13 bits of 1.19 V, or of the supply), and of the IRIS's sensors.
RESOLUTION = {
    "temp": 0.025,
    "humidity": 0.045,
    "light": 1.0,
    "accel_x": 0.012,
    "accel_y": 0.012,
    "voltage": 0.02,
}


def test_a_network_of_cc2538_motes_measures_over_several_hops(network: MakeNetwork) -> None:
    net = network(line_of(5, spacing=10, boards=["cc2538"]), radio=disc(12), environment=SLOPE)
    net.advance("20s")
    query = ask(
        net,
        1,
        "SELECT temp, humidity, light, accel_x, accel_y, voltage, level FROM sensors SAMPLE PERIOD 5 s",
    )
    net.advance("40s")
    found = rows(net.line, 1, query)
    last = {row["nodeid"]: row for row in found}
    assert len({(row["nodeid"], row["epoch"]) for row in found}) == len(found) >= 5 * 5
    for node in range(5):
        seen = {
            "temp": 20 + 3.1 * node, "humidity": 40 + 2 * node, "light": 100 + 70 * node, "accel_x": -0.5 + 0.1 * node,
            "accel_y": 0.25, "voltage": 2.9,
        }  # fmt: skip
        assert last[node]["level"] == node
        for attribute, value in seen.items():
            assert last[node][attribute] == pytest.approx(value, abs=RESOLUTION[attribute]), attribute


def test_a_failed_sensor_is_null_and_the_others_go_on(network: MakeNetwork) -> None:
    still = Environment(fields={"humidity": SLOPE.fields["humidity"]})
    net = network(line_of(2, spacing=10, boards=["cc2538"]), environment=still)
    net.advance("20s")
    query = ask(net, 1, "SELECT temp, light, humidity FROM sensors SAMPLE PERIOD 5 s")
    net.motes[1].sense(temp=float("nan"), light=9000.0)
    net.advance("30s")
    last = [row for row in rows(net.line, 1, query) if row["nodeid"] == 1][-1]
    assert last["temp"] is None
    assert last["light"] is None, "9,000 lx are beyond 1.19 V"
    assert last["humidity"] == pytest.approx(42, abs=0.1)


MIXED = ["iris", "cc2538"]
ROWS = "SELECT nodeid, light FROM sensors SAMPLE PERIOD 5 s"
AVERAGE = "SELECT AVG(light), COUNT(*), MAX(light) FROM sensors SAMPLE PERIOD 5 s"


def mixed_run(network: MakeNetwork, root: int) -> tuple[NetworkHandle, Any, Any]:
    net = network(
        grid(5, 4, spacing=10, boards=MIXED, root=root), radio=disc(15, reception=0.97), environment=SLOPE
    )
    net.advance("35s")
    plain, whole = ask(net, 1, ROWS), ask(net, 2, AVERAGE)
    net.advance("80s")
    return net, plain, whole


@pytest.mark.parametrize("root", [0, 1], ids=["iris root", "cc2538 root"])
def test_ten_and_ten_route_for_each_other_and_aggregate_together(network: MakeNetwork, root: int) -> None:
    """The same trace gives the same rows, whichever chip the root is."""
    net, plain, whole = mixed_run(network, root)
    assert [mote.description.board for mote in net.motes.values()].count("cc2538") == 10
    expected = {node: 100 + 70 * (node % 5) + 30 * (node // 5) for node in range(20)}
    found = rows(net.line, 1, plain)
    assert {(row["nodeid"], row["light"]) for row in found} == set(expected.items())
    epochs = {row["epoch"] for row in found}
    full = sorted(epochs)[1:-2]
    assert len(full) >= 8
    assert {(row["nodeid"], row["epoch"]) for row in found} >= {
        (node, epoch) for node in expected for epoch in full
    }

    parts: dict[int, list[Any]] = {}
    for record in net.line.of(PacketType.PARTIAL, 2):
        parts.setdefault(record.body.epoch, []).append(from_packet(whole, record.body))
    for epoch in full:
        merged = merge_partials(whole, parts[epoch])
        assert merged.motes == 20
        columns = zip(whole.columns, merged.states, strict=True)
        states = {column.aggregate.name: state for column, state in columns}
        assert states["AVG"] == (20, sum(expected.values()))
        assert states["MAX"] == (20, max(expected.values()))


def test_boards_take_turns_on_the_way_to_the_root(network: MakeNetwork) -> None:
    """In a line each mote's parent is of the other kind."""
    net = network(line_of(5, spacing=10, boards=["iris", "cc2538"]), radio=disc(12), environment=SLOPE)
    net.advance("25s")
    query = ask(net, 1, "SELECT light, parent FROM sensors SAMPLE PERIOD 3 s")
    net.advance("40s")
    found = rows(net.line, 1, query)
    assert {(row["nodeid"], row["parent"]) for row in found if row["nodeid"]} == {
        (n, n - 1) for n in range(1, 5)
    }
    assert min(sum(row["nodeid"] == node for row in found) for node in range(5)) >= 8


@pytest.mark.parametrize("boards", [["cc2538"], MIXED], ids=["cc2538", "mixed"])
def test_two_runs_of_a_seed_are_the_same_to_the_bit(network: MakeNetwork, boards: list[str]) -> None:
    runs = []
    for _ in range(2):
        net = network(grid(3, 3, spacing=10, boards=boards), radio=disc(15, reception=0.85), seed=5)
        net.advance("20s")
        ask(net, 1, "SELECT temp, light FROM sensors SAMPLE PERIOD 2 s")
        net.advance("40s")
        runs.append(net)
    assert len(runs[0].frames) > 300
    assert runs[0].frames == runs[1].frames
    assert runs[0].report() == runs[1].report()


def test_settings_in_flash_survive_reboots_and_the_turn_of_the_page(network: MakeNetwork) -> None:
    """39 records fill a page; the next goes to the other one, and so on."""
    net = network(line_of(2, spacing=10, boards=["cc2538"]), radio=disc(15))
    mote = net.motes[1]
    assert mote.settings.boots == 1
    for _ in range(5):
        mote.reboot()
        net.advance("0.1s")
    assert (mote.settings.boots, mote.settings.nodeid) == (6, 1)
    for _ in range(2 * 64):
        mote.reboot()
        net.advance("0.1s")
    assert (mote.settings.boots, mote.settings.nodeid) == (134, 1)
    net.advance("40s")
    statuses = [record.body for record in net.line.of(PacketType.STATUS) if record.body.node == 1]
    assert statuses[-1].boots == 134


def test_a_sleeping_iris_mote_is_awake_for_a_crystal_period_at_each_overflow(network: MakeNetwork) -> None:
    """Less, and a real one would not wake again (2549Q, p. 187); here where its clock is 10 % fast, too. But not twice as long."""
    net = network(line_of(2, spacing=10), radio=disc(12))
    net.advance("20s")
    awake = []
    for _ in range(128):  # ten overflows each
        before = net.motes[1].energy["cpu_active_s"]
        net.advance(10 / 128)
        awake.append((net.motes[1].energy["cpu_active_s"] - before) / 10)
    assert min(awake) > 1.1 / 32768
    assert statistics.median(awake) < 1.5 / 32768


def test_a_sleeping_cc2538_mote_draws_microamperes(network: MakeNetwork) -> None:
    net = network(line_of(3, spacing=10, boards=["cc2538"]), radio=disc(15))
    net.advance("60s")
    before = net.motes[1].energy
    net.advance("60s")
    after = net.motes[1].energy
    spent = {key: after[key] - before[key] for key in after}
    assert spent["cpu_save_s"] > 0.9 * 60
    assert spent["cpu_save_j"] == pytest.approx(spent["cpu_save_s"] * 1.3e-6 * 3.0)
    assert spent["cpu_active_s"] < 0.01 * 60
    assert spent["radio_rx_s"] < 0.05 * 60
    total = sum(value for key, value in spent.items() if key.endswith("_s"))
    assert total == pytest.approx(2 * 60, rel=1e-6), "each of CPU and radio is in one state at a time"


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_a_busy_channel_leaves_no_mote_deaf(network: MakeNetwork, board: str) -> None:
    """A frame that began while the chip was about to send held the interrupt line, and none was fetched until it slept."""
    net = network(grid(5, 5, spacing=10, boards=[board]), radio=disc(25))
    net.advance("60s")
    assert sum(mote.counters["received"] for mote in net.motes.values()) > 2000
    assert {id: mote.counters["overrun"] for id, mote in net.motes.items() if mote.counters["overrun"]} == {}
