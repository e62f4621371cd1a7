"""Rows that are folded where they are, without knowing what else there is, give what they give one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gateway.tests.logs import plan_of
from skerry.execution.partial_panes import PartialPanes, fold
from skerry.execution.window_rows import Input
from skerry.planner.model.frames import Frame, is_windowed
from skerry.windows.courses import Key
from skerry.windows.group_bounds import GroupNumbers
from skerry.windows.panes import Panes
from skerry.windows.results import Result

#: Windows of several lengths, a landmark's, and those with whose late rows all groups come again; light * 10000000 is wide.
QUERIES = (
    "SELECT AVG(temp, 30 s, 10 s), MAX(light * 10000000, 30 s, 10 s) FROM sensors SAMPLE PERIOD 5 s",
    "SELECT MIN(temp, 60 s, 60 s), SUM(light, 20 s, 20 s) FROM sensors SAMPLE PERIOD 5 s",
    "SELECT COUNT(*, start, 20 s), AVG(temp, start, 20 s) FROM sensors SAMPLE PERIOD 5 s",
    "SELECT AVG(temp, 90 min, 90 min) FROM sensors ORDER BY AVG(temp, 90 min, 90 min) SAMPLE PERIOD 5 s",
)
WIDTH_MS, GRACE_MS, ROWS, GROUPS = 10_000, 12_000, 400, 3
FRAMES: dict[Frame, None] = {}
ARGUMENTS = []
for query in QUERIES:
    plan = plan_of(query)
    assert plan.window is not None
    FRAMES[plan.window] = None
    ARGUMENTS += [node.args[0] for node in plan.aggregates() if is_windowed(node) and node.args]
ARGUMENTS = list(dict.fromkeys(ARGUMENTS))


def panes() -> Panes:
    made = Panes(WIDTH_MS, GRACE_MS)
    for frame in FRAMES:
        made.want(ARGUMENTS, frame, 0)
    return made


def drawn(draw: np.random.Generator, *, late: bool) -> Input:
    """Rows with silences, some of which may be late, a few by more than an hour; a few do not count."""
    seconds = np.cumsum(draw.choice([0, 1, 2, 3, 4000], ROWS, p=[0.3, 0.4, 0.2, 0.095, 0.005]))
    behind = draw.choice([0, 5, 25, 100, 3700], ROWS, p=[0.6, 0.2, 0.1, 0.09, 0.01]) * late
    samples = np.maximum(seconds - behind, 0) * 1000
    chosen = np.flatnonzero(draw.random(ROWS) < 0.9)
    count = len(chosen)
    known = draw.random(count) < 0.9
    values = {e: (draw.integers(e.low, e.high, count), known) for e in ARGUMENTS}
    groups, motes = draw.integers(0, GROUPS, count), draw.integers(0, 9, count)
    return Input(np.arange(ROWS), samples, samples + 1_000_000, chosen, groups, values, motes)


def folded(rows: Input) -> PartialPanes:
    return replace(fold(rows, ARGUMENTS, WIDTH_MS, GRACE_MS), groups=tuple((n,) for n in range(GROUPS)))


def picked(rows: Input, mine: np.ndarray) -> Input:
    """Those of one partition of the log."""
    of_chosen = mine[rows.chosen]
    places = np.cumsum(mine) - 1
    values = {e: (vector[of_chosen], known[of_chosen]) for e, (vector, known) in rows.arguments.items()}
    return Input(
        rows.numbers[mine], rows.sample_ms[mine], rows.utc_ms[mine], places[rows.chosen[of_chosen]],
        rows.groups[of_chosen], values, rows.motes[of_chosen],
    )  # fmt: skip


def halves(draw: np.random.Generator, batch: Input) -> np.ndarray:
    """Which rows of a batch have another partition: the second half, those of another root, or of one whose rows are all late."""
    count = len(batch.numbers)
    latest = np.maximum.accumulate(batch.sample_ms)
    ways = np.arange(count) >= count // 2, draw.random(count) < 0.5, batch.sample_ms < latest - GRACE_MS
    return ways[draw.integers(len(ways))]


def given(result: Result) -> list[tuple[object, ...]]:
    """Rows of windows that came with one row of the log in order of their ends and groups."""
    facts = [
        *(result.rows[name].tolist() for name in result.rows.dtype.names),
        result.ends_utc_ms(1.0).tolist(),
    ]
    states = [result.states[key].tolist() for key in sorted(result.states, key=str)]
    return sorted(
        (*row, *map(tuple, cells)) for row, *cells in zip(zip(*facts, strict=True), *states, strict=True)
    )


@pytest.mark.parametrize("seed", range(2))
def test_folded_rows_give_what_rows_give_one_by_one(seed: int) -> None:
    print(f"seed {seed}")
    draw, outcomes, came = np.random.default_rng(seed), Counter[bool](), Counter[Key]()
    for log in range(4):
        rows, single, merged = drawn(draw, late=log > 0), panes(), panes()
        numbers = GroupNumbers({(n,): n for n in range(GROUPS)})
        expected = {key: list[tuple[object, ...]]() for key in single.courses}
        found = {key: list[tuple[object, ...]]() for key in single.courses}
        for row in range(ROWS):
            for key, result in single.process(rows.part(row, row + 1), GROUPS).items():
                expected[key] += given(result)
        cuts = np.unique(draw.integers(1, ROWS, draw.integers(2, 20)))
        for first, end in pairwise([0, *cuts.tolist(), ROWS]):
            batch = rows.part(first, end)
            second = halves(draw, batch)
            parts = [folded(picked(batch, mine)) for mine in (~second, second) if mine.any()]
            of_parts = numbers.merge(merged, parts)
            outcomes[of_parts is not None] += 1
            results = merged.process(batch, GROUPS) if of_parts is None else of_parts.results
            for key, result in results.items():
                found[key] += given(result)
        assert found == expected
        came.update({key: len(of_key) for key, of_key in expected.items()})
    assert len(came) == len(FRAMES)
    assert min(came.values()) >= 3
    assert min(outcomes[True], outcomes[False]) >= 3, "some come folded, and some cannot"
