"""What the sensors see: formulas and recordings."""

import datetime
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skerry_testbed.environment import SyntheticField, Trace, build
from skerry_testbed.network import Environment, Field, Mote, NetworkError

MOTES = [Mote(id=1, x=0, y=0, root=True), Mote(id=2, x=10, y=4)]


def synthetic(**fields: Field) -> SyntheticField | Trace:
    return build(Environment(fields=fields), MOTES, np.random.default_rng(1))


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Two nodes; node 8 misses epoch 101 and gives no temperature at 103."""
    rows = [(100, 7, 20.0, 40.0), (100, 8, 10.0, 50.0), (101, 7, 21.0, 41.0), (102, 7, 22.0, 42.0), (102, 8, 12.0, 52.0),
            (103, 8, math.nan, 53.0), (105, 7, 25.0, 45.0)]  # fmt: skip
    path = tmp_path / "trace.parquet"
    pd.DataFrame(rows, columns=["epoch", "nodeid", "temperature", "humidity"]).to_parquet(path)
    return str(path)


def sampled(trace: Trace, until: int) -> list[dict[tuple[int, str], float]]:
    """Values held at each second."""
    held: dict[tuple[int, str], float] = {}
    states = []
    for now in range(until):
        held |= {(index, name): value for index, name, value in trace.readings(now)}
        states.append(dict(held))
    return states


def test_a_field_slopes_and_swings() -> None:
    field = synthetic(temp=Field(base=20, gradient=(0.5, -1), amplitude=2, period="40 s"))
    assert {i: v for i, _, v in field.readings(0)} == pytest.approx({0: 20, 1: 21})
    assert {i: v for i, _, v in field.readings(10)} == pytest.approx({0: 22, 1: 23})
    assert {i: v for i, _, v in field.readings(30)} == pytest.approx({0: 18, 1: 19})


def test_noise_has_the_deviation_asked_for() -> None:
    field = synthetic(light=Field(base=300, noise=5))
    values = [value for now in range(2000) for _, _, value in field.readings(now)]
    assert np.std(values) == pytest.approx(5, rel=0.1)


def test_a_recording_is_held_until_the_nodes_next_sample(recording: str) -> None:
    environment = Environment(
        trace=recording,
        columns={"temp": "temperature", "humidity": "humidity"},
        nodes={"1": 7, "2": 8},
        time="epoch",
        step="1 s",
    )
    states = sampled(Trace(environment, MOTES), 6)
    assert [state[0, "temp"] for state in states] == [
        20,
        21,
        22,
        22,
        25,
        25,
    ]  # times are 100, 101, 102, 103, 105
    assert [state[1, "humidity"] for state in states] == [50, 50, 52, 53, 53, 53]
    assert math.isnan(states[3][1, "temp"])


def test_nodes_are_mapped_in_the_order_of_the_motes(recording: str) -> None:
    environment = Environment(trace=recording, columns={"temp": "temperature"}, nodes=[8, 7], step=1)
    assert sampled(Trace(environment, MOTES), 1)[0] == {(0, "temp"): 10, (1, "temp"): 20}


def test_a_recording_starts_where_told_and_sensors_fail_before_their_first_sample(recording: str) -> None:
    environment = Environment(
        trace=recording, columns={"temp": "temperature"}, nodes=[7, 8], start=101, step=1
    )
    states = sampled(Trace(environment, MOTES), 3)
    assert states[0][0, "temp"] == 21
    assert math.isnan(states[0][1, "temp"])
    assert states[1][1, "temp"] == 12


def test_a_recording_can_be_sped_up(recording: str) -> None:
    environment = Environment(trace=recording, columns={"temp": "temperature"}, nodes=[7, 8], speedup=0.5)
    assert [state[0, "temp"] for state in sampled(Trace(environment, MOTES), 6)] == [20, 20, 21, 21, 22, 22]


def test_times_may_be_dates(tmp_path: Path) -> None:
    path = tmp_path / "dates.parquet"
    times = pd.to_datetime(["2004-05-01 10:00:00", "2004-05-01 10:00:03"])
    pd.DataFrame({"time": times, "nodeid": [1, 1], "temp": [5.0, 6.0]}).to_parquet(path)
    states = sampled(Trace(Environment(trace=str(path)), MOTES[:1]), 5)
    assert [state[0, "temp"] for state in states] == [5, 5, 5, 6, 6]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"columns": {"temp": "tmp"}}, "no column 'tmp'; it has epoch, nodeid, temperature, humidity"),
        ({"columns": {"temp": "temperature"}, "time": "when"}, "no column 'when'"),
        ({"nodes": [7, 9]}, r"no sample of node 9, for mote 2: give it another's, as in nodes = \{ 2 = 7 \}"),
        ({"columns": {"temp": "temperature"}}, "environment.nodes"),
        ({"columns": {"temp": "temperature"}, "nodes": [7, 9]}, "no sample of node 9, for mote 2"),
        (
            {"columns": {"temp": "temperature"}, "nodes": [7, 8], "start": 105},
            "no sample of node 8, for mote 2",
        ),
    ],
)
def test_what_a_recording_lacks_is_named(recording: str, options: dict[str, object], expected: str) -> None:
    with pytest.raises(NetworkError, match=expected):
        Trace(Environment(trace=recording, **options), MOTES)  # type: ignore[arg-type]


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    path.write_text("no Parquet")
    with pytest.raises(NetworkError, match=r"trace\.parquet: no Parquet file"):
        Trace(Environment(trace=str(path)), MOTES)


@pytest.mark.parametrize(
    "times",
    [
        [datetime.date(2004, 2, 28), datetime.date(2004, 2, 29)],
        [datetime.datetime(2004, 2, 28), datetime.datetime(2004, 2, 29)],
        pd.to_datetime(["2004-02-28 02:00", "2004-02-29 02:00"]).tz_localize("Asia/Tbilisi"),
        [1077926400, 1078012800],
    ],
)
@pytest.mark.filterwarnings("error")
def test_dates_of_each_kind_are_times(tmp_path: Path, times: list[object]) -> None:
    path = tmp_path / "trace.parquet"
    pd.DataFrame({"time": times, "nodeid": [1, 1], "accel_x": [0.1, 0.2]}).to_parquet(path)
    trace = Trace(Environment(trace=str(path), speedup=86400), MOTES[:1])
    assert [states[0, "accel_x"] for states in sampled(trace, 2)] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": [pd.Timestamp(0), None], "temp": [1.0, 2.0]}, "column 'time' says no time in 1 of 2 rows"),
        ({"time": [1.0, math.nan], "temp": [1.0, 2.0]}, "column 'time' says no time in 1 of 2 rows"),
        ({"time": ["noon", "one"], "temp": [1.0, 2.0]}, "column 'time' has .*: expected numbers"),
        ({"time": [1, 2], "temp": ["warm", "cold"]}, "column 'temp' has .*: expected numbers"),
        ({"time": [1, 2], "temp": [1.0, 2.0]}, r"start = 9\.0: the last sample of these nodes is at 2"),
    ],
)
def test_a_recording_that_cannot_be_read_is_told_by_its_column(
    tmp_path: Path, columns: dict[str, list[object]], message: str
) -> None:
    path = tmp_path / "trace.parquet"
    pd.DataFrame({"nodeid": [1, 1], **columns}).to_parquet(path)
    with pytest.raises(NetworkError, match=rf"environment\.trace .*: {message}"):
        Trace(Environment(trace=str(path), start=9.0 if "start" in message else None), MOTES[:1])
