"""Functions over arrays, over HTTP and where executors evaluate them; scipy and scikit-learn say what is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import find_peaks
from scipy.stats import zscore
from sklearn.neighbors import NearestNeighbors

import skerry
from gateway.tests.joins.test_joins_of_log import Running
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.served import served
from skerry.client.errors import GatewayError
from skerry.execution.source_matching import SourceRows, SourceView, _matched, delivered, given_back
from skerry.execution.source_rows import read
from skerry.joins.executor import table_bytes
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.array_calls import column_of
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import MOMENT
from skerry.sensors.planning import planned
from skerry.spark.join_file import JoinFile
from skerry.sql.sensor_statements import CreateSensors, parse
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceBatch, SourceFiles
from skerry.storage.log.stream_log import StreamLog

CHANNELS = np.arange(64)
KNOWN = {
    name: (100 * np.exp(-(((CHANNELS - at) / 3) ** 2)) + 1000 / (CHANNELS + 20)).round(3).tolist()
    for name, at in (("low", 12), ("middle", 30), ("high", 50))
}
SELECT = (
    "SELECT n, NEAREST(counts, 'shapes') AS nearest, DISTANCE(counts, 'shapes') AS away, DISTANCE(counts, 'shapes', 'low') AS low, "
    "PEAKS(counts, 40, 2) AS peaks, WITHOUT(counts, 'shapes', 'low', n * 0.5) AS rest FROM detectors"
)


def measured(seed: int, count: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.poisson(KNOWN[random.choice(list(KNOWN))]).tolist() for _ in range(count)]


def expected(spectra: list[list[int]]) -> list[dict[str, object]]:
    shapes, rows = zscore(np.array(list(KNOWN.values())), axis=1), zscore(np.array(spectra), axis=1)
    away, which = NearestNeighbors(n_neighbors=1).fit(shapes).kneighbors(rows)
    return [
        {
            "n": n, "nearest": list(KNOWN)[which[n, 0]], "away": pytest.approx(away[n, 0], abs=1e-6),
            "low": pytest.approx(np.linalg.norm(rows[n] - shapes[0]), abs=1e-6),
            "peaks": find_peaks(spectrum, prominence=40, width=2)[0].tolist(),
            "rest": pytest.approx(np.array(spectrum) - n * 0.5 * np.array(KNOWN["low"])),
        }
        for n, spectrum in enumerate(spectra)
    ]  # fmt: skip


def made(text: str) -> SensorTable:
    statement = parse(text)
    assert isinstance(statement, CreateSensors)
    return define(statement, "ada", 1)


def test_arrays_of_a_table_are_compared_with_shapes_also_after_a_restart(
    peer: RootPeer, tmp_path: Path
) -> None:
    spectra = measured(1, 20)
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute("CREATE SENSORS shapes (name TEXT, points DOUBLE[])")
        for name, points in KNOWN.items():
            ada.execute(f"INSERT INTO shapes VALUES ('{name}', '{points}')")
        ada.execute("CREATE SENSORS detectors (n INT, counts INT[] 'counts')")
        values = ", ".join(f"({n}, '{counts}')" for n, counts in enumerate(spectra))
        ada.execute(f"INSERT INTO detectors VALUES {values}")
        assert ["counts", "INT[]", "counts", "", None, None] in ada.execute("DESCRIBE detectors")["rows"]
        rows = ada.query(SELECT)
        assert [column["type"] for column in rows.columns] == [
            "integer",
            "text",
            "decimal",
            "decimal",
            "list",
            "list",
        ]
        assert list(rows) == expected(spectra)
        ada.execute("UPDATE detectors SET counts = '[1, 2]' WHERE n = 0")
        ada.execute("UPDATE detectors SET counts = NULL WHERE n = 1")
        unknown = list(ada.query(SELECT + " WHERE n < 2 ORDER BY n"))
        assert [(row["nearest"], row["away"], row["rest"]) for row in unknown] == [(None, None, None)] * 2
        assert [row["peaks"] for row in unknown] == [[], None]
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        low = [
            row["n"] for row in ada.query("SELECT n FROM detectors WHERE NEAREST(counts, 'shapes') = 'low'")
        ]
        assert low == [n for n, row in enumerate(expected(spectra)) if row["nearest"] == "low" and n > 1]


def test_a_stream_is_made_of_them_and_joins_calculate_them(tmp_path: Path) -> None:
    table = made("CREATE SENSORS detectors (id INT, reading STREAM (n INT, counts INT[]))")
    tables, file, log = {"detectors": table}, JoinFile(tmp_path), StreamLog(tmp_path)
    seen = planned("CREATE STREAM seen AS " + SELECT + " WHERE n >= 0", tables, lambda _: KNOWN)
    both = planned(
        "SELECT a.n, NEAREST(b.counts, 'shapes') AS nearest FROM detectors a, detectors b WINDOW 0 s WHERE a.n = b.n "
        "AND NEAREST(b.counts, 'shapes') <> 'low'", tables, lambda _: KNOWN,
    )  # fmt: skip
    plans_made = [plan.sources for plan in (seen, both) if plan is not None and plan.sources is not None]
    for number, source in enumerate(plans_made, 1):
        assert source.join is not None
        file.append([["join", str(number), 0, source.join.executed()]])
    running, spectra = Running(tmp_path), measured(3, 12)
    log.append_sources([batch(table, spectra[:5], 0), batch(table, spectra[5:], 5)])
    joined = running.batch()
    assert joined is not None
    log.append_sources(list(joined.answers))
    found = [
        rows_of_log(log, replace(source, stream=plans.answers_of(str(number), made=bool(source.made))))
        for number, source in enumerate(plans_made, 1)
    ]
    right = expected(spectra)
    assert sorted(found[0], key=lambda row: row["n"]) == right
    other = [{"a.n": row["n"], "nearest": row["nearest"]} for row in right if row["nearest"] != "low"]
    assert sorted(found[1], key=lambda row: row["a.n"]) == other


def batch(table: SensorTable, spectra: list[list[int]], first: int) -> SourceBatch:
    count = len(spectra)
    times = pa.array(10**15 + first * 1000 + np.arange(count)).cast(MOMENT)
    columns = {
        plans.SOURCE: pa.array(np.ones(count, np.int64)), plans.TIME: times, plans.ARRIVAL: times,
        "id": pa.array(np.ones(count, np.int64)), "reading.n": pa.array(np.arange(first, first + count)),
        "reading.counts": pa.array(spectra, pa.list_(pa.int64())),
    }  # fmt: skip
    return SourceBatch(table.stream_number, count, 10**15, 10**15, table_bytes(pa.table(columns)))


def rows_of_log(log: StreamLog, plan: SourcePlan) -> list[dict[str, Any]]:
    first, records = stream_log.read_there(log.path, 0, stream_log.length(log.path))
    mine = records["stream"] == plan.stream
    numbers = np.arange(first, first + len(records), dtype=np.int64)[mine]
    rows = [delivered(plan, of) for of in read(SourceFiles(log.path), numbers, records[mine]).values()]
    return [row for delivery in rows if delivery is not None for row in delivery.columns.to_pylist()]


def test_executors_give_back_values_and_not_what_they_are_of() -> None:
    table = made("CREATE SENSORS detectors (n INT, reading STREAM (counts INT[]))")
    plan = planned(SELECT, {"detectors": table}, lambda _: KNOWN)
    assert plan is not None
    source = plan.sources
    assert source is not None
    view = SourceView.of(source)
    assert SourceView.from_text(view.to_text()) == view
    assert [name for name, _ in view.columns] == ["n"]
    assert len(view.calls) == 5
    spectra = measured(2, 10)
    columns = {"n": pa.array(range(10)), "reading.counts": pa.array(spectra)}
    raw = delivered(source, SourceRows(np.arange(10), columns))
    # As they come from executors: without the arrays.
    matched = _matched(1, SourceRows(np.arange(10), columns), {7: view})
    assert set(matched.batch.schema.names) == {".n", *("." + column_of(call) for call in view.calls)}
    found = delivered(
        SourcePlan(source.table, source.stream, source.outputs, None, None), given_back(matched)
    )
    assert raw is not None
    assert found is not None
    assert raw.columns.to_pylist() == found.columns.to_pylist() == expected(spectra)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[skerry.Client]:
    """A user of a gateway that has tables of shapes."""
    peer = RootPeer()
    with opened(peer, tmp_path_factory.mktemp("gateway")) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute("CREATE SENSORS shapes (name TEXT, points DOUBLE[])")
        ada.execute(f"INSERT INTO shapes VALUES ('low', '{json.dumps(KNOWN['low'])}')")
        ada.execute("CREATE SENSORS uneven (name TEXT, points DOUBLE[])")
        ada.execute("INSERT INTO uneven VALUES ('a', '[1, 2, 3]'), ('b', '[1, 2]')")
        ada.execute("CREATE SENSORS detectors (n INT, counts INT[])")
        yield ada
    peer.close()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("NEAREST(counts)", "NEAREST does not take these arguments"),
        ("NEAREST(n, 'shapes')", "NEAREST is of an array"),
        ("NEAREST(counts, 'shape')", "there is no table 'shape'"),
        ("NEAREST(counts, shapes)", "unknown column 'shapes'|the table of shapes is a text"),
        ("NEAREST(counts, 'detectors')", "table 'detectors' has no names with arrays"),
        ("NEAREST(counts, 'uneven')", "shape 'b' has 2 points and others have 3"),
        ("DISTANCE(counts, 'shapes', 'lov')", "'shapes' has no shape 'lov'"),
        ("WITHOUT(counts, 'shapes', 'low', 'x')", "how many times a shape is taken away is a number"),
        ("PEAKS(counts, n)", "a peak's bounds are numbers"),
        ("PEAK(counts, 1)", "'PEAK' is no function over sensors"),
        ("counts + 1", "an array is no number"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(call: str, said: str, user: skerry.Client) -> None:
    with pytest.raises(GatewayError, match=said):
        user.query(f"SELECT {call} FROM detectors")


def test_what_is_no_array_is_told(user: skerry.Client) -> None:
    for value in ("'[1.5]'", "'[true]'", "'1, 2'", "'{}'", "1", "'[[1]]'"):
        with pytest.raises(GatewayError, match=r"column counts is INT\[\], which"):
            user.execute(f"INSERT INTO detectors VALUES (1, {value})")
    with pytest.raises(GatewayError, match="an array of TEXT"):
        user.execute("CREATE SENSORS x (names TEXT[])")
