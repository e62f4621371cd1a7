"""Frequent subsequences, against scikit-learn's counting of n-grams of whole streams."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.errors import MiningError
from skerry.mining.subsequences import Subsequences


def add(runs: Subsequences, batch: pa.Table) -> None:
    runs.add(batch["stream"], batch["s"])


def drawn(seed: int) -> pa.Table:
    """Three streams' rows as they mix, with ``a b a`` in all of them."""
    random = np.random.default_rng(seed)
    streams = random.choice(["x", "y", "z"], 3000)
    at, symbols = dict.fromkeys("xyz", 0), []
    for stream in streams:
        at[stream] += 1
        symbols.append("aba"[at[stream] % 7] if at[stream] % 7 < 3 else random.choice(list("abcdefgh")))
    return pa.table({"stream": streams.tolist(), "s": [str(symbol) for symbol in symbols]})


def expected(
    table: pa.Table, shortest: int, longest: int, count: int, streams: int
) -> set[tuple[tuple[str, ...], int, int]]:
    names = sorted(set(table["stream"].to_pylist()))
    texts = [
        " ".join(s for n, s in zip(*(c.to_pylist() for c in table.columns), strict=True) if n == name)
        for name in names
    ]
    counter = CountVectorizer(ngram_range=(shortest, longest), token_pattern=r"\S+", lowercase=False)
    counts = counter.fit_transform(texts).toarray()
    counts = np.where(counts >= count, counts, 0)
    return {
        (tuple(gram.split()), int((counts[:, i] > 0).sum()), int(counts[:, i].sum()))
        for gram, i in counter.vocabulary_.items()
        if (counts[:, i] > 0).sum() >= streams
    }


def as_set(table: pa.Table) -> set[tuple[tuple[str, ...], int, int]]:
    return {(tuple(row["symbols"]), row["streams"], row["count"]) for row in table.to_pylist()}


@pytest.mark.parametrize(("count", "streams"), [(5, 3), (20, 1), (60, 2)])
def test_runs_are_those_of_whole_streams(count: int, streams: int) -> None:
    table = drawn(1)
    runs, _ = cut(Subsequences(2, 5), table, 2, add)
    wanted = expected(table, 2, 5, count, streams)
    assert wanted
    assert as_set(runs.found(count, streams)) == wanted


def test_what_appears_in_all_streams_comes_first() -> None:
    runs = Subsequences(3, 3)
    add(runs, drawn(4))
    assert runs.found(100).to_pylist()[0]["symbols"] == ["a", "b", "a"]


def test_no_run_goes_over_a_gap() -> None:
    runs = Subsequences(2, 2)
    runs.add(["x"] * 5, ["a", None, "b", "a", "b"])
    assert as_set(runs.found(1)) == {(("b", "a"), 1, 1), (("a", "b"), 1, 1)}


def test_steps_of_temperature_of_a_labs_motes() -> None:
    """Whether it became warmer, colder or neither, of four motes over five days."""
    path = data_set("lab-temperature.parquet")
    table = duckdb.sql(
        f"""SELECT stream, CASE WHEN d > 0.05 THEN 'up' WHEN d < -0.05 THEN 'down' ELSE 'level' END AS s FROM (
              SELECT stream, step, value - lag(value) OVER (PARTITION BY stream ORDER BY step) AS d
              FROM (UNPIVOT (SELECT step, mote01, mote02, mote03, mote04 FROM '{path}' WHERE step % 20 = 0)
                    ON mote01, mote02, mote03, mote04
                    INTO NAME stream VALUE value)) WHERE d IS NOT NULL ORDER BY step, stream"""
    ).to_arrow_table()
    runs, _ = cut(Subsequences(3, 6), table, 3, add)
    assert as_set(runs.found(10, 4)) == expected(table, 3, 6, 10, 4)
    assert len(runs.found(10, 4))


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(MiningError, match="shortest is 4: it is a whole number from 1 to 3"):
        Subsequences(4, 3)
    runs = Subsequences(1, 1, most=2)
    with pytest.raises(MiningError, match="2 names of streams are given for 1 symbols"):
        runs.add(["x", "x"], ["a"])
    with pytest.raises(MiningError, match="a row has no stream"):
        runs.add(pa.nulls(1), ["a"])
    with pytest.raises(MiningError, match="3 different runs, of which 2 are kept"):
        runs.add(["x"] * 3, ["a", "b", "c"])
    assert not len(runs.found(1))
