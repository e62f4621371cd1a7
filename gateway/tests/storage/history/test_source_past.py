"""HISTORY … ONLY of sources that are no motes: what DuckDB answers about the same rows, of files, of the log, and of both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.signal import find_peaks

from gateway.tests.sources.test_source_windows import (
    CREATE,
    SOURCES,
    drawn_queries,
    drawn_rows,
    exact,
    expected,
    fill,
    latest_sql,
    new_database,
    plain,
)
from skerry.mining.periods import Periods
from skerry.sensors.planning import planned
from skerry.sensors.store import SensorStore
from skerry.sources.batching import Part, batch_of
from skerry.sources.decoding import Decoder
from skerry.sources.reading import Arrived
from skerry.sql import sensor_statements
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.source_answer import SourceAnswer
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog

PAST = "HISTORY 50 year ONLY"
SEGMENT_ROWS = 8


@dataclass
class Tuple:
    """A tuple, as batches are made of it."""

    number: int
    values: tuple[Any, ...]


class Kept:
    """A log of drawn rows, of which some are in files."""

    def __init__(self, data: Path, seed: int) -> None:
        self.chance, self.database = random.Random(seed), new_database()
        self.store = SensorStore()
        self.store.run(sensor_statements.parse(CREATE), "ada", data, CREATE)
        self.table = self.store.tables()["detectors"]
        self.log, self.history = StreamLog(data, SEGMENT_ROWS), History(data)
        self.engine = PastEngine(data / "engine")
        assert self.table.stream is not None
        decoder = Decoder(self.table.stream.fields)
        batches: list[tuple[float, Tuple, list[Arrived]]] = []
        for number in range(1, SOURCES + 1):
            rows = drawn_rows(self.chance, 150)
            fill(self.database, number, rows)
            own = Tuple(number, (number, f"gate {number % 3}", "tcp://127.0.0.1:1"))
            got = [
                Arrived(
                    decoder.line(json.dumps(row).encode()), row["at"] * 1000, row["at"] * 1000, 0, own.values
                )
                for row in rows
            ]
            for at in range(0, len(got), 11):
                batches.append((self.chance.random() + at / 50, own, got[at : at + 11]))
        for _, own, part in sorted(batches, key=lambda one: one[0]):
            self.log.append_sources([batch_of(self.table, [Part(own, part, None, 0)])[0]])  # type: ignore[arg-type]
            if self.log.rows in (len(batches) // 3, 2 * len(batches) // 3):
                self.history.compact(self.log.path, self.log.rows, [])
        # The first third is in files alone.
        self.log.drop_before(len(batches) // 3)
        assert self.log.first > 0

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        plan = planned(sql, self.store.tables())
        assert plan is not None
        answer = SourceAnswer(plan, self.history, self.log.path, self.engine, 0, self.log.rows)
        position, more, found = -1, True, list[tuple[Any, ...]]()
        while more:
            deliveries, position, more = answer.after(position, Waiting())
            for part in deliveries:
                found += [tuple(map(plain, row.values())) for row in part.columns.to_pylist()]
        return found

    def expected(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(map(plain, row)) for row in self.database.execute(sql).fetchall()]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, drawn_seed: int) -> Iterator[Kept]:
    made = Kept(tmp_path_factory.mktemp("past"), drawn_seed)
    yield made
    made.engine.stop()
    made.log.close()


def test_drawn_questions_about_the_past(kept: Kept) -> None:
    [(last_ms,)] = kept.database.execute("SELECT max(ms) FROM detectors").fetchall()
    for one in drawn_queries(kept.chance, 8):
        windows = replace(one, revises=False).sql.replace("WAIT 6 h", PAST)
        assert sorted(kept.answer(windows), key=repr) == expected(kept.database, one, last_ms), windows
        groups = f"{latest_sql(one, 'LATEST detectors').replace('LATEST ', '')} {PAST}"
        of_groups = []
        for row in kept.database.execute(latest_sql(one, "(SELECT * FROM detectors)")).fetchall():
            keys, values = row[: len(one.groups)], row[len(one.groups) :]
            of_groups.append((*keys, *map(exact, one.aggregates, values)))
        assert sorted(kept.answer(groups), key=repr) == sorted(
            (tuple(map(plain, row)) for row in of_groups), key=repr
        ), groups
        rows = kept.expected(f"SELECT id, gas, level, ms / 1000 FROM detectors WHERE {one.where}")
        found = kept.answer(f"SELECT id, gas, level, at FROM detectors WHERE {one.where} {PAST}")
        assert sorted(map(repr, found)) == sorted(map(repr, rows)), one.where
        order = "ORDER BY level DESC{}, {}, id LIMIT 7"
        wanted = kept.expected(
            f"SELECT level, ms / 1000 FROM detectors WHERE {one.where} {order.format(' NULLS LAST', 'ms')}"
        )
        assert (
            kept.answer(f"SELECT level, at FROM detectors WHERE {one.where} {order.format('', 'at')} {PAST}")
            == wanted
        )


def test_what_is_mined_in_the_past_is_what_libraries_say_of_all_rows(kept: Kept) -> None:
    # In the order of the log, as rows came.
    rows = kept.answer(f"SELECT id, gas, heat FROM detectors {PAST}")
    ids = sorted({row[0] for row in rows})
    own = {number: [row for row in rows if row[0] == number] for number in ids}

    wanted: list[tuple[Any, ...]] = []
    for number in ids:
        made = Periods(6)
        made.add([gas for _, gas, _ in own[number]])
        found = made.found(0.02, 3).to_pylist()
        wanted += [(number, one["symbol"], one["period"], one["offset"], len(own[number])) for one in found]
    assert len(wanted) > 3
    sql = "SELECT id, symbol, length, offset, rows FROM PERIODS(detectors.gas, 6, 0.02)"
    assert sorted(kept.answer(f"{sql} {PAST}")) == sorted(wanted)
    assert sorted(kept.answer(f"{sql} WHERE id = 2 AND offset = 1 {PAST}")) == sorted(
        row for row in wanted if row[0] == 2 and row[3] == 1
    )

    wanted = []
    for number in ids:
        heats = np.array([heat for _, _, heat in own[number] if heat is not None], float)
        places, known = find_peaks(heats, prominence=0.5, wlen=9, plateau_size=(None, 9))
        found = zip(heats[places], known["prominences"], strict=True)
        wanted += [(number, *(round(float(value), 6) for value in one)) for one in found]
    assert len(wanted) > 3
    found = kept.answer(f"SELECT id, height, prominence FROM PEAKS(detectors.heat, 0.5, 9) {PAST}")
    assert sorted((one, round(height, 6), round(out, 6)) for one, height, out in found) == sorted(wanted)
    # Each peak comes once, however often what is found comes.
    often = kept.answer(
        f"SELECT id, height, prominence FROM PEAKS(detectors.heat, 0.5, 9) EVERY 7 ROWS {PAST}"
    )
    assert sorted(often) == sorted(found)


def test_files_have_the_columns_that_users_know(kept: Kept) -> None:
    [file] = {name for name in kept.history.manifest.files if name.startswith("source-1-")}
    names = pq.read_schema(kept.history.path / file).names
    assert names == ["row", "source", "time", "arrival", "id", "place", "reading", *(
        f"reading.{name}" for name in ("gas", "level", "counted", "ok", "heat", "seen", "at")
    )]  # fmt: skip


def test_a_column_that_came_later_and_another_type(tmp_path: Path) -> None:
    """Files have each schema for itself, so that none keeps others from being written."""
    store, log, history = SensorStore(), StreamLog(tmp_path), History(tmp_path)
    engine = PastEngine(tmp_path / "engine")
    for text in (
        "CREATE SENSORS t (id INT, s STREAM (v INT))",
        "ALTER SENSORS t ADD x INT",
        "ALTER SENSORS t DROP x",
        "ALTER SENSORS t ADD x TEXT",
    ):
        store.run(sensor_statements.parse(text), "ada", tmp_path, text)
        table = store.tables()["t"]
        values = (1, "tcp://127.0.0.1:1", *(["7"] if "TEXT" in text else [7] if "x INT" in text else []))
        log.append_sources(
            [
                batch_of(
                    table, [Part(Tuple(1, values), [Arrived([log.rows], 10**15, 10**15, 0, values)], None, 0)]
                )[0]
            ]
        )  # type: ignore[arg-type]
        history.compact(log.path, log.rows, [])
    plan = planned(f"SELECT v, x FROM t {PAST}", store.tables())
    assert plan is not None
    deliveries, _, _ = SourceAnswer(plan, history, log.path, engine, 0, log.rows).after(-1, Waiting())
    engine.stop()
    assert [tuple(row.values()) for part in deliveries for row in part.columns.to_pylist()] == [
        (0, None),
        (1, None),
        (2, None),
        (3, "7"),
    ]
    log.close()


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT level FROM detectors HISTORY 1 day", "the past of sources does not go on into the present"),
        ("SELECT level FROM LATEST detectors HISTORY 1 day ONLY", "the newest rows have no past"),
        (
            "SELECT COUNT(*, 1 min) FROM detectors WAIT 1 s HISTORY 1 day ONLY",
            "HISTORY … ONLY waits for nothing",
        ),
    ],
)
def test_what_has_no_past_is_told(kept: Kept, sql: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        planned(sql, kept.store.tables())
