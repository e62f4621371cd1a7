"""Two results beside each other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.runner import catalog
from bench.runner.command import main
from bench.runner.provenance import PROJECT
from bench.runner.result import Cell, Column, Figure, Spread, Table, write
from bench.tests.test_result import made


def figures(rate: float, spread: tuple[float, float] = (0, 0)) -> list[Figure]:
    """Rates, of which the second has a spread."""
    return [
        Figure(what="rate", value=rate, unit="/s", better="more"),
        Figure(what="spread rate", value=Spread(rate, *spread), unit="/s", better="more"),
        Figure(what="steady", value=7, better="less"),
    ]


def compared(folder: Path, before: list[Figure], after: list[Figure], *words: str) -> int:
    """The exit status of comparing two results of these figures."""
    paths = [folder / "before.json", folder / "after.json"]
    for path, own in zip(paths, (before, after), strict=True):
        write(made(figures=own), path)
    return main(["compare", *map(str, paths), *words])


def test_what_changed_beyond_noise_is_better_or_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = figures(100, (95, 105)), figures(90, (85, 91))
    assert compared(tmp_path, before, after) == 0
    told = capsys.readouterr().out
    assert "| rate | 100/s | 90/s | -10.0 % | worse |" in told
    assert "| spread rate | 100/s (95 to 105) | 90/s (85 to 91) | -10.0 % | worse |" in told
    assert "steady" not in told
    assert "3 of 5 figures: within 5 % or the spread of their runs" in told
    assert compared(tmp_path, before, after, "--fail") == 1
    assert compared(tmp_path, after, before, "--fail") == 0
    assert "| rate | 90/s | 100/s | +11.1 % | better |" in capsys.readouterr().out


def test_a_change_inside_the_spread_or_the_bound_is_noise(tmp_path: Path) -> None:
    assert compared(tmp_path, figures(100, (80, 120)), figures(90, (85, 91)), "--fail", "--within", "10") == 0
    assert compared(tmp_path, figures(100, (99, 101)), figures(90, (80, 91)), "--fail", "--within", "9") == 1


def test_cells_are_matched_by_the_names_of_rows_and_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [Column("network"), Column("period", form=".0f"), Column("frames", form=".1f", better="less")]
    before: list[list[Cell]] = [["lab", 5, 1.0], ["lab", 30, 2.0]]
    after: list[list[Cell]] = [["lab", 30, 3.0], ["lab", 60, 4.0]]
    tables = [Table(name="frames", labels=2, columns=columns, rows=rows) for rows in (before, after)]
    paths = [str(tmp_path / f"{place}.json") for place in (0, 1)]
    for path, table in zip(paths, tables, strict=True):
        write(made(figures=[], tables=[table]), Path(path))
    assert main(["compare", *paths, "--all"]) == 0
    told = capsys.readouterr().out
    assert "| lab, 30: frames | 2.0 | 3.0 | +50.0 % | worse |" in told
    assert "| lab, 5: frames | 1.0 | — |  | gone |" in told
    assert "| lab, 60: frames | — | 4.0 |  | new |" in told


def test_other_conditions_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    write(made(), paths[0])
    write(made(options={"epochs": 9, "shares": [10, 50]}, quick=True), paths[1])
    assert main(["compare", *map(str, paths)]) == 0
    told = capsys.readouterr().out
    assert "- not alike: --epochs 3 and 9" in told
    assert "- not alike: --quick False and True" in told
    assert "all 4 figures: within 5 %" in told


def test_two_benchmarks_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    write(made(), paths[0])
    write(made(name="slots"), paths[1])
    assert main(["compare", *map(str, paths)]) == 2
    assert "query/pushdown.epochs-3 and query/slots.epochs-3 are two benchmarks" in capsys.readouterr().err
    assert main(["compare", str(paths[0]), str(tmp_path / "c.json")]) == 2
    assert "c.json: there is no such file" in capsys.readouterr().err


def test_folders_are_compared_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, rate in (("a", 100), ("b", 50)):
        for name in ("pushdown", "slots"):
            result = made(name=name, figures=figures(rate, (rate, rate)))
            write(result, result.path(tmp_path / folder))
    alone = made(name="week")
    write(alone, alone.path(tmp_path / "b"))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--fail"]) == 1
    told = capsys.readouterr()
    assert "2 results compared; figures that became worse: 4" in told.out
    assert "query/week.epochs-3.json: in" in told.err
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "a.json")]) == 2


def test_a_result_of_a_commit_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """As git has it, which may not be there."""
    path = catalog.RESULTS / "query" / "pushdown.json"
    name = f"HEAD:{path.relative_to(PROJECT)}"
    if subprocess.run(
        ["git", "cat-file", "-e", name], cwd=PROJECT, capture_output=True, check=False
    ).returncode:
        pytest.skip(f"git has no {name} here")
    assert main(["compare", name, str(path)]) == 0
    assert "## query pushdown" in capsys.readouterr().out
    assert main(["compare", "HEAD:bench/results/none.json", str(path)]) == 2
    assert "bench: HEAD:bench/results/none.json: fatal" in capsys.readouterr().err
