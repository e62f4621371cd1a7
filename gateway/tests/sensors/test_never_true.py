"""Conditions that no row can fulfil are told, and no others."""

from __future__ import annotations

import pytest

from gateway.tests.joins.test_join_language import PAIRS, table
from skerry.sensors.planning import planned

NEVER = "is never true, so that no row can come"


def notes_of(sql: str) -> tuple[str, ...]:
    plan = planned(sql, {"detectors": table()})
    assert plan is not None
    return plan.notes


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("id = 2 AND id = 4", f"id = 2 AND id = 4 {NEVER}: write OR for either"),
        ("gas = 'CO' AND d.gas = 'N2'", f"gas = CO AND d.gas = N2 {NEVER}: write OR for either"),
        ("level > 3 AND gas = 'CO' AND level < 2", f"level > 3 AND level < 2 {NEVER}: write OR for either"),
        ("level > 3 AND 3 >= level", f"level > 3 AND level <= 3 {NEVER}: write OR for either"),
        ("level > 3 ppm AND level = 2 ppm", f"level > 3 ppm AND level = 2 ppm {NEVER}: write OR for either"),
        ("level BETWEEN 30 AND 20", f"level BETWEEN 30 AND 20 {NEVER}: the lower bound stands first"),
        ("level = NULL", f"a comparison of level with NULL {NEVER}: write level IS NULL"),
        ("NULL <> d.reading.gas", f"a comparison of d.reading.gas with NULL {NEVER}: write d.reading.gas IS NOT NULL"),
    ],
)  # fmt: skip
def test_what_is_never_true_is_told_with_what_would_be(condition: str, said: str) -> None:
    assert notes_of(f"SELECT gas FROM detectors AS d WHERE {condition}") == (said,)


@pytest.mark.parametrize(
    "condition",
    [
        "id = 2 AND id = 2.0",
        "id = 2 OR id = 4",
        "level >= 3 AND level <= 3",
        "xpos > 900 m AND xpos < 1 km",
        "level > 3 AND id < 2",
        "level NOT BETWEEN 30 AND 20",
        "at = '2002-11-06 12:00:00' AND at = '2002-11-06T13:00:00+01:00'",
        "gas IS NULL",
    ],
)
def test_what_may_be_true_is_not(condition: str) -> None:
    assert notes_of(f"SELECT gas FROM detectors AS d WHERE {condition}") == ()


def test_aliases_of_a_join_have_columns_of_their_own() -> None:
    assert notes_of(f"{PAIRS} WINDOW 1 h WHERE a.level > 3 AND b.level < 2") == ()
    [note] = notes_of(f"{PAIRS} WINDOW 1 h WHERE a.level > 3 AND a.level < 2")
    assert note == f"a.level > 3 AND a.level < 2 {NEVER}: write OR for either"
