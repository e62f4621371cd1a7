"""Periods of symbols, against scipy's correlation of the whole stream."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import correlate

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.errors import MiningError
from skerry.mining.periods import Periods


def drawn(seed: int, rows: int = 2000) -> pa.Table:
    """``abc..`` with every fourth row noise, and some gaps."""
    random = np.random.default_rng(seed)
    found = [
        random.choice(list("abcd")) if i % 4 == 3 or random.random() < 0.05 else "abc"[i % 4]
        for i in range(rows)
    ]
    return pa.table({"s": pa.array([None if random.random() < 0.01 else one for one in found])})


def add(periods: Periods, batch: pa.Table) -> None:
    periods.add(batch["s"])


@pytest.mark.parametrize("seed", range(3))
def test_matches_are_those_of_the_whole_streams_correlation(seed: int) -> None:
    table = drawn(seed)
    periods, _ = cut(Periods(40), table, seed, add)
    for symbol in "abcd":
        there = np.array([one == symbol for one in table["s"].to_pylist()], float)
        whole = correlate(there, there, method="fft")[len(there) - 1 :]
        found = [periods.matches(symbol, period) for period in range(1, 41)]
        np.testing.assert_allclose(found, whole[1:41], atol=1e-6)


def test_the_same_answer_wherever_the_stream_is_cut() -> None:
    table = drawn(7)
    whole = Periods(40)
    whole.add(table["s"])
    for seed in range(3):
        assert cut(Periods(40), table, seed, add)[0].found(0.5).equals(whole.found(0.5))


def test_the_drawn_period_is_found_with_its_places() -> None:
    periods = Periods(10)
    periods.add(drawn(1)["s"])
    rows = periods.found(0.8).to_pylist()
    assert {(row["symbol"], row["offset"]) for row in rows if row["period"] == 4} == {
        ("a", 0),
        ("b", 1),
        ("c", 2),
    }
    assert {row["period"] for row in rows} == {4, 8}


def test_a_road_has_its_day() -> None:
    """Flow in steps of 150 vehicles per 5 minutes: of periods from 200 to 300 rows that of most matches is a day, 288 rows."""
    path = data_set("i80-emeryville.csv")
    flow = duckdb.sql(
        f"SELECT (flow // 150)::INT AS s FROM read_csv('{path}') WHERE station = 401211 ORDER BY timestamp"
    ).to_arrow_table()
    periods = Periods(300)
    periods.add(flow["s"])
    total = [sum(periods.matches(str(s), period) for s in range(10)) for period in range(200, 301)]
    assert abs(int(np.argmax(total)) + 200 - 288) <= 2


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(MiningError, match="longest is 0: it is a whole number from 1 to 10000"):
        Periods(0)
    with pytest.raises(MiningError, match="counters: at most"):
        Periods(10_000)
    periods = Periods(5, most_symbols=2)
    with pytest.raises(MiningError, match="'c' is one symbol more than the 2 that are kept"):
        periods.add(["a", "b", "c"])
    assert periods.rows == 0
    with pytest.raises(MiningError, match="a column of double has no symbols"):
        periods.add([0.5])
    with pytest.raises(MiningError, match="confidence is 2: it is a share"):
        periods.found(2)
    with pytest.raises(MiningError, match="this is no state of periods"):
        Periods.from_bytes(b"\xc1")
