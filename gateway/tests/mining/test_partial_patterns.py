"""Partial periodic patterns, against mlxtend's Apriori over all periods: another algorithm for the same answer."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mlxtend.frequent_patterns import apriori

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.errors import MiningError
from skerry.mining.partial_patterns import Item, PartialPatterns


def drawn(seed: int, slots: int = 3000, period: int = 6) -> pa.Table:
    """At places 1 and 4 mostly a and b, elsewhere anything; several rows or none in some slots."""
    random = np.random.default_rng(seed)
    at = np.sort(random.integers(100, 100 + slots, slots))
    usual = {1: "a", 4: "b"}
    symbols = [
        usual[(slot - at[0]) % period] if (slot - at[0]) % period in usual and random.random() < 0.9 else random.choice(list("cdef"))
        for slot in at
    ]  # fmt: skip
    return pa.table({"slot": at, "s": [str(symbol) for symbol in symbols]})


def add(patterns: PartialPatterns, batch: pa.Table) -> None:
    patterns.add(batch["s"], batch["slot"])


def expected(
    table: pa.Table, period: int, support: float, longest: int | None = None
) -> dict[frozenset[Item], float]:
    """By Apriori, of all whole periods."""
    slots = table["slot"].to_numpy() - table["slot"][0].as_py()
    whole = int(slots[-1]) // period
    items = list(zip((slots % period).tolist(), table["s"].to_pylist(), strict=True))
    names = sorted(set(items))
    held = np.zeros((whole, len(names)), bool)
    for slot, item in zip(slots.tolist(), items, strict=True):
        if slot // period < whole:
            held[slot // period, names.index(item)] = True
    found = apriori(pd.DataFrame(held), min_support=support, use_colnames=True, max_len=longest)
    return {frozenset(names[i] for i in places): share for share, places in found.itertuples(index=False)}


@pytest.mark.parametrize("support", [0.05, 0.3])
def test_patterns_are_those_of_apriori_over_all_periods(support: float) -> None:
    table = drawn(1)
    patterns, _ = cut(PartialPatterns(6), table, 1, add)
    found = {
        frozenset(zip(row["places"], row["symbols"], strict=True)): row["support"]
        for row in patterns.found(support).to_pylist()
    }
    wanted = expected(table, 6, support)
    assert wanted
    assert found.keys() == wanted.keys()
    for pattern, share in wanted.items():
        assert abs(found[pattern] - share) < 1e-6
    assert patterns.found(0.3)["pattern"].to_pylist()[-1] == "* a * * b *"


def test_the_same_answer_wherever_the_stream_is_cut() -> None:
    table = drawn(3)
    whole = PartialPatterns(6)
    add(whole, table)
    for seed in range(3):
        assert cut(PartialPatterns(6), table, seed, add)[0].found(0.1).equals(whole.found(0.1))


def test_without_slots_each_row_is_the_next() -> None:
    patterns = PartialPatterns(3)
    for symbols in (["a", "x", "b"], ["a"], ["y", None, "a", "x", "b"], ["a"]):
        patterns.add(symbols)
    assert patterns.periods == 3
    rows = [(row["pattern"], round(row["support"], 3)) for row in patterns.found(0.6).to_pylist()]
    assert rows[:2] == [("a * *", 1.0), ("a x b", 0.667)]
    assert {pattern for pattern, _ in rows[2:]} == {"a x *", "a * b", "* x b", "* x *", "* * b"}


def test_a_period_without_slots_is_whole_with_its_last_row() -> None:
    """Also where that is no symbol, and wherever the stream is cut."""
    patterns, periods = PartialPatterns(2), []
    for symbol in ["a", "b", "a", None, "a"]:
        patterns.add([symbol])
        periods.append(patterns.periods)
        patterns = PartialPatterns.from_bytes(patterns.to_bytes())
    assert periods == [0, 1, 1, 2, 2]
    rows = [(row["pattern"], row["support"]) for row in patterns.found(0.5).to_pylist()]
    assert rows == [("a *", 1.0), ("a b", 0.5), ("* b", 0.5)]
    with pytest.raises(MiningError, match="slot 3 is of a period that was whole"):
        PartialPatterns.from_bytes(whole_of_four().to_bytes()).add(["a"], [3])


def whole_of_four() -> PartialPatterns:
    made = PartialPatterns(4)
    made.add(["a", "b", "c", "d"])
    assert made.periods == 1
    return made


def test_periods_without_rows_count() -> None:
    patterns = PartialPatterns(2)
    patterns.add(["a", "a", "a"], [0, 2, 8])
    assert patterns.periods == 4
    assert patterns.found(0.5).to_pylist() == [
        {"support": 0.5, "places": [0], "symbols": ["a"], "pattern": "a *"}
    ]


def test_hours_of_a_roads_day() -> None:
    """Levels of flow by the hour over nine days: nights are calm on all, and the answer is that of Apriori."""
    path = data_set("i80-emeryville.csv")
    table = duckdb.sql(
        f"""SELECT (epoch(timestamp::TIMESTAMP) // 3600)::BIGINT AS slot,
                   CASE WHEN avg(flow) < 200 THEN 'calm' WHEN avg(flow) < 450 THEN 'busy' ELSE 'full' END AS s
            FROM read_csv('{path}') WHERE station = (SELECT min(station) FROM read_csv('{path}')) GROUP BY slot ORDER BY slot"""
    ).to_arrow_table()
    patterns, _ = cut(PartialPatterns(24), table, 5, add)
    found = {
        frozenset(zip(row["places"], row["symbols"], strict=True)): row["support"]
        for row in patterns.found(1.0, longest=3).to_pylist()
    }
    assert found == expected(table, 24, 1.0, longest=3)
    assert patterns.periods >= 2


def test_what_is_wrong_is_named() -> None:
    patterns = PartialPatterns(3, most=1)
    patterns.add(["a"], [5])
    with pytest.raises(MiningError, match="slot 4 comes behind slot 5"):
        patterns.add(["a"], [4])
    with pytest.raises(MiningError, match="slots are 1 integers"):
        patterns.add(["a"], [0.5])
    with pytest.raises(MiningError, match="2 different periods, of which 1 are kept"):
        patterns.add(["b", "c"], [8, 11])
    assert patterns.periods == 0
    with pytest.raises(MiningError, match="period is 0"):
        PartialPatterns(0)
    with pytest.raises(MiningError, match="support is 0"):
        patterns.found(0)
