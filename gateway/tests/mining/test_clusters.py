"""Clusters against scikit-learn's of the whole, and drift within a stated number of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.clusters import Clusters
from skerry.mining.errors import MiningError
from skerry.mining.periods import Periods

#: Drift is found within so many rows where all rows have moved.
ROWS = 100


def table(points: np.ndarray) -> pa.Table:
    return pa.table({"x": points[:, 0], "y": points[:, 1]})


def add(clusters: Clusters, batch: pa.Table) -> list[int]:
    return clusters.add(batch)


def blobs(seed: int, middles: object = None, rows: int = 3000) -> np.ndarray:
    middles = [[0, 0], [10, 0], [0, 10], [10, 10]] if middles is None else middles
    points: np.ndarray = make_blobs(rows, centers=np.array(middles), cluster_std=1.0, random_state=seed)[0]
    return points


@pytest.mark.parametrize("seed", range(3))
def test_drawn_clusters_are_those_of_k_means(seed: int) -> None:
    points = blobs(seed)
    clusters, drifts = cut(Clusters(["x", "y"], 2.0), table(points), seed, add)
    wanted = KMeans(4, n_init=5, random_state=0).fit_predict(points)
    score = adjusted_rand_score(wanted, clusters.labels(table(points)).to_numpy())
    assert score >= 0.9
    assert not any(drifts)


def test_clusters_of_unlike_sizes_are_those_of_density() -> None:
    """How many there are is not said."""
    points = make_blobs(
        [2000, 600, 400],
        centers=np.array([[0, 0], [9, 0], [4, 9]]),
        cluster_std=[1.2, 0.7, 0.5],
        random_state=1,
    )[0]
    clusters = Clusters(["x", "y"], 3.0)
    clusters.add(table(points))
    wanted = DBSCAN(1.0, min_samples=10).fit_predict(points)
    inside = wanted >= 0
    assert adjusted_rand_score(wanted[inside], clusters.labels(table(points)).to_numpy()[inside]) >= 0.9


@pytest.mark.parametrize("seed", range(5))
def test_drift_is_found_in_time_and_clusters_follow(seed: int) -> None:
    moved = blobs(seed + 100, [[30, 30], [40, 30], [30, 40], [40, 40]])
    clusters, drifts = cut(Clusters(["x", "y"], 2.0), table(np.concatenate([blobs(seed), moved])), seed, add)
    [at] = [row for found in drifts for row in found]
    assert 3000 <= at <= 3000 + ROWS
    wanted = KMeans(4, n_init=5, random_state=0).fit_predict(moved)
    assert adjusted_rand_score(wanted, clusters.labels(table(moved)).to_numpy()) >= 0.9


def test_the_same_answer_wherever_the_stream_is_cut() -> None:
    points = table(np.concatenate([blobs(1, rows=1500), blobs(2, [[20, 20]], rows=500)]))
    whole = Clusters(["x", "y"], 2.0)
    whole.add(points)
    for seed in range(3):
        clusters, _ = cut(Clusters(["x", "y"], 2.0), points, seed, add)
        assert clusters.drifts == whole.drifts
        assert clusters.labels(points).equals(whole.labels(points))


def test_one_that_moves_away_from_where_all_were() -> None:
    """Indoor temperature and humidity that a lab's motes never had: drift, and once."""
    path = data_set("lab-temperature.parquet")
    import duckdb

    rows = duckdb.sql(
        f"SELECT mote01 AS x, mote02 AS y FROM '{path}' WHERE step < 2000 ORDER BY step"
    ).to_arrow_table()
    points = np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()], axis=1)
    hot = points[:500] + 40
    clusters = Clusters(["x", "y"], 2.0)
    clusters.add(table(points))
    before = len(clusters.drifts)
    found = clusters.add(table(hot))
    assert found
    assert found[0] <= 2000 + ROWS
    assert before <= 2


def test_rows_with_gaps_are_in_no_cluster() -> None:
    clusters = Clusters(["x", "y"], 2.0)
    points = table(blobs(1))
    clusters.add(points)
    gap = pa.table({"x": pa.array([None, 0.0]), "y": [0.0, 0.0]})
    clusters.add(gap)
    assert clusters.rows == 3001
    assert [label is None for label in clusters.labels(gap).to_pylist()] == [True, False]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(MiningError, match="radius is 0: it is a number above 0"):
        Clusters(["x"], 0)
    with pytest.raises(MiningError, match="2 columns are clustered: name 1 to 256 different ones"):
        Clusters(["x", "x"], 1)
    with pytest.raises(MiningError, match="rows have no column 'z': they have x, y"):
        Clusters(["z"], 1).add(table(blobs(1, rows=10)))
    with pytest.raises(MiningError, match="of periods, version 1, and not of clusters"):
        Clusters.from_bytes(Periods(2).to_bytes())
