"""Faults of a description happen at their time, to whom they name."""

import pytest

from skerry_testbed.links import NO_GAIN
from skerry_testbed.network import (
    Bursts,
    Crystals,
    Fault,
    Interference,
    Mote,
    Network,
    NetworkError,
    Radio,
    check,
)
from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.runner import SLICE_NS


def test_kill_and_reboot_happen_at_their_virtual_time(network: MakeNetwork) -> None:
    faults = [Fault(at="6 s", kind="reboot", mote=1), Fault(at="4s", kind="kill", mote=1)]
    net = network(line_of(2, spacing=10), faults=faults)
    net.advance(1.4)
    assert net.motes[1].alive
    net.advance(0.1 + SLICE_NS / 1e9)
    assert not net.motes[1].alive
    net.advance(2)
    assert net.motes[1].alive
    assert net.motes[1].settings.boots == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"kind": "kil", "mote": 1}, "fault: kind = 'kil': expected kill or reboot"),
        ({"kind": "kill"}, "fault kill: mote is missing; it takes mote"),
        ({"kind": "kill", "mote": 9}, "fault kill: mote = 9: expected the id of a mote"),
        ({"kind": "partition"}, "fault partition: motes is missing"),
        (
            {"kind": "clock_drift", "mote": 1, "ppm": 9000},
            "fault clock_drift: ppm = 9000: expected -500..500",
        ),
    ],
)
def test_a_fault_that_cannot_be_is_refused_by_hand_as_in_a_description(
    network: MakeNetwork, fault: dict[str, object], message: str
) -> None:
    net = network(line_of(2, spacing=10))
    with pytest.raises(NetworkError, match=message):
        net.inject(**fault)
    with pytest.raises(NetworkError, match=message):
        network(line_of(2, spacing=10), faults=[Fault(at=0, **fault)])  # type: ignore[arg-type]


def test_what_no_mote_can_sense_is_named(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10))
    with pytest.raises(TypeError, match=r"sense\(tmp=…\): motes can sense temp, humidity, light"):
        net.motes[1].sense(tmp=1.0)


def test_a_drained_battery_ends_a_mote(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10))
    net.inject(kind="battery_drained", mote=1)
    net.advance(1)
    assert not net.motes[1].alive


def test_a_link_goes_down_and_up_in_both_directions(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10), radio=disc(12))
    links = net.bed.links
    gain = links.gain(0, 1)
    net.inject(kind="link_down", mote=0, to=1)
    assert links.gain(0, 1) == links.gain(1, 0) == NO_GAIN
    net.advance(10)
    assert net.motes[1].counters["received"] == 0
    net.inject(kind="link_up", mote=1, to=0)
    assert links.gain(0, 1) == links.gain(1, 0) == gain
    net.advance(10)
    assert net.motes[1].counters["received"] > 0


def test_a_partition_cuts_only_what_crosses_it(network: MakeNetwork) -> None:
    net = network(grid(4, 1, spacing=10), radio=disc(25))
    net.inject(kind="partition", motes=[2, 3])
    links = net.bed.links
    assert {(a, b) for a in range(4) for b in range(4) if a != b and links.gain(a, b) > NO_GAIN} == {
        (0, 1), (1, 0), (2, 3), (3, 2),
    }  # fmt: skip


def test_a_mote_that_moves_changes_its_neighbours_and_cut_links_stay_cut(network: MakeNetwork) -> None:
    net = network(grid(4, 1, spacing=10), radio=disc(12))
    links = net.bed.links
    net.inject(kind="link_down", mote=0, to=3)
    net.inject(kind="move", mote=3, x=5.0, y=0.0)
    assert links.gain(3, 2) == NO_GAIN
    assert links.gain(3, 1) > NO_GAIN
    assert links.gain(3, 0) == NO_GAIN
    assert net.motes[3].position == (5.0, 0.0)


def test_shadowing_of_others_stays_when_a_mote_moves(network: MakeNetwork) -> None:
    net = network(grid(3, 1, spacing=5), radio=Radio(shadowing_db=5))
    links = net.bed.links
    before = links.gain(0, 1)
    net.inject(kind="move", mote=2, x=2.0, y=2.0)
    assert links.gain(0, 1) == before


def test_a_clock_drifts(network: MakeNetwork) -> None:
    """The root's clock is the network's: its crystal runs 400 ppm fast, and so does network time."""
    net = network(line_of(2, spacing=10), radio=disc(12), clock_ppm=0)
    net.advance(10)
    net.inject(kind="clock_drift", mote=0, ppm=400)
    before = net.line.network_time()
    net.line.connect()
    net.advance(1)
    first = net.line.network_time() - net.now
    net.advance(50)
    net.line.connect()
    net.advance(1)
    drift = net.line.network_time() - net.now - first
    assert before > 0
    assert drift == pytest.approx(50 * 400e-6, abs=0.005)


def test_noise_on_the_line_reaches_both_ends(network: MakeNetwork) -> None:
    net = network(line_of(1, spacing=10))
    seen = bytearray()
    net.bed.line_listeners.append(seen.extend)
    net.inject(kind="serial_noise", bytes=200)
    assert len(seen) == 200
    net.advance(1)
    assert net.report()["line_errors"] > 0


def test_a_link_goes_down_in_one_direction(network: MakeNetwork) -> None:
    net = network(line_of(2, spacing=10), radio=disc(12))
    links = net.bed.links
    net.inject(kind="link_down", mote=1, to=0, one_way=True)
    assert links.gain(1, 0) == NO_GAIN < links.gain(0, 1)
    before = net.motes[0].counters["received"]
    net.advance(10)
    assert net.motes[0].counters["received"] == before
    assert net.motes[1].counters["received"] > 0


def test_as_many_reboot_as_asked_within_the_time_asked(network: MakeNetwork) -> None:
    faults = [Fault(at="5 s", kind="mass_reboot", motes=[1, 2, 3, 4], share=0.5, within="4 s")]
    net = network(grid(3, 2, spacing=10), faults=faults, seed=4)
    net.advance(2.4)
    boots = {n: mote.settings.boots for n, mote in net.motes.items()}
    seen = []
    for _ in range(5):
        net.advance(1)
        seen.append(sum(mote.settings.boots > boots[n] for n, mote in net.motes.items()))
    assert seen[-1] == 2
    assert seen[0] < 2
    assert net.motes[0].settings.boots == boots[0]


def test_the_networks_clock_goes_slower_in_the_cold(network: MakeNetwork) -> None:
    """The root's crystal at -15 °C: -0.034 ppm/°C² x (40 °C)² = -54.4 ppm."""
    motes = line_of(2, spacing=10)
    motes[0].temperature = [("10 s", 25.0), ("20 s", -15.0)]
    net = network(check(Network(mote=motes, radio=disc(12), clock_ppm=0, crystal=Crystals())))
    net.advance(20)
    net.line.connect()
    net.advance(1)
    first = net.line.network_time() - net.now
    net.advance(200)
    net.line.connect()
    net.advance(1)
    assert net.line.network_time() - net.now - first == pytest.approx(-201 * 54.4e-6, abs=0.002)


def test_a_mote_on_its_way_changes_its_neighbours(network: MakeNetwork) -> None:
    motes = grid(4, 1, spacing=10)
    motes[3] = Mote(id=3, x=30, y=0, path=[("10 s", 30, 0), ("30 s", 10, 5)])
    net = network(motes, radio=disc(12))
    links = net.bed.links
    assert links.gain(3, 1) == NO_GAIN < links.gain(3, 2)
    net.advance(18)
    assert net.motes[3].position == pytest.approx((20, 2.5), abs=1.2)
    net.advance(12)
    assert net.motes[3].position == (10, 5)
    assert links.gain(3, 0) > NO_GAIN


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_interference_takes_frames_and_keeps_who_measures_energy_from_sending(
    network: MakeNetwork, board: str
) -> None:
    """The IRIS firmware asks its chip for a carrier, which interference has none of; the CC2538's measures energy."""
    motes = line_of(3, spacing=15, boards=[board])
    noise = [Interference(x=0, y=5, power_dbm=0, duty=0.3, burst="20 ms")]
    radio = Radio(exponent=3, reference_db=40)
    net = network(check(Network(mote=motes, radio=radio, interference=noise, seed=2)))
    net.advance(90)
    counters = [mote.counters for mote in net.motes.values()]
    assert counters[0]["lost_interference"] > 0
    assert (sum(count["cca_busy"] for count in counters) > 5) == (board == "cc2538")
    assert net.report()["motes"][0]["frames"]["lost_to_interference"] == counters[0]["lost_interference"]


def test_a_run_with_every_fault_is_the_same_each_time(network: MakeNetwork) -> None:
    def frames() -> list[tuple[int, int, bytes]]:
        motes = grid(3, 2, spacing=10)
        motes[5] = Mote(id=5, x=20, y=10, path=[("20 s", 0, 5)])
        description = Network(
            seed=11, mote=motes, radio=Radio(asymmetry_db=3, bursts=Bursts(good="5 s", bad="1 s")),
            crystal=Crystals(temperature=[(0, -10.0)]),
            interference=[Interference(level_dbm=-75, duty=0.1)], fault=[Fault(at="15 s", kind="mass_reboot", share=0.5, within="2 s")],
        )  # fmt: skip
        net = network(check(description))
        net.advance(30)
        return [(frame.start_ns, frame.sender, frame.psdu) for frame in net.frames]

    assert frames() == frames()
