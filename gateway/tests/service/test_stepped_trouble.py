"""What a run's own gateway says of queries before its motes are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.service.stepped import trouble

JOIN = (
    "SELECT s.nodeid, t.nodeid FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp > t.temp SAMPLE PERIOD 10 s"
)


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (JOIN.replace("s.temp", "s.tmep"), ["unknown attribute 'tmep'", "did you mean 'temp'?", "\n"]),
        (
            JOIN.replace("3 ROWS", "20 ROWS"),
            ["WINDOW 20 ROWS is too large for motes", "motes hold 1 to 7 rows"],
        ),
    ],
)
def test_what_motes_cannot_join_is_told_with_what_would_be_right(
    wrong: str, parts: list[str], tmp_path: Path
) -> None:
    said = trouble([JOIN, wrong], tmp_path, {})
    assert said is not None
    assert said.startswith("motes cannot join these rows: ")
    assert "else ask a gateway that joins rows by itself" in said
    for part in parts:
        assert part in said
    assert '""' not in said
    # The caret stands under what is wrong.
    text, caret = said.split("\n")[1:]
    at = len(caret) - len(caret.lstrip())
    assert text[at:].startswith(("s.tmep", "20 ROWS", "WINDOW", "20"))


def test_what_motes_can_join_is_no_trouble(tmp_path: Path) -> None:
    assert trouble([JOIN], tmp_path, {}) is None
