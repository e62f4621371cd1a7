"""Results: how figures are told, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.runner.markdown import result_text
from bench.runner.result import (
    Cell,
    Column,
    Figure,
    Machine,
    Result,
    ResultError,
    Spread,
    Table,
    read,
    shown,
    write,
)


def made(**changed: object) -> Result:
    """A result with a bit of everything."""
    fields = {
        "area": "query",
        "name": "pushdown",
        "command": "python -m bench run query pushdown --epochs 3",
        "options": {"epochs": 3, "shares": [10, 50]},
        "variant": "epochs-3",
        "date": "2026-11-27",
        "commit": "44cc297",
        "seeds": [6],
        "machine": Machine(2, 23.5, "3.11.7"),
        "figures": [
            Figure(what="saved", value=Spread(40.0, 35.0, 44.0), unit="%", form=".0f", better="more", goal=50, main=True),
            Figure(what="same rows", value=True),
        ],
        "tables": [
            Table(
                name="energy",
                columns=[Column("order"), Column("energy", "µJ", ".1f", "less")],
                rows=[["light first", 316.04], ["temp first", None]],
            )
        ],
        "remarks": ["Rows are the same."],
    }  # fmt: skip
    return Result(**(fields | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "unit", "form", "text"),
    [
        (None, "s", "", "—"),
        (True, "", "", "yes"),
        (12_345, "bytes", "", "12,345 bytes"),
        (0.5, "", "", "0.5"),
        (2.0, "/s", ",.0f", "2/s"),
        (24.93, "×", ".1f", "24.9×"),
        (-4.2, "%", "+.0f", "-4 %"),
        (Spread.of([3.0, 1.0, 2.0]), "ms", ".0f", "2 ms (1 to 3)"),
        ("none", "s", ".1f", "none"),
    ],
)
def test_cells_are_told_with_their_units(cell: Cell, unit: str, form: str, text: str) -> None:
    assert shown(cell, unit, form) == text


def test_a_figure_knows_whether_it_reaches_its_goal() -> None:
    more, less = (Figure(what="", value=9.0, goal=10, better=better) for better in ("more", "less"))
    assert more.missed
    assert not less.missed
    assert (more.goal_text, less.goal_text) == ("at least 10", "at most 10")
    assert (
        Figure(what="", value=1, goal=0.95, unit="MiB", better="less", reference="1 MB").goal_text
        == "at most 0.95 MiB (1 MB)"
    )
    assert not Figure(what="", value=None, goal=10, better="more").missed


def test_a_file_holds_what_was_written_a_row_in_a_line(tmp_path: Path) -> None:
    result = made()
    path = result.path(tmp_path)
    assert path == tmp_path / "query" / "pushdown.epochs-3.json"
    write(result, path)
    assert read(path) == result
    assert '    ["light first", 316.04],\n    ["temp first", null]\n' in path.read_text()


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(ResultError, match=r"result\.json: there is no such file"):
        read(path)
    for text, why in (
        ("{", "truncated"),
        ('{"area": 3}', r"Expected `str`, got `int` - at `\$\.area`"),
        ("{}", "missing"),
    ):
        path.write_text(text)
        with pytest.raises(ResultError, match=rf"result\.json: not a result of a benchmark: .*{why}"):
            read(path)


def test_all_of_a_result_is_told() -> None:
    assert result_text(made(problems=["rows differ"])) == (
        "`python -m bench run query pushdown --epochs 3`, 2026-11-27, commit 44cc297, seed 6, 2 cores, 24 GiB, Python 3.11.7.\n\n"
        "| what | measured | goal |\n| --- | --- | --- |\n"
        "| saved | 40 % (35 to 44) (missed) | at least 50 % |\n| same rows | yes |  |\n\n"
        "| order | energy, µJ |\n| --- | --- |\n| light first | 316.0 |\n| temp first | — |\n\n"
        "Rows are the same.\n\nDid not hold: rows differ"
    )
