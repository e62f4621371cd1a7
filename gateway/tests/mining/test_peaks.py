"""Peaks along a stream, against scipy's of the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import find_peaks

from gateway.tests.mining.cutting import cut
from gateway.tests.mining.data_sets import data_set
from skerry.mining.errors import MiningError
from skerry.mining.peaks import PeaksInStream


def found(
    values: np.ndarray, prominence: float, window: int, seed: int, height: float | None = None
) -> pa.Table:
    made = PeaksInStream(prominence, window, height)
    made, given = cut(made, pa.table({"v": values}), seed, lambda peaks, batch: peaks.add(batch["v"]))
    return pa.concat_tables([*given, made.end()])


def check(values: np.ndarray, prominence: float, window: int, seed: int, height: float | None = None) -> int:
    rows = found(values, prominence, window, seed, height)
    bound = -np.inf if height is None else height
    wanted, known = find_peaks(
        values, height=bound, prominence=prominence, wlen=window, plateau_size=(None, window)
    )
    assert rows["row"].to_pylist() == wanted.tolist()
    np.testing.assert_allclose(rows["height"].to_numpy(), known["peak_heights"], atol=1e-6)
    np.testing.assert_allclose(rows["prominence"].to_numpy(), known["prominences"], atol=1e-6)
    return len(wanted)


@pytest.mark.filterwarnings("ignore:some peaks have a prominence of 0")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window", [3, 9, 101])
def test_peaks_are_those_of_the_whole_stream(seed: int, window: int) -> None:
    random = np.random.default_rng(seed)
    # Steps of whole numbers: many peaks are level for a while.
    values = np.repeat(random.normal(size=400).cumsum().round(), random.integers(1, 25, 400)).astype(float)
    check(values, 0.5, window, seed)
    check(random.normal(size=3000), 1.5, window, seed, height=0.5)


def test_peaks_of_a_turned_magnetometer() -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(data_set("imu-100hz.parquet"))
    name = next(name for name in table.schema.names if name.startswith("mag_"))
    values = table[name].to_numpy().astype(float)
    assert check(values[~np.isnan(values)], 5.0, 201, 1) > 2


def test_a_level_stream_takes_no_room() -> None:
    peaks = PeaksInStream(1, 11)
    for _ in range(100):
        peaks.add(np.ones(1000))
    assert len(peaks.to_bytes()) < 1000
    assert peaks.rows == 100_000


def test_gaps_are_left_out() -> None:
    peaks = PeaksInStream(1, 3)
    told = peaks.add([0.0, None, 5.0, float("nan"), 0.0, 0.0, 0.0, 0.0, 0.0])
    assert told.to_pylist() == [{"row": 1, "height": 5.0, "prominence": 5.0}]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(MiningError, match="window is 10: it is odd"):
        PeaksInStream(1, 10)
    with pytest.raises(MiningError, match="window is 1: it is a whole number from 3"):
        PeaksInStream(1, 1)
    with pytest.raises(MiningError, match="prominence is -1"):
        PeaksInStream(-1, 3)
