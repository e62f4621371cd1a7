"""What the air does to frames, seen from outside: motes without a CPU send, listen or assess the channel, and what they observe is held
against theory. Bounds are four standard deviations of the estimate or more; seeds are fixed and part of each test's name."""

from __future__ import annotations

import math
import struct
import subprocess
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from skerry_testbed.built import PROJECT
from skerry_testbed.core import World
from skerry_testbed.errors import TestbedError
from skerry_testbed.links import Links
from skerry_testbed.network import Bursts, Crystals, Interference, LinkBursts, Mote, Network, Radio
from skerry_testbed.surroundings import Drift, Interferers, Mobility

LISTEN, SEND, ASSESS = range(3)
#: Frames of 100 bytes: what reception probabilities are of. They last (5 + 1 + 100) bytes of 32 us.
LENGTH, FRAME_S = 100, 106 * 32e-6
CHANNEL = 26
#: As the chip takes it, 73 above dBm.
CLEAR_BELOW_DBM = -80
SLICE_NS = 100_000_000
SEEDS = [1, 2]
SOURCE = Path(__file__).parent / "probe" / "probe.c"


class Air:
    """A world of probes and the bytes they tell."""

    def __init__(self, library: Path, seed: int) -> None:
        self.world = World(seed)
        self.world.load_backend("probe", library)
        self.motes: list[Mote] = []
        self.seed = seed

    def add(
        self, mode: int, *, every_s: float = 0.0, x: float = 0.0, channel: int = CHANNEL, boot_s: float = 0.0
    ) -> int:
        """Index of a new probe, on the x-axis."""
        plan = struct.pack("<BBBbI", mode, channel, LENGTH, CLEAR_BELOW_DBM + 73, round(every_s * 1e6))
        self.motes.append(Mote(id=len(self.motes), x=x, y=0.0))
        return self.world.add_mote(
            self.motes[-1].id, "probe", SOURCE, plan, clock_ppm=0.0, supply_mv=3000.0, boot_ns=round(boot_s * 1e9)
        )  # fmt: skip

    def observe(self, mote: int, duration_s: float) -> list[int]:
        """What a probe has told in this time."""
        return self.observe_all([mote], duration_s)[0]

    def observe_all(self, motes: Sequence[int], duration_s: float) -> list[list[int]]:
        """Of several."""
        told: list[list[int]] = [[] for _ in motes]
        end = self.world.now_ns + round(duration_s * 1e9)
        while self.world.now_ns < end:
            self.world.run(min(end, self.world.now_ns + SLICE_NS))
            for one, mote in zip(told, motes, strict=True):
                one.extend(self.world.uart_read(mote))
        return told


MakeAir = Callable[[int], Air]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probes' back-end."""
    path = tmp_path_factory.mktemp("probe") / "libskerry_probe.so"
    include = PROJECT / "testbed" / "core" / "include"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{include}"]
    subprocess.run(["cc", *flags, "-o", str(path), str(SOURCE)], check=True)
    return path


@pytest.fixture
def air(library: Path) -> MakeAir:
    """``air(seed)``: an empty world."""
    return lambda seed: Air(library, seed)


def runs(observed: Sequence[int]) -> dict[int, list[int]]:
    """Lengths of the runs of each value, without the first and the last, which are cut off."""
    found: dict[int, list[int]] = {0: [], 1: []}
    for value, length in [(value, len(list(group))) for value, group in groupby(observed)][1:-1]:
        found[value].append(length)
    return found


def stay(mean_s: float, other_s: float, step_s: float) -> float:
    """Probability that a chain with these mean times is, a step later, still or again where it was."""
    share = mean_s / (mean_s + other_s)
    return share + (1 - share) * math.exp(-step_s * (1 / mean_s + 1 / other_s))


def radio_with(bursts: Bursts | None = None, **more: object) -> Radio:
    return Radio(model="disc", range_m=20.0, bursts=bursts, **more)  # type: ignore[arg-type]


# ---- bursts: Gilbert-Elliott ----
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("good_s", "bad_s"), [(0.5, 0.1), (0.2, 0.2), (2.0, 0.05)])
def test_bursts_are_as_long_and_as_many_as_gilbert_and_elliott_say(
    air: MakeAir, seed: int, good_s: float, bad_s: float
) -> None:
    step_s, duration_s = 0.01, 600.0
    world = air(seed)
    world.add(SEND, every_s=step_s)
    world.add(LISTEN)
    Links(world.world, radio_with(Bursts(good=good_s, bad=bad_s)), world.motes, seed)
    observed = world.observe(1, duration_s)
    assert len(observed) == pytest.approx(duration_s / step_s, abs=2)
    found = runs(observed)
    for value, mean_s, other_s in ((0, bad_s, good_s), (1, good_s, bad_s)):
        kept = stay(mean_s, other_s, step_s)
        # Runs of a Markov chain are geometric: mean 1 / (1 - kept), deviation sqrt(kept) / (1 - kept).
        mean, deviation = 1 / (1 - kept), math.sqrt(kept) / (1 - kept)
        lengths = found[value]
        assert len(lengths) > 100
        assert np.mean(lengths) == pytest.approx(mean, abs=4 * deviation / math.sqrt(len(lengths)))
        # And not only in the mean: as many as there should be go on beyond it.
        longer = kept ** math.ceil(mean)
        share = np.mean([length > math.ceil(mean) for length in lengths])
        assert share == pytest.approx(longer, abs=4 * math.sqrt(longer * (1 - longer) / len(lengths)))


@pytest.mark.parametrize("seed", SEEDS)
def test_in_a_burst_as_much_arrives_as_asked(air: MakeAir, seed: int) -> None:
    world = air(seed)
    world.add(SEND, every_s=0.01)
    world.add(LISTEN)
    Links(world.world, radio_with(Bursts(good="1 s", bad="1 s", reception=0.3)), world.motes, seed)
    observed = world.observe(1, 1000.0)
    # Half of the time 30 %: 500 cycles of both states tell it to 1.6 % (a share of two exponential times).
    assert np.mean(observed) == pytest.approx(0.5 + 0.5 * 0.3, abs=4 * 0.7 * 0.016)


@pytest.mark.parametrize("symmetric", [True, False])
def test_both_directions_are_bad_together_or_each_for_itself(air: MakeAir, symmetric: bool) -> None:
    world = air(5)
    world.add(SEND, every_s=0.02)
    world.add(SEND, every_s=0.02, boot_s=0.01)
    Links(world.world, radio_with(Bursts(good="1 s", bad="1 s", symmetric=symmetric)), world.motes, 5)
    there, back = world.observe_all([1, 0], 600.0)
    agreed = np.mean([a == b for a, b in zip(there, back, strict=False)])
    # 10 ms apart: together they agree unless one changes in between, apart half of the time.
    assert agreed == pytest.approx(stay(1, 1, 0.01) if symmetric else 0.5, abs=0.01 if symmetric else 0.12)


def test_links_burst_apart_and_one_may_have_its_own(air: MakeAir) -> None:
    world = air(6)
    world.add(SEND, every_s=0.01)
    for _ in range(3):
        world.add(LISTEN)
    radio = radio_with(
        Bursts(good="0.5 s", bad="0.5 s"), link_bursts=[LinkBursts(mote=0, to=3, good="900 ms", bad="100 ms")]
    )
    Links(world.world, radio, world.motes, 6)
    first, second, own = (np.array(told[:50_000]) for told in world.observe_all([1, 2, 3], 501.0))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert own.mean() == pytest.approx(0.9, abs=4 * 0.013)


def test_a_link_is_bad_when_it_is_however_much_is_sent_on_it(library: Path) -> None:
    """And when it was away in between: what is compared between two runs differs in nothing else."""

    def observed(every_s: float, moved: bool) -> list[int]:
        world = Air(library, 8)
        world.add(SEND, every_s=every_s)
        world.add(LISTEN)
        links = Links(world.world, radio_with(Bursts(good="1 s", bad="1 s")), world.motes, 8)
        told = world.observe(1, 10.0)
        if moved:
            links.cut({(0, 1)})
            links.restore({(0, 1)})
        return told + world.observe(1, 50.0)

    often = observed(0.01, moved=False)
    assert observed(0.02, moved=False) == often[1::2]
    assert observed(0.01, moved=True) == often


def test_a_frame_under_way_on_a_link_that_goes_down_ends_as_noise(air: MakeAir) -> None:
    world = air(1)
    world.add(SEND, every_s=0.1)
    world.add(LISTEN)
    links = Links(world.world, radio_with(), world.motes, 1)
    world.world.run(102_000_000)
    links.cut({(0, 1)})
    assert world.observe(1, 0.05) == [0]
    links.restore({(0, 1)})
    assert world.observe(1, 0.1) == [1]


# ---- interference ----
def interfere(world: Air, source: Interference) -> Interferers:
    return Interferers(
        world.world, Network(seed=world.seed, interference=[source], radio=radio_with()), world.motes
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("duty", [0.1, 0.3, 0.8])
def test_the_channel_is_busy_for_the_duty_asked_for_and_only_on_it(
    air: MakeAir, seed: int, duty: float
) -> None:
    burst_s, step_s, duration_s = 5e-3, 1e-3, 120.0
    world = air(seed)
    world.add(ASSESS, every_s=step_s)
    world.add(ASSESS, every_s=step_s, channel=CHANNEL - 1)
    interfere(world, Interference(channel=CHANNEL, level_dbm=-60.0, duty=duty, burst=burst_s))
    clear, elsewhere = world.observe_all([0, 1], duration_s)
    clear = clear[2:]
    off_s = burst_s * (1 - duty) / duty
    # An assessment takes 128 us: what begins in them counts.
    busy = 1 - (1 - duty) * math.exp(-128e-6 / off_s)
    cycles = duration_s / (burst_s + off_s)
    assert 1 - np.mean(clear) == pytest.approx(busy, abs=4 * math.sqrt(2 / cycles) * duty * (1 - duty))
    assert min(elsewhere[2:]) == 1
    # Quiet goes on if it is so again at the next assessment and the 128 us of that one are.
    kept = stay(off_s, burst_s, step_s - 128e-6) * math.exp(-128e-6 / off_s)
    quiet = runs(clear)[1]
    assert np.mean(quiet) == pytest.approx(1 / (1 - kept), abs=4 / (1 - kept) / math.sqrt(len(quiet)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("level_dbm", "hurts"), [(-55.0, True), (-85.0, False)])
def test_frames_that_meet_interference_are_lost_where_it_is_strong(
    air: MakeAir, seed: int, level_dbm: float, hurts: bool
) -> None:
    """Links of a disc are received with -65 dBm here: 5 dBm and a gain of -70 dB."""
    on_s, duty, frames = 15e-3, 0.3, 20_000
    world = air(seed)
    world.add(SEND, every_s=0.02)
    world.add(LISTEN)
    Links(world.world, radio_with(), world.motes, seed)
    interfere(world, Interference(channel=CHANNEL, level_dbm=level_dbm, duty=duty, burst=on_s))
    lost = 1 - np.mean(world.observe(1, 0.02 * frames))
    off_s = on_s * (1 - duty) / duty
    expected = 1 - (1 - duty) * math.exp(-FRAME_S / off_s) if hurts else 0.0
    # A byte that is touched by less than its half often survives: -10 dB of signal to it are needed for certain loss.
    assert lost == pytest.approx(expected, abs=0.02 if hurts else 1e-9)
    counters = world.world.counters(1)
    assert (counters["lost_interference"] > 0) == hurts
    assert counters["lost_link"] == counters["lost_collision"] == 0


def test_interference_weakens_with_distance_and_has_a_beginning_and_an_end(air: MakeAir) -> None:
    world = air(3)
    near, far = world.add(ASSESS, every_s=0.01, x=5.0), world.add(ASSESS, every_s=0.01, x=300.0)
    interfere(world, Interference(channel=CHANNEL, x=0.0, y=0.0, power_dbm=10.0, begin="1 s", end="3 s"))
    told = world.observe_all([near, far], 5.0)
    assert [1 - np.mean(told[0][a:b]) for a, b in ((5, 95), (105, 295), (305, 495))] == [0, 1, 0]
    assert min(told[1][5:]) == 1


# ---- channels ----
def test_who_listens_on_another_channel_hears_nothing(air: MakeAir) -> None:
    world = air(1)
    world.add(SEND, every_s=0.01)
    world.add(LISTEN)
    world.add(LISTEN, channel=CHANNEL - 1)
    Links(world.world, radio_with(), world.motes, 1)
    same, other = world.observe_all([1, 2], 1.0)
    assert len(same) >= 98
    assert other == []


# ---- crystals and places ----
def test_crystals_follow_the_parabola_of_their_temperature(air: MakeAir) -> None:
    world = air(1)
    for _ in range(3):
        world.add(LISTEN)
    world.motes[1].temperature = [("10 s", 25.0), ("20 s", -20.0)]
    errors = [10.0, -5.0, 3.0]
    drift = Drift(world.world, world.motes, errors, Crystals(temperature="environment"))
    drift.feel(0, 60.0)
    world.world.run(1)

    def set_to(now_s: float) -> list[float]:
        drift.step(now_s)
        return [struct.unpack("<d", world.world.eeprom(mote, 8))[0] for mote in range(3)]

    warm = 10.0 - 0.034 * 35**2
    assert set_to(0) == pytest.approx([warm, 0, 0], abs=0.01)  # probes begin with 0; mote 1 is at 25 °C
    assert set_to(15) == pytest.approx([warm, -5 - 0.034 * 22.5**2, 0], abs=0.01)
    assert set_to(99) == pytest.approx([warm, -5 - 0.034 * 45**2, 0], abs=0.01)
    drift.set_error(1, 40.0)
    assert set_to(99)[1] == pytest.approx(40 - 0.034 * 45**2, abs=0.01)


def test_a_mote_on_its_way_is_heard_as_long_as_it_is_near(air: MakeAir) -> None:
    """1 m/s from 0 to 40 m and back, range 20 m: heard for 20 s, then for the last 20 s of 80."""
    world = air(1)
    world.add(SEND, every_s=0.01)
    world.add(LISTEN)
    world.motes[1].path = [("40 s", 40.0, 0.0), ("80 s", 0.0, 0.0)]
    mobility = Mobility(world.motes, Links(world.world, radio_with(), world.motes, 1))
    heard = []
    for second in range(90):
        mobility.step(float(second))
        heard.append(len(world.observe(1, 1.0)) > 50)
    assert [i for i, value in enumerate(heard) if value] == [*range(21), *range(60, 90)]
    assert world.motes[1].x == 0.0


def test_a_cpu_that_no_debugger_can_see_is_named(air: MakeAir) -> None:
    world = air(1)
    world.add(LISTEN)
    world.world.on_stop(lambda *_: None)
    with pytest.raises(TestbedError, match=r"mote \d+: back-end 'probe' has no debugger"):
        world.world.debug(0)
