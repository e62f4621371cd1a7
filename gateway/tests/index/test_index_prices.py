"""Indexes as the gateway plans them: against brute force over tuples and orders, and against the model of bench/storage."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from bench.measuring.storage_load import Query, queries_of, tuples_of
from bench.measuring.storage_network import Meter, Network
from bench.measuring.storage_series import PAPER, SERIES, Asker
from skerry.index.code import IndexCode, motes_code
from skerry.index.declaration import Declaration, DeclarationError, Question, Ranged, evenly, learned
from skerry.index.placement import field_of, place
from skerry.index.prices import WAY_KEPT_S, Prices, Workload, opened_anew, organisations
from skerry.planner.cost.index_prices import FORMAT, energy

LIGHT, TEMP, HUMIDITY = Ranged("light", 0, 2000), Ranged("temp", -2000, 6000), Ranged("humidity", 0, 10_000)
FOUR = tuple(Ranged(name, 0, 65534) for name in "abcd")
PAIRS = Declaration.of(FOUR, [("a", "b"), ("c", "d")])


@pytest.fixture(scope="module")
def code() -> IndexCode:
    return motes_code()


@pytest.fixture(scope="module")
def network() -> Network:
    return Network.drawn(50, np.random.default_rng(51))


def positions_of(network: Network) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in network.places]


def test_what_is_declared_wrong_is_told() -> None:
    for attributes, joint, message in (
        ([], [], "an index of 0 attributes: it has 1 to 6"),
        ([Ranged(name, 0, 1) for name in "abcdefg"], [], "an index of 7 attributes"),
        ([LIGHT, LIGHT], [], "light is in the index twice"),
        ([LIGHT, Ranged("temp", 5, 5)], [], "temp FROM 5 TO 5 is no range"),
        (
            [LIGHT, TEMP],
            [("temp", "noise")],
            "JOINT names noise, which is not in the index: it has light, temp",
        ),
        ([LIGHT, TEMP, HUMIDITY], [("temp", "light"), ("temp",)], "temp is in JOINT twice"),
    ):
        with pytest.raises(DeclarationError, match=message):
            Declaration.of(attributes, joint)
    with pytest.raises(DeclarationError, match="noise is not in the index: it has light"):
        Declaration.of([LIGHT]).question(motes_code(), {}, ["noise"])


def test_groups_are_parts_and_others_stand_alone() -> None:
    declared = Declaration.of([LIGHT, TEMP, HUMIDITY], [("humidity", "light")])
    assert declared.groups == ((1,), (2, 0))
    assert list(declared.organisations) == ["single", "decomposed", "joint"]
    assert list(Declaration.of([LIGHT, TEMP]).organisations) == ["single", "decomposed"]
    assert list(Declaration.of([LIGHT]).organisations) == ["single"]


@pytest.mark.parametrize("groups", [((0, 1, 2),), ((0,), (1,), (2,)), ((1,), (2, 0))])
def test_all_tuples_in_the_ranges_are_at_motes_and_in_zones_that_are_asked(
    code: IndexCode, network: Network, groups: tuple[tuple[int, ...], ...]
) -> None:
    declared, rng = Declaration.of([LIGHT, TEMP, HUMIDITY]), np.random.default_rng(7)
    positions = positions_of(network)
    parts = place(code, field_of(positions), positions, groups)
    assert parts is not None
    assert sorted(itertools.chain.from_iterable(part.motes for part in parts)) == list(range(len(network)))
    tuples = np.column_stack([rng.integers(a.low - 50, a.high + 50, 2000) for a in declared.attributes])
    for _ in range(10):
        ranges = {}
        for attribute in declared.attributes[: int(rng.integers(1, 4))]:
            low, high = sorted(int(v) for v in rng.integers(attribute.low, attribute.high, 2))
            ranges[attribute.name] = low, high
        box = declared.question(code, ranges, ["light"]).box(code, 3)
        inside = np.ones(len(tuples), bool)
        for number, attribute in enumerate(declared.attributes):
            low, high = ranges.get(attribute.name, (-(10**6), 10**6))
            inside &= (tuples[:, number] >= low) & (tuples[:, number] <= high)
        for part in parts:
            asked, zones = part.answering(code, box), part.zones(code, box, 8)
            codes = [owned.code for owned in part.owned]
            for row in tuples[inside]:
                points = declared.points(code, row.tolist())
                own = code.code([points[attribute] for attribute in part.attributes])
                owner = min(range(len(codes)), key=lambda at: codes[at] ^ own)
                assert part.motes[owner] in asked
                assert sum(f"{own:032b}".startswith(zone) for zone in zones) == 1
        if set(ranges) == {"light", "temp", "humidity"}:
            assert len(parts[0].answering(code, box)) < len(parts[0].motes)


def test_the_order_is_the_cheapest_of_all_and_a_price_grows_with_what_is_asked(
    code: IndexCode, network: Network
) -> None:
    rng = np.random.default_rng(9)
    points, positions = tuples_of("gaussian", rng, 1000), positions_of(network)
    histogram = learned(code, points.tolist(), 4, 5)
    counted = sum(code.library.histogram_count(one) for one in histogram.counts)
    assert abs(counted - len(points)) < len(points) / 16
    parts = place(code, field_of(positions), positions, [(0,), (1,), (2,), (3,)])
    assert parts is not None
    prices = Prices(code, parts, histogram, PAPER, network.hop_cm, cached=True)
    for query in queries_of("uniform", "exponential", 20, len(network), rng):
        question = Question(query.limits, query.measured)
        price = prices.of(question, states=True)
        concerned = sorted(price.order)
        assert set(concerned) == set(query.limits) | query.measured
        box = question.box(code, 4)
        stops = prices._stops(concerned, question, everywhere=True)
        plan = code.plan(stops, prices._load(question, True)).estimate(histogram, box)
        costs = {order: plan.cost(order) for order in itertools.permutations(range(len(stops)))}
        assert costs[tuple(concerned.index(part) for part in price.order)] == min(costs.values())
        again = prices.of(question, states=True, warm=True)
        assert (again.bytes, again.frames) <= (price.bytes, price.frames)
        assert again.order == price.order
        assert 0 < price.frames < price.bytes
        assert price.motes == sum(len(parts[part].answering(code, box)) for part in concerned)


def test_without_motes_there_is_no_index(code: IndexCode) -> None:
    load = Workload([Question({}, frozenset({0}))], 1)
    even = evenly(code, 4000, 4)
    with pytest.raises(DeclarationError, match="an index needs one at least"):
        organisations(code, PAIRS, [], even, PAPER, 1000, load)
    (only,) = organisations(code, PAIRS, [(5, 5)], even, PAPER, 1000, load)
    assert only.name == "single"
    both = organisations(code, PAIRS, [(0, 0), (900, 0)], even, PAPER, 1000, load)
    assert {organisation.name for organisation in both} == {"single", "joint"}
    assert both[0].total <= both[1].total


@pytest.mark.parametrize("again", [False, True])
def test_what_is_chosen_costs_hardly_more_than_the_cheapest_of_the_model(
    code: IndexCode, network: Network, again: bool
) -> None:
    """Insertion and questions, as the model of the benchmarks counts them message by message on shortest ways."""
    rng = np.random.default_rng(5)
    points = tuples_of("gaussian", rng, 1000)
    declared, asked = (queries_of("uniform", "uniform", 40, len(network), rng) for _ in range(2))
    found = organisations(
        code, PAIRS, positions_of(network), learned(code, points.tolist(), 4, 5), PAPER, network.hop_cm,
        Workload([Question(query.limits, query.measured) for query in declared], 5, again=again),
    )  # fmt: skip
    measured = {name: measured_of(network, points, series, asked, again) for series, name in NAMES.items()}
    for organisation in found:
        insert, _ = measured[organisation.name]
        assert organisation.insert == pytest.approx(insert, rel=0.3)
    totals = {name: 5 * insert + question for name, (insert, question) in measured.items()}
    assert totals[found[0].name] <= 1.1 * min(totals.values())


def test_ways_are_opened_anew_where_they_lapse_between_tuples(code: IndexCode) -> None:
    """Two motes, 9 m apart, and hops of 10 m: half the tuples go over one hop, the others over none."""
    positions = [(0, 0), (900, 0)]
    field, form = field_of(positions), replace(PAPER, opening=91)
    whole = (PAPER.header + PAPER.name + 4 * PAPER.value) / 2
    halves = PAPER.header + PAPER.name + 2 * PAPER.value

    def inserts(period_s: float, *groups: tuple[int, ...]) -> float:
        parts = place(code, field, positions, groups)
        assert parts is not None
        return Prices(code, parts, evenly(code, 1000, 4), form, 1000).insertion(positions, period_s)

    single, pairs = [(0, 1, 2, 3)], [(0, 1), (2, 3)]
    assert inserts(0, *single) == whole
    assert inserts(0, *pairs) == halves
    # A way that is open leads to the owner before: one of two in a single index, the only one of each pair.
    assert inserts(59, *single) == whole + 91 / 2 * 1 / 2
    assert inserts(59, *pairs) == halves
    assert inserts(WAY_KEPT_S, *single) == whole + 91 / 2
    assert inserts(WAY_KEPT_S, *pairs) == halves + 91
    # A mote keeps two ways: parts in turn take them from each other.
    assert [opened_anew(30, parts, 4) for parts in (1, 2, 3, 6)] == [3 / 4, 3 / 4, 1, 1]
    # So a load that is declared to be of seldom tuples may have other costs.
    load = Workload([Question({}, frozenset({0}))], 10, period_s=3600)
    found = organisations(code, PAIRS, positions, evenly(code, 1000, 4), form, 1000, load)
    assert {one.name: one.insert for one in found} == {"single": whole + 91 / 2, "joint": halves + 91}


def test_energy_is_that_of_both_ends_for_the_bytes_on_the_air(code: IndexCode, network: Network) -> None:
    """250 kbit/s; 16.5 mA to send and 15.5 mA to listen at 3 V (AT86RF230)."""
    assert energy(1000) == pytest.approx(1000 * 8 / 250_000 * 3 * (0.0165 + 0.0155))
    positions = positions_of(network)
    parts = place(code, field_of(positions), positions, [(0, 1, 2, 3)])
    assert parts is not None
    prices = Prices(code, parts, evenly(code, 1000, 4), FORMAT, network.hop_cm)
    everything = Question({}, frozenset({0, 1}))
    price = prices.of(everything, states=True)
    assert price.motes == len(network)
    # Each mote but one sends its state once, and is asked by somebody.
    assert price.bytes >= (len(network) - 1) * (FORMAT.header + 2 * FORMAT.state)
    assert price.frames >= len(network) - 1


NAMES = {"single": "single", "best": "decomposed", "joint": "joint"}


def measured_of(
    network: Network, points: np.ndarray, series: str, queries: Sequence[Query], again: bool
) -> tuple[float, float]:
    """Bytes of an insert, and of a question."""
    (one,) = (known for known in SERIES if known.name == series)
    asker, meter = Asker(network, points, one, states=True), Meter(network)
    asker.index.insert(meter, np.random.default_rng(1))
    if again:
        asker.ask(queries)
    return meter.total / len(points), fmean([asker.ask(queries)])
