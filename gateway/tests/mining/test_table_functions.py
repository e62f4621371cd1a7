"""Table functions as executors run them: rows cut into batches anywhere, beside the library's answer to all of them at once."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.signal import find_peaks
from scipy.spatial.distance import cdist
from scipy.stats import zscore

from gateway.tests.mining.cutting import batches
from skerry.execution.mined_rows import PLACES, MinedGroup, answers_of, dealt, mined_of
from skerry.execution.mining_buckets import MiningBucket, failed, packed
from skerry.mining.clusters import Clusters
from skerry.mining.errors import MiningError
from skerry.mining.partial_patterns import PartialPatterns
from skerry.mining.periods import Periods
from skerry.mining.subsequences import Subsequences
from skerry.planner.model import source_plans as plans
from skerry.sensors.planning import planned
from skerry.sensors.store import SensorStore
from skerry.sensors.table_functions import symbols_of
from skerry.sql import sensor_statements
from skerry.sql.errors import QueryError
from skerry.sql.parser import parse
from skerry.storage.log.source_batches import NOTHING

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', heat DOUBLE, at TIMESTAMP TIME))"
SHAPES = {"up": [0.0, 1.0, 2.0, 4.0], "wave": [0.0, 1.0, 0.0, -1.0], "peak": [0.0, 3.0, 1.0, 0.0]}
SECOND, BUCKETS = 1_000_000, 3
#: Of peaks: how far they stand out, within how many rows.
PROMINENCE, SURROUNDINGS = 0.4, 9


def store() -> SensorStore:
    made = SensorStore()
    shapes = ", ".join(f"('{name}', '{points}')" for name, points in SHAPES.items())
    for sql in (
        CREATE,
        "CREATE SENSORS shapes (name TEXT, points DOUBLE[])",
        f"INSERT INTO shapes VALUES {shapes}",
    ):
        made.run(sensor_statements.parse(sql), "ada", Path(), sql)
    return made


def group_of(sql: str) -> MinedGroup:
    known = store()
    plan = planned(sql, known.tables(), known.shapes)
    assert plan is not None
    assert plan.sources is not None
    assert plan.sources.join is not None
    return MinedGroup("1", json.loads(plan.sources.join.spec), 0, {"7": None})


def drawn(seed: int, rows: int) -> pa.Table:
    """Of three sources, each with a period of its own, noise and gaps; a row's number is in the log's order."""
    chance = random.Random(seed)
    seen = {1: 0, 2: 0, 3: 0}
    found = []
    for n in range(rows):
        source = chance.choice([1, 1, 2, 3])
        seen[source] += 1
        gas = "abcdef"[seen[source] % (source + 2)] if chance.random() < 0.9 else chance.choice("abc")
        found.append({
            plans.SOURCE: source, plans.TIME: 10**15 + n * SECOND // 2 - chance.choice([0, 0, 0, 3 * SECOND]),
            "id": source, "place": f"gate {source}", "reading.gas": None if chance.random() < 0.02 else gas,
            "reading.heat": chance.gauss(5.0 * source, 0.5), "reading.level": None,
        })  # fmt: skip
    table = pa.Table.from_pylist(found)
    moment = table[plans.TIME].cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index(plans.TIME), plans.TIME, moment)


def mined(group: MinedGroup, table: pa.Table, seed: int) -> list[dict[str, Any]]:
    """What comes of batches, their states kept as bytes; the last ones come twice, as after a crash."""
    states: dict[int, bytes] = {}
    found: list[dict[str, Any]] = []
    end, through = 0, NOTHING
    parts = list(batches(table, seed, 10))
    for part in [*parts, None]:
        blocks, before = [], dict(states)
        for again in (False, True):
            states = dict(before) if again else states
            blocks = []
            own: dict[int, pa.Table] = {}
            if part is not None and part.num_rows:
                numbers = np.arange(end, end + part.num_rows, dtype=np.int64) << PLACES
                columns = {name: part[name].combine_chunks() for name in part.column_names}
                rows = mined_of(group, numbers, columns)
                own = dict(dealt(group, rows, BUCKETS)) if rows is not None else {}
            for bucket in range(BUCKETS):
                operator = MiningBucket(group, states.get(bucket))
                came = operator.add(own[bucket]) if bucket in own else []
                came += operator.end() if part is None else []
                states[bucket] = operator.to_bytes()
                blocks += [packed(came)] if came else []
            upto = end + (part.num_rows if part is not None else 0)
            answers = answers_of(group, "7", blocks, upto, through) if blocks else None
            if again:
                assert answers is None, "a batch that comes again brings nothing"
                continue
            if answers is not None:
                through = answers.through
                found += pa.ipc.open_stream(answers.data).read_all().to_pylist()
        # Answers are rows of the log, too.
        end = upto + 1
    return found


def periods(rows: pa.Table) -> list[dict[str, Any]]:
    made = Periods(12)
    made.add(rows["reading.gas"])
    return [{"length": one.pop("period"), **one} for one in made.found(0.6).to_pylist()]


def patterns(rows: pa.Table) -> list[dict[str, Any]]:
    made = PartialPatterns(4)
    made.add(rows["reading.gas"])
    found = made.found(0.3).to_pylist()
    return [{"pattern": one["pattern"], "support": one["support"], "periods": made.periods} for one in found]


def runs(rows: pa.Table) -> list[dict[str, Any]]:
    made = Subsequences(2, 3)
    made.add(rows[plans.SOURCE], rows["reading.gas"])
    found = made.found(5, 2).to_pylist()
    return [
        {"run": " ".join(one["symbols"]), "sources": one["streams"], "count": one["count"]} for one in found
    ]


def clusters(rows: pa.Table) -> list[dict[str, Any]]:
    made = Clusters(["reading.heat"], 1.0)
    made.add(rows)
    return list(made.found().to_pylist())


def peaks(rows: pa.Table) -> list[dict[str, Any]]:
    """What scipy says of all rows at once."""
    values = rows["reading.heat"].to_numpy()
    places, known = find_peaks(
        values, height=-np.inf, prominence=PROMINENCE, wlen=SURROUNDINGS, plateau_size=(None, SURROUNDINGS)
    )
    at = rows[plans.TIME].take(pa.array(places)).to_pylist()
    found = zip(at, known["peak_heights"].tolist(), known["prominences"].tolist(), strict=True)
    return [
        {"peak": moment, "height": round(height, 6), "prominence": round(out, 6)}
        for moment, height, out in found
    ]


def nearest(rows: pa.Table) -> list[dict[str, Any]]:
    """Of scipy's distances between z-scores those that are least."""
    values, times = rows["reading.heat"].to_numpy(), rows[plans.TIME].to_pylist()
    if len(values) < 4:
        return []
    windows = zscore(np.lib.stride_tricks.sliding_window_view(values, 4), axis=1)
    away = cdist(zscore(np.array(list(SHAPES.values())), axis=1), windows)
    found = []
    for name, distances in zip(SHAPES, away, strict=True):
        place = int(distances.argmin())
        found.append({
            "shape": name, "distance": round(float(distances[place]), 6), "since": times[place], "until": times[place + 3],
            "row": place + 3,
        })  # fmt: skip
    return found


def ends(rows: pa.Table, every: dict[str, int]) -> list[int]:
    """Behind which rows what is found comes, the last one, as all sources have ended, included."""
    if "rows" in every:
        found = list(range(every["rows"], rows.num_rows + 1, every["rows"]))
    else:
        spans = np.maximum.accumulate(rows[plans.TIME].cast(pa.int64()).to_numpy()) // every["us"]
        found = (np.flatnonzero(np.diff(spans) > 0) + 1).tolist()
    return list(dict.fromkeys([*found, rows.num_rows]))


@pytest.mark.parametrize(
    ("sql", "library"),
    [
        ("SELECT *, id FROM PERIODS(detectors.reading.gas, 12, 0.6) EVERY 50 ROWS", periods),
        (
            "SELECT symbol, length, p.offset, matches, confidence, rows, detectors.id "
            "FROM PERIODS(detectors.gas, 12, 0.6) AS p EVERY 1 min",
            periods,
        ),
        ("SELECT *, id FROM PATTERNS(detectors.gas, 4, 0.3) WINDOW 60 ROWS WHERE id < 3", patterns),
        ("SELECT *, id FROM PATTERNS(detectors.gas, 4, 0.3) WINDOW = 2 min", patterns),
        ("SELECT * FROM SUBSEQUENCES(detectors.gas, 2, 3, 5, 2) EVERY 200 ROWS", runs),
        ("SELECT * FROM CLUSTERS(detectors.heat, 1) EVERY 300 ROWS WHERE heat > 0", clusters),
        (
            f"SELECT peak, height, prominence, rows, id FROM PEAKS(detectors.heat, {PROMINENCE}, {SURROUNDINGS}) WINDOW 70 ROWS",
            peaks,
        ),
        ("SELECT *, id FROM NEAREST(detectors.heat, 'shapes') EVERY 50 ROWS", nearest),
        ("SELECT *, id FROM NEAREST(detectors.heat, 'shapes') WINDOW 1 min WHERE id > 1", nearest),
    ],
)
def test_batches_give_what_the_library_says_of_all_rows(
    sql: str, library: Callable[[pa.Table], list[dict[str, Any]]], drawn_seed: int
) -> None:
    table = drawn(drawn_seed, 600)
    group = group_of(sql)
    found = mined(group, table, drawn_seed)
    wanted = []
    chosen = table.filter(pc.field("id") < 3) if "id < 3" in sql else table
    chosen = chosen.filter(pc.field("id") > 1) if "id > 1" in sql else chosen
    own = [chosen.filter(pc.field("id") == n) for n in (1, 2, 3)] if group.by_source else [chosen]
    for rows in (one for one in own if one.num_rows):
        begin = 0
        for end in ends(rows, group.spec["every"]):
            part = rows.slice(begin, end - begin)
            of = {"rows": end - begin, **({"id": rows["id"][0].as_py()} if group.by_source else {})}
            wanted += [{**one, **of} for one in library(part)] if part.num_rows else []
            begin = end if group.spec["anew"] else 0
    assert len(wanted) > 5
    shown = [{name.partition(".")[2]: value for name, value in one.items() if "." in name} for one in found]
    for one in shown:
        one.pop("drifts", None), one.pop("drifted", None)
        one |= {name: round(one[name], 6) for name in ("distance", "height", "prominence") if name in one}
    assert sorted(shown, key=repr) == sorted(
        ({name: one[name] for name in shown[0]} for one in wanted), key=repr
    )


def test_each_peak_of_a_stream_that_goes_on_is_told_once(drawn_seed: int) -> None:
    table = drawn(drawn_seed, 600)
    group = group_of(
        f"SELECT id, peak, height, prominence, rows FROM PEAKS(detectors.heat, {PROMINENCE}, {SURROUNDINGS}) EVERY 20 ROWS"
    )
    found = [
        {name.partition(".")[2]: value for name, value in one.items()}
        for one in mined(group, table, drawn_seed)
    ]
    assert len({one["rows"] for one in found if one["id"] == 1}) > 5, "they come as the stream goes on"
    for source in (1, 2, 3):
        own = [one for one in found if one["id"] == source]
        told = [
            {"peak": one["peak"], **{name: round(one[name], 6) for name in ("height", "prominence")}}
            for one in own
        ]
        assert told == peaks(table.filter(pc.field("id") == source))


def test_motes_are_asked_for_what_is_mined_of_them() -> None:
    plan = planned(
        "SELECT nodeid, symbol, length FROM PERIODS(sensors.light / 10, 24) AS p EVERY 1 h "
        "WHERE nodeid < 9 AND sensors.temp > 20 AND confidence > 0.9 SAMPLE PERIOD 5 s FOR 1 day",
        {},
    )
    assert plan is not None
    assert plan.sources is not None
    assert plan.sources.join is not None
    [asked] = plan.sources.join.questions
    assert re.fullmatch(
        r"SELECT nodeid, light FROM sensors WHERE .*nodeid < 9.* AND .*temp > 20.* SAMPLE PERIOD 5000 ms FOR 86400000 ms",
        asked,
    )
    assert plan.sources.where is not None
    assert list(plan.sources.where.columns()) == ["p.confidence"]
    assert not plan.sources.join.of_sources


def test_symbols_are_texts_or_numbers_below() -> None:
    levels = pa.array([-0.5, 0.0, 1.9, None, float("nan"), 1e300])
    assert symbols_of(levels).to_pylist() == [-1, 0, 1, None, None, None]
    assert symbols_of(levels.slice(0, 3).cast(pa.decimal128(38, 9))).to_pylist() == [-1, 0, 1]
    assert symbols_of(pa.array(["a", None])).to_pylist() == ["a", None]


def test_more_symbols_than_are_kept_are_told() -> None:
    group = group_of("SELECT * FROM PERIODS(detectors.gas, 5)")
    names = ["a0", "number", "time", "source"]
    rows = pa.table([pa.array([f"{n}" for n in range(101)]), *([pa.array(range(101))] * 3)], names)
    with pytest.raises(MiningError, match="is one symbol more than the 100 that are kept"):
        MiningBucket(group, None).add(rows.set_column(3, "source", pa.array([1] * 101)))
    with pytest.raises(MiningError, match="as before"):
        MiningBucket(group, failed("as before"))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT * FROM PERIODE(detectors.gas, 5)",
            "'PERIODE' is no table function .*did you mean 'periods'",
        ),
        ("SELECT * FROM PERIODS(detector.gas, 5)", "'detector' is no table of .*did you mean 'detectors'"),
        ("SELECT * FROM PERIODS(gas, 5)", "nothing says of which table PERIODS is .*write the table before"),
        (
            "SELECT * FROM PERIODS(detectors.gas)",
            r"PERIODS does not take these arguments .*PERIODS\(table.symbol, longest",
        ),
        ("SELECT * FROM PERIODS(detectors.gas, 5, 2)", "the confidence is 2.0: it is a share"),
        ("SELECT * FROM PERIODS(detectors.at, 5)", "symbols are texts, numbers or conditions"),
        ("SELECT * FROM PERIODS(detectors.gas, 1.5)", "the longest period is 1.5: it is a whole number"),
        ("SELECT * FROM PERIODS(detectors.gas, 5 s)", "numbers without a unit"),
        ("SELECT gas FROM PERIODS(detectors.gas, 5)", "a field is of one row, and what is found of many"),
        (
            "SELECT run, place FROM SUBSEQUENCES(detectors.gas, 1, 2, 3)",
            "what is found is of all sources together",
        ),
        ("SELECT * FROM PEAKS(detectors.heat, 1, 10)", "window is 10: it is odd"),
        ("SELECT * FROM PEAKS(detectors.gas, 1, 9)", "PEAKS is of numbers"),
        ("SELECT * FROM PEAKS(detectors.heat, detectors.level, 1, 9)", "PEAKS does not take these arguments"),
        (
            "SELECT * FROM NEAREST(detectors.heat, 4)",
            r"NEAREST does not take these arguments .*'table of shapes'",
        ),
        (
            "SELECT * FROM NEAREST(detectors.heat, 'shape')",
            "there is no table 'shape' .*did you mean 'shapes'",
        ),
        ("SELECT light FROM PERIODS(sensors.light, 5)", "a field is of one row, .*nodeid may stand there"),
        ("SELECT * FROM PERIODS(sensors.light, 5) ONCE", "ONCE is for queries over motes alone"),
        (
            "SELECT * FROM PERIODS(sensors.light, 5) SAMPLE PERIOD 1 s OUTPUT ACTION blink",
            "OUTPUT ACTION is for queries over motes alone .*rows are mined at the gateway",
        ),
        (
            "SELECT * FROM PERIODS(sensors.light, 5) HISTORY 1 day ONLY SAMPLE PERIOD 1 s",
            "mined in rows as they were recorded .*leave SAMPLE PERIOD out",
        ),
        ("SELECT * FROM PERIODS(sensors.lihgt, 5)", "unknown attribute 'lihgt' .*did you mean 'light'"),
        ("SELECT * FROM PERIODS(sensors.light + road.light, 5)", "unknown table 'road' .*it is sensors"),
        ("SELECT * FROM PERIODS(detectors.gas, 5) HISTORY 1 day", "does not go on into the present"),
        ("SELECT * FROM PERIODS(detectors.gas, 5) EVERY 0 ROWS", "EVERY 0 ROWS .*it is 1 row or more"),
        (
            "SELECT * FROM PERIODS(detectors.gas, 5) EVERY 5 ROWS WINDOW 5 ROWS",
            "EVERY and WINDOW are said both",
        ),
        ("SELECT * FROM PERIODS(detectors.gas, 5) ORDER BY length", "ORDER BY is not for what is mined"),
        ("SELECT * FROM PERIODS(detectors.gas, 5) AS p, detectors", "what is mined is joined with nothing"),
        ("SELECT gas FROM detectors EVERY 5 ROWS", "EVERY is for what is mined"),
    ],
)
def test_what_is_wrong_is_named(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        assert planned(sql, store().tables(), store().shapes) is not None or parse(sql)
    assert re.search(said, f"{refused.value.message} {refused.value.hint}"), (
        refused.value.message,
        refused.value.hint,
    )
