"""Durations in descriptions and options."""

import pytest

from skerry_testbed.duration import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("600s", 600),
        ("10min", 600),
        ("10 min", 600),
        ("500ms", 0.5),
        ("1.5 h", 5400),
        ("1 day", 86400),
        ("10 Minutes", 600),
        ("2 weeks", 1_209_600),
        ("7", 7),
        (2.5, 2.5),
        (0, 0),
    ],
)
def test_durations_are_seconds(text: str | float, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "5 parsecs", "-3s", "1e3", "9" * 400, "20000 week"),
        *(-3, float("nan"), float("inf"), 2e10, 1e300, 10**400),
    ],
)
def test_what_is_no_duration_is_named(text: str | float) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds(text)
