"""What joins keep over a week of their rows' time with a stream that is silent: replays at great speed into a gateway.

Two streams have a row every some seconds; a third one is open, and never has any. Three joins: of the two; of all three; of the two, LEFT
of the silent one. What is kept is looked at again and again, also on disk: it is to be what the window and LATENESS ask for, and what
a batch brings, on the last day as on the first ones.
"""

from __future__ import annotations

import csv
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_ISREG

import duckdb
import numpy as np

import skerry
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from examples.running_gateway import gateway
from gateway.tests.process import wait_for

CREATE = "CREATE SENSORS streams (id INT, reading STREAM (at TIMESTAMP TIME, item INT, value DOUBLE))"
EQUAL = "b.id = 2 AND a.item = b.item"
#: By what they are called here.
QUERIES = {
    "two streams": f"SELECT a.item FROM streams a JOIN streams b ON {EQUAL} WINDOW {{w}} min WHERE a.id = 1 LATENESS {{late}} h",
    "with the silent one": f"SELECT a.item FROM streams a, b, c WINDOW {{w}} min WHERE a.id = 1 AND {EQUAL} AND c.id = 3 "
    "AND b.item = c.item LATENESS {late} h",
    "LEFT JOIN of the silent one": f"SELECT a.item FROM streams a JOIN streams b ON {EQUAL} "
    "LEFT JOIN streams c ON c.id = 3 AND a.item = c.item WINDOW {w} min WHERE a.id = 1 LATENESS {late} h",
}  # fmt: skip
#: Replays with one clock are three hours of their rows' time apart at most.
LATENESS_H = 4
_BEGINS = datetime(2024, 1, 1, tzinfo=UTC)
_DAY_US, _LOOK_S, _WAIT_S = 86_400_000_000, 0.5, 600.0


@dataclass(frozen=True)
class Week(SeedOptions):
    days: float = option(7.0, "of the rows' time")
    speed: float = option(5_000.0, "s of it in one of the clock on the wall")
    every: float = option(5.0, "s between two rows of a stream")
    items: int = option(1_000, "different items")
    window: int = option(60, "minutes of the joins' windows")


def write(folder: Path, options: Week) -> list[Path]:
    """The files of the two that talk; that of the third is there, and empty."""
    folder.mkdir(parents=True)
    rng, count = np.random.default_rng(options.seed), int(options.days * 86_400 / options.every)
    paths = [folder / f"{number}.csv" for number in (1, 2)]
    for path in paths:
        with path.open("w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["at", "item", "value"])
            for place, item, value in zip(
                range(count), rng.integers(0, options.items, count), rng.random(count), strict=True
            ):
                writer.writerow(
                    [(_BEGINS + timedelta(seconds=place * options.every)).isoformat(), item, f"{value:.6f}"]
                )
    (folder / "silent.jsonl").touch()
    return paths


def pairs(paths: list[Path], minutes: int) -> int:
    """Answers of the two streams, as DuckDB has them."""
    one, other = (f"read_csv('{path}')" for path in paths)
    within = f"b.at BETWEEN a.at - INTERVAL {minutes} MINUTE AND a.at + INTERVAL {minutes} MINUTE"
    [[found]] = duckdb.execute(
        f"SELECT count(*) FROM {one} a JOIN {other} b ON a.item = b.item AND {within}"
    ).fetchall()
    return int(found)


class Kept:
    """Looks at what is kept, by join: the virtual day, rows, bytes; and bytes on disk."""

    def __init__(self, client: skerry.Client, directory: Path, names: dict[str, str]) -> None:
        self._client, self._directory, self._names = client, directory, names
        self.looks: dict[str, list[tuple[float, int, int]]] = {name: [] for name in names.values()}
        self.disk: list[tuple[float, int, int]] = []
        self.late = 0

    def look(self) -> float:
        """Once more; which day it is."""
        day = 0.0
        for join in self._client.status()["joins"]:
            greatest = [us for us in join["greatest_us"].values() if us]
            own = (min(greatest) - _BEGINS.timestamp() * 1e6) / _DAY_US if len(greatest) > 1 else 0.0
            day = max(day, own)
            self.late = max(self.late, join["late"])
            self.looks[self._names[join["query"]]].append((own, join["rows"], join["bytes"]))
        self.disk.append((day, size_of(self._directory / "checkpoint"), size_of(self._directory / "runs")))
        return day


def size_of(directory: Path) -> int:
    """Bytes of all files; those that go meanwhile have none."""
    size = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):
            status = path.stat()
            size += status.st_size if S_ISREG(status.st_mode) else 0
    return size


def counted(rows: skerry.Rows) -> Callable[[], int]:
    """How many have come."""
    found = [0]

    def read() -> None:
        for _ in rows:
            found[0] += 1

    threading.Thread(target=read, daemon=True).start()
    return lambda: found[0]


def measure(options: Week, recorder: Recorder) -> None:
    """One gateway, three joins."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        data = Path(directory) / "data"
        paths = write(data / "streams", options)
        wanted = pairs(paths, options.window)
        with gateway(Path(directory)) as client:
            client.execute(CREATE)
            asked = {
                name: client.query(text.format(w=options.window, late=LATENESS_H))
                for name, text in QUERIES.items()
            }
            answers = {name: counted(rows) for name, rows in asked.items()}
            wait_for(lambda: client.status()["spark"]["state"] == "running", _WAIT_S)
            replays = ", ".join(
                f"({number}, 'replay:{number}.csv?speed={options.speed:g}&clock=week')" for number in (1, 2)
            )
            client.execute(
                f"INSERT INTO streams VALUES {replays}, (3, 'file:silent.jsonl?format=json&from=start')"
            )
            kept = Kept(client, data / "joins", {rows.id: name for name, rows in asked.items()})
            last, ends = 0.0, time.monotonic() + options.days * 86_400 / options.speed + _WAIT_S
            while last < options.days - options.every / 43_200 and time.monotonic() < ends:
                time.sleep(_LOOK_S)
                last = kept.look()
                recorder.progress(f"day {last:.2f} of {options.days:g}")
            wait_for(lambda: answers["two streams"]() >= wanted, _WAIT_S)
            tell(options, recorder, kept, {name: count() for name, count in answers.items()})
        if answers["two streams"]() != wanted or kept.late:
            recorder.problem(
                f"{answers['two streams']()} answers of the two streams, where DuckDB has {wanted}, and {kept.late} late rows"
            )
        if answers["with the silent one"]():
            recorder.problem("there are answers with a stream that has no rows")


def tell(options: Week, recorder: Recorder, kept: Kept, answers: dict[str, int]) -> None:
    """By day, and at most beside what the window and LATENESS ask to be kept of two streams."""
    table = recorder.table(
        "days",
        [
            Column("join"), Column("day"), Column("rows kept at most", form=","), Column("bytes kept at most", form=","),
        ],
        labels=2,
    )  # fmt: skip
    days = range(1, max(2, int(options.days)) + 1)
    asked = 2 * (options.window * 60 + LATENESS_H * 3_600) / options.every
    for name, looks in kept.looks.items():
        for day in days:
            found = [one[1:] for one in looks if day - 1 <= one[0] < day]
            if found:
                table.row(name, day, *(max(values) for values in zip(*found, strict=True)))
        recorder.figure(
            f"rows kept at most ÷ rows of the window and LATENESS, {name}", max(rows for _, rows, _ in looks) / asked, "×", ".2f",
            better="less", goal=1.5, main=True,
        )  # fmt: skip
        recorder.figure(f"answers, {name}", answers[name])
    disk = recorder.table(
        "disk",
        [
            Column("day"), Column("Spark's checkpoint at most", "bytes", ","), Column("files of kept rows at most", "bytes", ","),
        ],
    )  # fmt: skip
    for day in days:
        sizes = [one[1:] for one in kept.disk if day - 1 <= one[0] < day]
        if sizes:
            disk.row(day, *(max(values) for values in zip(*sizes, strict=True)))


BENCHMARK = Benchmark(measure, quick=Week(days=3.0, speed=10_000.0, every=60.0), minutes=4)
