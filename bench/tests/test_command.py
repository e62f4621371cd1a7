"""The command line of ``python -m bench``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.runner import catalog
from bench.runner.children import children
from bench.runner.command import main
from bench.runner.provenance import PROJECT
from bench.runner.result import read

BENCH = [sys.executable, "-m", "bench"]


def status(*words: str) -> int:
    """Exit status, however it comes."""
    try:
        return main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


def test_benchmarks_are_listed_with_when_they_were_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("list") == 0
    told = capsys.readouterr().out
    for entry in catalog.entries():
        assert f"  {entry.name} " in told
    assert "never measured" not in told
    assert status("list", "query") == 0
    assert "fanout" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--help"], "compare"),
        (["list", "--help"], "area"),
        (["report", "--help"], "--check"),
        (["compare", "--help"], "--within"),
        (["run", "--help"], "query pushdown"),
        (["run", "query", "--help"], "query pushdown"),
        (["run", "query", "pushdown", "--help"], "--shares"),
        (["run", "--quick", "query", "pushdown", "--help"], "--shares"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_help_is_everywhere(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(*words) == 0
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "netwrk"], "bench: area 'netwrk' is unknown: did you mean network?"),
        (["run", "network", "lab_yeld"], "did you mean lab_yield?"),
        (
            ["run", "network", "lab_yield", "--epoch", "3"],
            "option --epoch is unknown: did you mean --epochs?",
        ),
        (["run", "network", "lab_yield", "--scale", "2"], "give --links library, too"),
        (["run", "network", "lab_yield", "--links", "home"], "invalid choice: 'home'"),
        (["run", "network", "lab_yield", "more"], "'more' is one word too many"),
        (["run", "network", "--epochs", "3"], "--epochs may be an option of one of them"),
        (["list", "netwrk"], "did you mean network?"),
        (["lst"], "invalid choice: 'lst'"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_what_is_wrong_is_named(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(*words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("skerry_built")
@pytest.mark.parametrize(
    "words",
    [
        ["network", "slots", "--networks", "small", "--epochs", "2"],
        ["gateway", "packet_decoding"],
        ["testbed", "firmware_size"],
        ["query", "pushdown"],
        ["energy", "mote_charge"],
    ],
    ids=lambda words: words[0],
)
def test_a_small_form_of_each_area(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of each measures what the last stored result tells: its tables have the same columns."""
    out = tmp_path / "result.json"
    assert status("run", *words, "--quick", "--out", str(out)) == 0
    assert "what | measured | goal" in capsys.readouterr().out
    made, last = read(out), read(catalog.RESULTS / f"{words[0]}/{words[1]}.json")
    assert made.quick
    assert not last.quick
    assert made.figures
    assert [table.name for table in made.tables] == [table.name for table in last.tables]
    assert [table.columns for table in made.tables] == [table.columns for table in last.tables]
    assert all(table.rows for table in made.tables)


def command_line(process: int) -> bytes:
    """Empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """Neither a result nor a file nor a process that it has started."""
    out, scratch = tmp_path / "result.json", tmp_path / "scratch"
    scratch.mkdir()
    command = [*BENCH, "run", "gateway", "feed_rate", "--quick", "--out", str(out)]
    run = subprocess.Popen(
        command, cwd=PROJECT, env=os.environ | {"TMPDIR": str(scratch)}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    gateways: list[int] = []
    while not gateways:
        assert run.poll() is None
        time.sleep(0.05)
        gateways = [child for child in children(run.pid) if b"--listen" in command_line(child)]
    run.send_signal(number)
    _, told = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert not out.exists()
    assert list(scratch.iterdir()) == []
    assert not any(Path(f"/proc/{child}").exists() for child in gateways)
