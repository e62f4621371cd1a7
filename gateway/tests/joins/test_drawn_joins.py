"""Drawn joins, by each algorithm that may run them, against DuckDB's plain SQL; `bench run query window_joins` draws 3,000."""

from __future__ import annotations

import random

import duckdb
import pytest

from gateway.tests.joins.drawn import admitted, answered, cuts_of, draw, expected, listed
from skerry.joins.rows import Algorithm

#: Joins in `make test`: some 15 s on a quiet machine.
JOINS = 60


def test_each_algorithm_gives_what_duckdb_answers() -> None:
    first = random.SystemRandom().randrange(2**31)
    print(f"seeds {first} to {first + JOINS - 1}")
    connection = duckdb.connect()
    answers = 0
    for seed in range(first, first + JOINS):
        case = draw(seed)
        right = expected(case, connection)
        _, late, ahead = admitted(case)
        answers += len(right)
        algorithms: list[Algorithm] = ["NLW", "MW", *(["HW"] if case.join.key else [])]  # type: ignore[list-item]
        for algorithm in algorithms:
            found, running = answered(case, algorithm, cuts_of(seed, case.length))
            assert listed(found) == right, (seed, algorithm)
            progress = running.intake.progress
            assert (progress.late, progress.ahead) == (late, ahead), (seed, algorithm)
    assert answers


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
