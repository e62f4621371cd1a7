"""Drawn joins, by each algorithm that may run them, against DuckDB's plain SQL; `bench run query window_joins` draws 3,000."""

from __future__ import annotations

import random

import duckdb
import pytest

from gateway.tests.joins.drawn import (
    admitted,
    algorithms_of,
    answered,
    cuts_of,
    decided,
    draw,
    draw_outer,
    expected,
    listed,
)
from skerry.joins.answers import DECIDED
from skerry.joins.rows import Algorithm

#: Joins in `make test`: some 15 s on a quiet machine.
JOINS = 60


def test_each_algorithm_gives_what_duckdb_answers(drawn_seed: int) -> None:
    connection = duckdb.connect()
    answers = 0
    for seed in range(drawn_seed, drawn_seed + JOINS):
        case = draw(seed)
        right = expected(case, connection)
        _, late, ahead = admitted(case)
        answers += len(right)
        for algorithm in algorithms_of(case.join):
            found, running = answered(case, algorithm, cuts_of(seed, case.length))
            assert listed(found) == right, (seed, algorithm)
            progress = running.intake.progress
            assert (progress.late, progress.ahead) == (late, ahead), (seed, algorithm)
    assert answers


def test_rows_that_meet_nobody_and_the_latest_ones_are_what_duckdb_answers_as_soon_as_it_is_sure(
    drawn_seed: int,
) -> None:
    connection = duckdb.connect()
    alone = waited = 0
    for seed in range(drawn_seed, drawn_seed + JOINS):
        case = draw_outer(seed)
        right = expected(case, connection)
        for algorithm in algorithms_of(case.join):
            found, _ = answered(case, algorithm, cuts_of(seed, case.length))
            assert listed(found) == right, (seed, algorithm)
            numbers = [found.column(f"{alias}.number").to_pylist() for alias in case.join.aliases]
            said = [decided(case, one) for one in zip(*numbers, strict=True)]
            assert found.column(DECIDED).to_pylist() == said, (seed, algorithm)
        alone += sum(None in row[1 : 1 + len(numbers)] for row in right)
        waited += sum(at > row for at, row in zip(said, numbers[0], strict=True))
    assert min(alone, waited) > JOINS


@pytest.mark.parametrize("kind", ["left", "asof left", "left, left", "asof left, asof left"])
def test_answers_that_wait_are_the_same_bytes_however_a_log_is_cut(kind: str) -> None:
    keyed = (case for case in map(draw_outer, range(1000)) if case.join.kind == kind and case.join.key)
    case = next(case for case in keyed if answered(case, "HW", [])[0].num_rows > 20)
    whole, _ = answered(case, "HW", [])
    for way in range(20):
        cuts = range(1, case.length) if way == 0 else random.Random(way).sample(range(1, case.length), way)
        found, _ = answered(case, "HW", cuts)
        assert found.combine_chunks().equals(whole.combine_chunks()), way


@pytest.mark.parametrize("algorithm", ["HW", "MW", "NLW"])
def test_a_log_cut_in_twenty_ways_gives_the_same_bytes(algorithm: Algorithm) -> None:
    seed = next(seed for seed in range(1000) if _is_large(seed))
    case = draw(seed)
    whole, _ = answered(case, algorithm, [])
    for way in range(20):
        chance = random.Random(way)
        cuts = (
            range(1, case.length) if way == 0 else chance.sample(range(1, case.length), chance.randint(1, 30))
        )
        found, _ = answered(case, algorithm, cuts)
        assert found.combine_chunks().equals(whole.combine_chunks()), (seed, way)


def _is_large(seed: int) -> bool:
    case = draw(seed)
    return bool(
        case.join.key
        and len(case.join.aliases) == 3
        and not case.join.graph.has_rows
        and answered(case, "MW", [])[0].num_rows > 100
    )
