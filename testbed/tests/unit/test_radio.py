"""Gains and reception probabilities from positions."""

import math

import numpy as np
import pytest

from skerry_testbed import radio
from skerry_testbed.network import Mote, Radio


def motes(*places: tuple[float, float]) -> list[Mote]:
    return [Mote(id=10 + i, x=x, y=y, root=i == 0) for i, (x, y) in enumerate(places)]


def links(model: Radio, places: list[Mote], seed: int = 1) -> radio.Links:
    return radio.links(model, places, np.random.default_rng(seed))


def test_a_disc_ends_at_its_range() -> None:
    found = links(Radio(model="disc", range_m=15, reception=0.8), motes((0, 0), (15, 0), (31, 0)))
    assert set(found) == {(0, 1), (1, 0)}
    assert {reception for _, reception in found.values()} == {0.8}


@pytest.mark.parametrize(("distance", "loss"), [(1, 40), (10, 70), (20, 40 + 30 * math.log10(20))])
def test_log_distance_loses_as_the_formula_says(distance: float, loss: float) -> None:
    found = links(Radio(exponent=3, reference_db=40, shadowing_db=0), motes((0, 0), (distance, 0)))
    assert found[0, 1][0] == pytest.approx(-loss)
    assert math.isnan(found[0, 1][1])


def test_links_too_weak_for_the_chip_are_none() -> None:
    assert links(Radio(exponent=4, reference_db=60), motes((0, 0), (40, 0))) == {}


def test_shadowing_has_the_deviation_asked_for_and_is_mostly_the_same_both_ways() -> None:
    rng = np.random.default_rng(3)
    places = motes(*((float(x), float(y)) for x, y in rng.uniform(0, 20, (60, 2))))
    plain = links(Radio(reference_db=20, shadowing_db=0), places)
    shadowed = links(Radio(reference_db=20, shadowing_db=4), places)
    there = np.array([shadowed[a, b][0] - plain[a, b][0] for a, b in plain if a < b])
    back = np.array([shadowed[b, a][0] - plain[b, a][0] for a, b in plain if a < b])
    assert there.std() == pytest.approx(4, rel=0.1)
    assert np.corrcoef(there, back)[0, 1] == pytest.approx(0.75, abs=0.05)


def test_shadowing_comes_from_the_seed() -> None:
    model, places = Radio(shadowing_db=4), motes((0, 0), (5, 0), (9, 3))
    assert links(model, places, 5) == links(model, places, 5)
    assert links(model, places, 5) != links(model, places, 6)


def test_a_matrix_is_taken_as_it_is() -> None:
    found = links(Radio(model="matrix", links=[(10, 11, 0.83), (11, 10, 0.0)]), motes((0, 0), (99, 0)))
    assert set(found) == {(0, 1)}
    assert found[0, 1][1] == 0.83


def test_directions_differ_with_the_deviation_asked_for_and_each_chip_by_its_own() -> None:
    places = motes(*((float(x), 0.0) for x in range(200)))
    found = links(Radio(exponent=1, reference_db=10, asymmetry_db=4), places, seed=2)
    gain = np.array([[found[a, b][0] if a != b else 0.0 for b in range(200)] for a in range(200)])
    difference = gain - gain.T
    assert difference[np.triu_indices(200, 1)].std() == pytest.approx(4, rel=0.15)
    # Made of what each chip adds, so that around a triangle the differences cancel.
    assert difference[0, 1] + difference[1, 2] + difference[2, 0] == pytest.approx(0, abs=1e-9)


def test_without_asymmetry_both_directions_are_shadowed_alike() -> None:
    places = motes(*((float(x), 0.0) for x in range(20)))
    found = links(Radio(exponent=2, reference_db=10, shadowing_db=6, asymmetry_db=0), places, seed=2)
    assert all(found[b, a][0] == pytest.approx(gain) for (a, b), (gain, _) in found.items())


def test_reception_falls_with_gain_and_ends_at_each_chips_sensitivity() -> None:
    gains = np.arange(-104.0, -90.0, 0.5)
    shares = [radio.reception(gain, math.nan, -98.0, "iris") for gain in gains]
    assert shares == sorted(shares)
    assert shares[0] < 0.01
    assert shares[-1] > 0.99
    # 3 dBm - 100.5 dB is too little for a CC2538 (-97 dBm), though there would be signal enough for an AT86RF230 (-101 dBm).
    assert radio.reception(-100.5, math.nan, -101.0, "cc2538") == 0
    assert radio.reception(-100.5, math.nan, -101.0, "iris") > 0.9
    assert radio.reception(-70.0, 0.4, -98.0, "iris") == 0.4
