"""The nearest shape, against scikit-learn's neighbours of scipy's z-scores."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import zscore
from sklearn.neighbors import NearestNeighbors

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.errors import MiningError
from skerry.mining.shapes import Shapes, ShapesInStream

AT = np.linspace(0, 1, 48)
KNOWN = {
    "rise": AT.tolist(),
    "wave": np.sin(AT * 9).tolist(),
    "bump": np.exp(-(((AT - 0.5) / 0.1) ** 2)).tolist(),
}


def expected(rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    neighbours = NearestNeighbors(n_neighbors=1).fit(zscore(np.array(list(KNOWN.values())), axis=1))
    distances, which = neighbours.kneighbors(zscore(rows, axis=1))
    return [list(KNOWN)[i] for i in which[:, 0]], distances[:, 0]


def test_arrays_are_nearest_to_what_scikit_learn_says() -> None:
    rows = np.random.default_rng(1).normal(size=(500, 48)).cumsum(axis=1) * 30 + 1e4
    names, distances = Shapes(KNOWN).nearest(rows)
    wanted = expected(rows)
    assert names.to_pylist() == wanted[0]
    np.testing.assert_allclose(distances.to_numpy(), wanted[1], atol=1e-6)


def test_each_rows_surroundings_wherever_the_stream_is_cut() -> None:
    values = np.random.default_rng(2).normal(size=1500).cumsum()
    _, given = cut(
        ShapesInStream(KNOWN), pa.table({"v": values}), 3, lambda made, batch: made.add(batch["v"])
    )
    found = pa.concat_tables(given)
    wanted = expected(np.lib.stride_tricks.sliding_window_view(values, 48))
    assert found["row"].to_pylist() == list(range(47, 1500))
    assert found["shape"].to_pylist() == wanted[0]
    np.testing.assert_allclose(found["distance"].to_numpy(), wanted[1], atol=1e-6)


def test_what_is_level_or_has_gaps_has_no_shape() -> None:
    rows = np.stack([np.full(48, 7.1), np.where(AT > 0.9, np.nan, AT), AT * 3 + 5])
    names, distances = Shapes(KNOWN).nearest(rows)
    assert names.to_pylist() == [None, None, "rise"]
    assert distances.to_pylist()[:2] == [None, None]
    stream = ShapesInStream(KNOWN)
    assert not len(stream.add([1.0] * 47 + [None]))
    assert stream.rows == 48


def test_a_light_that_is_switched_on_is_found() -> None:
    """A step of a room's light: where its shape is nearest, light has risen."""
    path = data_set("light-steps.parquet")
    import duckdb

    light = duckdb.sql(
        f"SELECT \"Light\"::DOUBLE AS v FROM '{path}' ORDER BY date LIMIT 5000"
    ).to_arrow_table()
    step = {"on": [0.0] * 8 + [1.0] * 8, "off": [1.0] * 8 + [0.0] * 8}
    stream = ShapesInStream(step)
    found = stream.add(light["v"]).to_pylist()
    values = light["v"].to_numpy()
    best = {
        name: min((row for row in found if row["shape"] == name), key=lambda row: row["distance"])
        for name in step
    }
    for name, row in best.items():
        window = values[row["row"] - 15 : row["row"] + 1]
        rose = window[8:].mean() > window[:8].mean()
        assert rose == (name == "on")
        assert row["distance"] < 0.5


def test_what_is_wrong_is_named() -> None:
    for shapes, said in (
        ({}, "there are no shapes"),
        ({"a": [1, 2, 3], "b": [1, 2]}, "shape 'b' has 2 points and others have 3"),
        ({"a": [1, 1, 1]}, "shape 'a' is level"),
        ({"a": [1.0]}, "one has 2 to 65536"),
    ):
        with pytest.raises(MiningError, match=said):
            Shapes(shapes)  # type: ignore[arg-type]
    with pytest.raises(MiningError, match="a column of string is mined as numbers"):
        ShapesInStream(KNOWN).add(pa.array(["a"]))
