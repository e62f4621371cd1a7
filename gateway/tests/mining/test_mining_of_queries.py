"""What is mined in streams as users ask for it, through a real gateway, its log and Spark, beside the library's answer."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import find_peaks
from scipy.spatial.distance import cdist
from scipy.stats import zscore

from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually
from skerry.mining.clusters import Clusters
from skerry.mining.partial_patterns import PartialPatterns
from skerry.mining.periods import Periods
from skerry.mining.subsequences import Subsequences

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, heat DOUBLE, at TIMESTAMP FORMAT 'unix ms' TIME))"
ASKED = {
    "periods": "SELECT detectors.place, symbol, length, offset, confidence, rows FROM PERIODS(detectors.gas, 12, 0.7) AS p "
    "EVERY 40 ROWS WHERE id < 3",
    "patterns": "SELECT pattern, support, periods FROM PATTERNS(detectors.gas, 4, 0.4) WINDOW 60 ROWS WHERE id = 1",
    "runs": "SELECT run, count, rows FROM SUBSEQUENCES(detectors.gas, 2, 3, 5) EVERY 50 ROWS WHERE id = 1",
    "clusters": "SELECT cluster, middle, rows FROM CLUSTERS(detectors.heat, 1) EVERY 100 ROWS WHERE id = 1",
    "peaks": "SELECT height, prominence FROM PEAKS(detectors.heat, 1, 5) EVERY 10 ROWS WHERE id = 1",
    "nearest": "SELECT shape, distance, row, rows FROM NEAREST(detectors.heat, 'shapes') EVERY 65 ROWS WHERE id = 1",
    "ended": "SELECT symbol, length, rows FROM PERIODS(detectors.gas, 4) WHERE id = 3 AND confidence > 0.5",
}
#: Of all that has come by then.
PAST = "SELECT id, symbol, length, offset, rows FROM PERIODS(detectors.gas, 12, 0.7) WHERE id < 3 HISTORY 50 year ONLY"
SHAPES = {"saw": [0.0, 5.0, 0.0, 5.0], "step": [0.0, 0.0, 5.0, 5.0]}


def drawn(chance: random.Random, first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "gas": "abcd"[n % 4] if chance.random() < 0.9 else None,
            "heat": chance.gauss(5 * (n % 2), 0.3),
            "at": 10**12 + n * 1000,
        }
        for n in range(first, first + count)
    ]


def periods(rows: list[dict[str, Any]], place: str) -> list[tuple[Any, ...]]:
    """Of all rows up to each fortieth."""
    found: list[tuple[Any, ...]] = []
    for end in range(40, len(rows) + 1, 40):
        made = Periods(12)
        made.add([row["gas"] for row in rows[:end]])
        names = "symbol", "period", "offset", "confidence"
        found += [(place, *(one[name] for name in names), end) for one in made.found(0.7).to_pylist()]
    return found


def patterns(gases: list[str | None]) -> list[tuple[Any, ...]]:
    """Of sixty rows each."""
    found: list[tuple[Any, ...]] = []
    for begin, end in pairwise(range(0, len(gases) + 1, 60)):
        made = PartialPatterns(4)
        made.add(gases[begin:end])
        found += [(one["pattern"], one["support"], made.periods) for one in made.found(0.4).to_pylist()]
    return found


def runs(gases: list[str | None]) -> list[tuple[Any, ...]]:
    """Of all rows up to each fiftieth."""
    found: list[tuple[Any, ...]] = []
    for end in range(50, len(gases) + 1, 50):
        made = Subsequences(2, 3)
        made.add(["1"] * end, gases[:end])
        found += [(" ".join(one["symbols"]), one["count"], end) for one in made.found(5, 1).to_pylist()]
    return found


def clusters(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of a hundred rows."""
    made = Clusters(["a0"], 1.0)
    made.add(pa.table({"a0": [row["heat"] for row in rows[:100]]}))
    return [(one["cluster"], one["middle"], 100) for one in made.found().to_pylist()]


def peaks(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of all rows those that are certain."""
    heats = np.array([row["heat"] for row in rows])
    places, known = find_peaks(heats, prominence=1, wlen=5, plateau_size=(None, 5))
    certain = places < len(rows) // 10 * 10 - 5
    return list(zip(heats[places][certain].tolist(), known["prominences"][certain].tolist(), strict=True))


def nearest(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of all rows up to each sixty-fifth."""
    found: list[tuple[Any, ...]] = []
    for end in range(65, len(rows) + 1, 65):
        windows = np.lib.stride_tricks.sliding_window_view(np.array([row["heat"] for row in rows[:end]]), 4)
        away = cdist(zscore(np.array(list(SHAPES.values())), axis=1), zscore(windows, axis=1))
        found += [
            (name, round(float(own.min()), 6), int(own.argmin()) + 3, end)
            for name, own in zip(SHAPES, away, strict=True)
        ]
    return found


def ask(daemon: Daemon, servers: list[LineServer], past: list[dict[str, Any]]) -> dict[str, Reader]:
    """Of two servers, and of a file of the past."""
    ada = daemon.client("ada")
    ada.execute(CREATE)
    ada.execute("CREATE SENSORS shapes (name TEXT, points DOUBLE[])")
    shapes = ", ".join(f"('{name}', '{points}')" for name, points in SHAPES.items())
    ada.execute(f"INSERT INTO shapes VALUES {shapes}")
    folder = daemon.data / "streams"
    folder.mkdir(exist_ok=True)
    lines = [f"{row['gas'] or ''},{row['heat']},{row['at']}" for row in past]
    (folder / "past.csv").write_text("\n".join(["gas,heat,at", *lines, ""]))
    addresses = [*(server.address for server in servers), "replay:past.csv?speed=max"]
    values = ", ".join(f"({i}, 'gate {i}', '{address}')" for i, address in enumerate(addresses, 1))
    ada.execute(f"INSERT INTO detectors VALUES {values}")
    return {name: Reader(ada.query(sql, linger_s=None)) for name, sql in ASKED.items()}


@pytest.mark.spark
@pytest.mark.slow
def test_what_streams_have_in_them_comes_as_they_go_on_also_after_kill_9(
    daemon: Daemon, drawn_seed: int
) -> None:
    chance, servers = random.Random(drawn_seed), [LineServer(), LineServer()]
    daemon.start()
    past = drawn(chance, 0, 90)
    readers = ask(daemon, servers, past)
    wait_for(lambda: all(server.listeners == 1 for server in servers))
    rows = [drawn(chance, 0, 70), drawn(chance, 5, 90)]
    for server, own in zip(servers, rows, strict=True):
        server.send(*own)
    wait_for(lambda: not readers["ended"].thread.is_alive())
    whole = Periods(4)
    whole.add([row["gas"] for row in past])
    wanted = [(one["symbol"], one["period"], 90) for one in whole.found(0.8).to_pylist()]
    found = [tuple(row.values()) for row in readers["ended"].got]
    assert found == wanted, "the last answer comes when all sources have ended"
    wait_for(lambda: daemon.client().status()["source_streams"][0]["rows"] == 250)
    first = len(periods(rows[0], "") + periods(rows[1], ""))
    wait_for(lambda: len(readers["periods"].got) == first)
    daemon.kill()
    wait_for(lambda: sum(server.listeners for server in servers) == 0)
    daemon.start()
    wait_for(lambda: all(server.listeners == 1 for server in servers))
    more = [drawn(chance, 70, 60), drawn(chance, 95, 60)]
    for server, new in zip(servers, more, strict=True):
        server.send(*new)
    rows = [own + new for own, new in zip(rows, more, strict=True)]
    gases = [row["gas"] for row in rows[0]]
    both = periods(rows[0], "gate 1") + periods(rows[1], "gate 2")
    expected = {
        "periods": both,
        "patterns": patterns(gases),
        "runs": runs(gases),
        "clusters": clusters(rows[0]),
        "peaks": peaks(rows[0]),
        "nearest": nearest(rows[0]),
    }

    def got(name: str) -> list[tuple[Any, ...]]:
        one = [tuple(row.values()) for row in readers[name].got]
        return (
            sorted((shape, round(away, 6), *of) for shape, away, *of in one)
            if name == "nearest"
            else sorted(one)
        )

    for name, wanted in expected.items():
        eventually(lambda name=name: got(name), sorted(wanted))
    again = Reader(daemon.client("ada").resume(readers["periods"].rows.id))
    eventually(lambda: again.got, readers["periods"].got)
    wholes = []
    for number, own in enumerate(rows, 1):
        whole = Periods(12)
        whole.add([row["gas"] for row in own])
        found = whole.found(0.7).to_pylist()
        wholes += [(number, one["symbol"], one["period"], one["offset"], len(own)) for one in found]
    assert sorted(tuple(row.values()) for row in daemon.client("ada").query(PAST)) == sorted(wholes)
    status = {one["algorithm"]: one for one in daemon.client().status()["joins"]}
    assert status.keys() == {"PERIODS", "PATTERNS", "SUBSEQUENCES", "CLUSTERS", "PEAKS", "NEAREST"}
    assert (status["PERIODS"]["rows"], status["PERIODS"]["trouble"]) == (sum(map(len, rows)), None)
    for name in expected:
        readers[name].rows.stop()
    wait_for(lambda: sum(server.listeners for server in servers) == 0)
    for server in servers:
        server.close()
