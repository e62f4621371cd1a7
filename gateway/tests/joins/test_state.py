"""State between batches: dealt to buckets, written and read again for each batch, which may come again after a crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gateway.tests.joins.drawn import SCHEMA, cuts_of, draw, draw_any, expected, listed
from skerry.joins.buckets import Buckets
from skerry.joins.executor import merged, table_bytes
from skerry.joins.group import Group
from skerry.joins.intake import Intake
from skerry.joins.row_windows import ENDED_US
from skerry.joins.state import KEPT_BATCHES, BucketState, LostRunError, RunFiles, lost_run

#: Joins that are drawn, and buckets of each.
JOINS, BUCKETS = 40, 3


def test_what_is_kept_in_buckets_is_enough_for_all_answers(tmp_path: Path, drawn_seed: int) -> None:
    connection = duckdb.connect()
    for seed in range(drawn_seed, drawn_seed + JOINS):
        case = draw_any(seed)
        directory = tmp_path / str(seed)
        directory.mkdir()
        right = expected(case, connection)
        found = by_buckets(seed, RunFiles(directory, inline_bytes=random.Random(seed).choice([0, 10_000])))
        assert (listed(found) if found is not None else []) == right, seed


def by_buckets(seed: int, files: RunFiles) -> pa.Table | None:
    """A drawn join with all that is kept in bytes between batches."""
    case, chance = draw_any(seed), random.Random(seed)
    join = case.join
    group = Group(
        dict.fromkeys(case.streams, SCHEMA),
        "HW" if join.key else chance.choice(["MW", "NLW"]) if not join.is_outer else "MW",
        join.lateness_us,
    )
    group.add("join", join)
    buckets, intake = Buckets(group, BUCKETS), Intake(group)
    values: list[bytes | None] = [None] * buckets.count
    bounds = [0, *cuts_of(seed, case.length), case.length]
    blocks: list[pa.Table] = []
    for first, end in pairwise(bounds):
        dealt = buckets.deal(
            intake.take({name: case.tables(first, end)[name] for name in {*join.streams.values()}})
        )
        progress = ENDED_US if end == case.length and first != end else intake.progress.us
        course = intake.progress.course
        parts = []
        for bucket, rows in enumerate(dealt):
            for _ in range(1 + (chance.random() < 0.3)):
                # What was written before a crash is written again.
                state = BucketState(group, values[bucket], files, str(bucket), buckets.owned(bucket))
                answers = state.operator.advance(rows, progress, course)["join"]
                value = state.value()
            values[bucket] = value
            if answers.num_rows:
                parts.append(table_bytes(answers))
        whole = merged(parts, join.aliases, by_time=join.graph.has_rows)
        if whole is not None:
            blocks.append(whole)
    return pa.concat_tables(blocks, promote_options="permissive") if blocks else None


def kept(directory: Path) -> tuple[Group, RunFiles, bytes]:
    """A bucket's state after some rows, with files."""
    seed = next(seed for seed in range(1000) if draw(seed).join.key and not draw(seed).join.graph.has_rows)
    case = draw(seed)
    group = Group(dict.fromkeys(case.streams, SCHEMA), "HW", case.join.lateness_us)
    group.add("join", case.join)
    files, intake = RunFiles(directory, inline_bytes=0), Intake(group)
    rows = intake.take({name: case.tables(0, 60)[name] for name in {*case.join.streams.values()}})
    state = BucketState(group, None, files, "0")
    state.operator.advance(rows, intake.progress.us)
    return group, files, state.value()


def test_files_go_when_no_batch_can_be_undone_to_them(tmp_path: Path) -> None:
    group, files, value = kept(tmp_path)
    assert list(tmp_path.iterdir())
    for batch in range(KEPT_BATCHES + 1):
        assert list(tmp_path.iterdir()), batch
        state = BucketState(group, value, files, "0")
        state.operator.advance({}, ENDED_US)
        value = state.value()
    assert not list(tmp_path.iterdir())


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage", [Path.unlink, flipped, lambda path: path.write_bytes(path.read_bytes()[:-8])]
)
def test_a_file_that_is_not_as_it_was_written_is_named_and_told_from_one_that_others_do_not_see(
    damage: Callable[[Path], object], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    group, files, value = kept(runs)
    BucketState(group, value, files, "0")
    path = sorted(runs.iterdir())[-1]
    whole = path.read_bytes()
    damage(path)
    with pytest.raises(LostRunError, match=f"{path.name} is not as it was written") as raised:
        BucketState(group, value, files, "0")
    said = f"Job aborted …\nskerry.joins.state.LostRunError: {raised.value}\n\tat …"
    assert lost_run(tmp_path, said)
    assert not lost_run(tmp_path, "skerry.spark.unreadable.UnreadableError: …")
    path.write_bytes(whole)
    assert not lost_run(tmp_path, said), "a worker saw it as it was before"
    BucketState(group, value, files, "0")
