"""LIFETIME: the paper's formula at the gateway, and the motes' own code that follows the battery."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote
from skerry.planner.cost.lifetime import predicted_ms, upkeep
from skerry.planner.model.lifetime_budget import CAPACITY, EMPTY, FULL
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME

WEEK_MS = 604_800_000


def plan(text: str) -> QueryPlan:
    result = plan_query(text)
    assert isinstance(result, QueryPlan)
    return result


def test_the_papers_query() -> None:
    """24 weeks on a pair of AA cells, voltage and light: the paper's mote came to 15.2 s (section 3.6, figure 5)."""
    wanted = plan("SELECT voltage, light FROM sensors LIFETIME 24 weeks")
    sampling = BY_NAME["light"].energy + BY_NAME["voltage"].energy
    taken = upkeep(wanted.period_ms)
    power = CAPACITY / (24 * WEEK_MS / 1000) - taken.idle / 1e6
    assert wanted.period_ms == math.ceil((taken.epoch / 1e9 + sampling) / power * 50) * 20 == 2_640
    assert wanted.duration_ms == 24 * WEEK_MS
    assert wanted.budget is not None
    lasts = predicted_ms(wanted.period_ms, wanted.budget.energy)
    assert 24 * WEEK_MS <= lasts <= 24.5 * WEEK_MS
    query = merge([wanted])
    assert MoteQuery.from_dict(query.to_dict()) == query


@given(st.integers(1, 190))
def test_longer_lives_sample_less_often(days: int) -> None:
    shorter, longer = (plan(f"SELECT temp LIFETIME {d} days").period_ms for d in (days, days + 5))
    assert shorter <= longer


def test_min_sample_rate_bounds_every_mote() -> None:
    wanted = plan("SELECT temp LIFETIME 105 weeks MIN SAMPLE RATE 10 s")
    assert (wanted.period_ms, wanted.budget and wanted.budget.most) == (10_000, 1)
    wanted = plan("SELECT temp LIFETIME 100 weeks MIN SAMPLE RATE 5 min")
    assert wanted.budget is not None
    assert wanted.period_ms * wanted.budget.most <= 300_000 < wanted.period_ms * (wanted.budget.most + 1)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT temp LIFETIME 150 weeks", "LIFETIME 150 week is more than batteries hold at column 22: "
         "a mote that only keeps its place in the network lives for 109 week"),
        ("SELECT temp LIFETIME 100 ms", "LIFETIME 100 ms is shorter than one sample period at column 22: "
         "write at least LIFETIME 1 s"),
        ("SELECT temp LIFETIME 3 days MIN SAMPLE RATE 20 ms", "MIN SAMPLE RATE 20 ms is out of range at column 45: "
         "it is the longest time between samples, from 1 s to 1 week"),
        ("SELECT temp LIFETIME 3 days SAMPLE PERIOD 2 s", "how often to sample is said twice at column 29: "
         "leave one of them out"),
    ],
)  # fmt: skip
def test_refusals(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert raised.value.summary == message


def test_no_mote_samples_less_often_than_min_sample_rate() -> None:
    """While its voltage changes, and with it what it can afford, too."""
    wanted = plan("SELECT nodeid LIFETIME 400 day MIN SAMPLE RATE 5 min")
    assert wanted.budget is not None
    mote = Mote(host.query_library())
    mote.synchronise(1000)
    mote.install(encode(merge([wanted]), 0, 400 * 86_400), 1)
    epochs: list[int] = []
    draw = Random(1)
    for _ in range(2000):
        mote.sensor(BY_NAME["voltage"].number, draw.randrange(EMPTY, FULL))
        mote.run(wanted.period_ms / 1000)
        epochs += [record.body.epoch for record in mote.records()]
    steps = [after - before for before, after in pairwise(epochs)]
    assert 1 in steps
    assert max(steps) == wanted.budget.most


@given(voltage=st.integers(EMPTY - 100, FULL + 100), days=st.integers(10, 190), age=st.floats(0, 0.95))
def test_motes_take_part_in_what_their_battery_allows(voltage: int, days: int, age: float) -> None:
    """Predicted for the voltage and the time that is left; the mote computes in whole uW."""
    wanted = plan(f"SELECT voltage LIFETIME {days} days")
    assert wanted.budget is not None
    length = days * 86_400
    now = int(length * age) // 16 * 16 + 8
    mote = Mote(host.query_library())
    mote.sensor(BY_NAME["voltage"].number, voltage)
    mote.synchronise(now)
    # The sensor has been read once, as it is for each status report.
    mote.install(encode(merge([plan("SELECT voltage FROM sensors ONCE")]), now + 1, now + 2), 9)
    mote.run(3)
    list(mote.records())
    assert mote.install(encode(merge([wanted]), 0, length), 1) == COMPLETE
    period = wanted.period_ms / 1000
    mote.run(300 * period)
    epochs = [record.body.epoch for record in mote.records()]
    if length - now < 300 * period or len(epochs) < 3:
        return
    # The time that is left shrinks while it runs, and a step is odd where the divisor changes: the middle one counts.
    share = min(1.0, max(0.0, (voltage - EMPTY) / (FULL - EMPTY)))
    middle = epochs[len(epochs) // 2] * period
    power = share * CAPACITY / (length - middle) * 1e6 - wanted.budget.idle
    if power > 100:
        exact = wanted.budget.energy / wanted.period_ms / power
        steps = sorted(after - before for before, after in pairwise(epochs[1:]))
        assert steps[len(steps) // 2] == pytest.approx(min(255, max(1, math.ceil(exact))), rel=0.15, abs=1)
