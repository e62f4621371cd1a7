"""Ways to serve events: what the model says, and what the catalog knows of how often they come."""

from __future__ import annotations

import json
import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.catalog.catalog import Catalog
from skerry.catalog.event_rates import KINDS, REMEMBERED
from skerry.planner.cost import event_batching
from skerry.planner.cost.event_batching import ASSUMED_RATE, CHECK, INSTANCES, JOIN, STREAM, Batching
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.commands import event_number

LIGHT = BY_NAME["light"].energy
ROW = 140e-6
NOW = 1.7e9


def plan_of(text: str) -> QueryPlan:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    return plan


def ways(text: str, **rates: float) -> Batching:
    found = event_batching.batching(merge([plan_of(text)]), rates, ROW)
    assert found is not None
    return found


def test_energy_by_hand() -> None:
    """An event each 20 s, for 10 s: half an instance on average, and one or more for 39 % of the time."""
    found = ways("ON EVENT hot: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s", hot=0.05)
    assert found.active == pytest.approx(0.5)
    busy = 1 - exp(-0.5)
    assert {way.name: way.energy for way in found.ways} == {
        STREAM: pytest.approx(busy * (LIGHT + ROW)),
        JOIN: pytest.approx(busy * (LIGHT + ROW) + CHECK),
        INSTANCES: pytest.approx(busy * LIGHT + 0.5 * ROW),
    }
    assert found.ways[0].name == STREAM


def test_model_is_what_happens() -> None:
    """Share of epochs with an active event, and instances in them, of events at random."""
    draw, rate, lasts, seconds = random.Random(1), 1 / 40, 30, 400_000
    times, at = [], 0.0
    while (at := at + draw.expovariate(rate)) < seconds:
        times.append(at)
    active = [0] * (seconds + lasts + 2)
    for time in times:
        for epoch in range(int(time) + 1, int(time) + 1 + lasts):
            active[epoch] += 1
    found = ways(f"ON EVENT hot: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR {lasts} s", hot=rate)
    energies = {way.name: way.energy for way in found.ways}
    busy = sum(count > 0 for count in active) / seconds
    assert energies[STREAM] == pytest.approx(busy * (LIGHT + ROW), rel=0.02)
    assert energies[INSTANCES] == pytest.approx(busy * LIGHT + sum(active) / seconds * ROW, rel=0.02)


@given(st.floats(1e-6, 10), st.integers(1, 3600))
def test_one_stream_is_never_dearer(rate: float, lasts: int) -> None:
    found = ways(f"ON EVENT hot: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR {lasts} s", hot=rate)
    assert found.ways[0].name == STREAM
    assert found.ways[0].energy <= LIGHT + ROW


def test_alternatives_and_conjunctions() -> None:
    """Either event starts it; of two that both have to come, the rarer one does."""
    rest = "SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s"
    assert ways(f"ON EVENT hot OR wet: {rest}", hot=0.01, wet=0.02).active == pytest.approx(0.3)
    assert ways(f"ON EVENT hot AND wet: {rest}", hot=0.01, wet=0.02).active == pytest.approx(0.1)
    unknown = ways(f"ON EVENT hot AND wet: {rest}", hot=0.01)
    assert unknown.active == pytest.approx(10 * ASSUMED_RATE)
    assert unknown.assumed == ("wet",)


def test_no_overlap_serves_one_event_at_a_time() -> None:
    found = ways("ON EVENT hot NO OVERLAP: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s", hot=0.1)
    assert [way.name for way in found.ways] == [STREAM]
    assert found.ways[0].energy == pytest.approx((LIGHT + ROW) / 2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT light FROM sensors SAMPLE PERIOD 1 s",
        "ON EVENT every(1 h): SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 20 s",
    ],
)
def test_what_waits_for_no_event_has_none(text: str) -> None:
    assert event_batching.batching(merge([plan_of(text)]), {}, ROW) is None
    assert explain(plan_of(text))["events"] is None


def test_windows_send_a_row_each_slide() -> None:
    rest = "FROM sensors SAMPLE PERIOD 1 s FOR 60 s"
    plain = ways(f"ON EVENT hot: SELECT light {rest}", hot=0.001).ways[0].energy
    slow = ways(f"ON EVENT hot: SELECT WINMAX(light, 10 s, 10 s) {rest}", hot=0.001).ways[0].energy
    assert (plain - slow) / (1 - exp(-0.06)) == pytest.approx(ROW * 0.9)


def test_pulses_send_a_row_each_two_epochs_at_most() -> None:
    rest = "FROM sensors SAMPLE PERIOD 1 s FOR 60 s"
    plain = ways(f"ON EVENT hot: SELECT light {rest}", hot=0.001).ways[0].energy
    single = ways(f"ON EVENT hot: SELECT PULSE(light > 9) {rest}", hot=0.001).ways[0].energy
    counted = ways(f"ON EVENT hot: SELECT PULSES(light > 9, 10 s) {rest}", hot=0.001).ways[0].energy
    assert (plain - single) / (1 - exp(-0.06)) == pytest.approx(ROW * 0.5)
    assert (plain - counted) / (1 - exp(-0.06)) == pytest.approx(ROW * 0.9)


def test_explain_reckons_with_what_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("ON EVENT hot: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s")
    catalog = Catalog()
    assumed = explain(plan, catalog)["events"]
    assert (assumed["rates"], assumed["assumed"]) == ({"hot": ASSUMED_RATE}, ["hot"])
    for i in range(9):
        catalog.events.hear(event_number("hot"), NOW + 20 * i)
    monkeypatch.setattr("time.time", lambda: NOW + 160)
    shown = explain(plan, catalog)
    assert shown["events"]["rates"] == {"hot": pytest.approx(0.05)}
    assert shown["events"]["ways"][0]["way"] == STREAM
    text = explain_text(shown)
    assert "event hot comes 180 times an hour (as heard lately)" in text
    assert all(way in text for way in (STREAM, JOIN, INSTANCES))
    json.dumps(shown)


def test_events_are_remembered() -> None:
    catalog = Catalog()
    for i in range(REMEMBERED + 10):
        catalog.events.hear(7, NOW + 10 * i)
    catalog.events.hear(8, NOW)
    kept = Catalog.from_rows(catalog.mote_rows(), catalog.events.rows())
    heard = kept.events.of(7)
    assert heard is not None
    assert (heard.count, heard.last) == (REMEMBERED + 10, NOW + 10 * (REMEMBERED + 9))
    assert kept.events.rate(7, heard.last) == pytest.approx(0.1)
    assert kept.events.rate(8, heard.last) is None
    assert kept.events.rate(9, heard.last) is None
    for number in range(100, 100 + KINDS):
        kept.events.hear(number, NOW + 1e6)
    assert kept.events.of(7) is None
    assert len(list(kept.events)) == KINDS
