"""``skerry testbed`` as a process."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.tests.descriptions import ROOT

pytestmark = pytest.mark.usefixtures("skerry_built")

SKERRY = str(Path(sys.executable).parent / "skerry")
NETWORK = f"""
name = "pair"
{ROOT}[[mote]]
id = 1
x = 10
y = 0
"""


@pytest.fixture
def description(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(NETWORK)
    return path


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [SKERRY, "testbed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def test_a_run_writes_report_and_capture(description: Path, tmp_path: Path) -> None:
    report, pcap = tmp_path / "r.json", tmp_path / "r.pcap"
    done = run(description, "--speed", "max", "--for", "20s", "--report", report, "--pcap", pcap, "--port", 0)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "socket://127.0.0.1:" in done.stderr
    told = json.loads(report.read_text())
    assert told["duration_s"] == 20
    assert [mote["node"] for mote in told["motes"]] == [0, 1]
    assert all(mote["energy"]["total_j"] > 0 for mote in told["motes"])
    assert pcap.stat().st_size > 24


def test_two_runs_of_a_seed_are_equal_to_the_bit(description: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        files = ("--report", tmp_path / f"{name}.json", "--pcap", tmp_path / f"{name}.pcap")
        assert run(description, "--speed", "max", "--for", "30s", *files, "--port", 0).returncode == 0
    for kind in ("json", "pcap"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_another_seed_is_another_run(description: Path, tmp_path: Path) -> None:
    report, pcap = tmp_path / "r.json", tmp_path / "r.pcap"
    runs = []
    for seed in ("1", "2", None):
        options = ["--speed", "max", "--for", "10s", "--report", report, "--pcap", pcap, "--port", 0]
        done = run(description, *options, *(["--seed", seed] if seed is not None else []))
        assert done.returncode == 0, done.stderr
        runs.append((json.loads(report.read_text())["seed"], pcap.read_bytes()))
    assert [seed for seed, _ in runs] == [1, 2, 1]
    assert runs[0] == runs[2] != runs[1]


def test_interrupt_writes_the_report_and_ends_well(description: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    command = [SKERRY, "testbed", str(description), "--speed", "10", "--report", str(report), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "socket://" not in process.stderr.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert json.loads(report.read_text())["name"] == "pair"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--report", "/nonexistent/r.json"], "/nonexistent/r.json: No such file or directory"),
        (["--pcap", "/nonexistent/r.pcap"], "/nonexistent/r.pcap: No such file or directory"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_1(description: Path, options: list[str], expected: str) -> None:
    failed = run(description, *options)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert expected in failed.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--speed", "fast"], "--speed: 'fast': expected max or a number above 0"),
        (["--speed", "nan"], "--speed: 'nan': expected max or a number above 0"),
        (["--for", "soon"], "--for: duration 'soon': expected a number and"),
    ],
)
def test_an_option_that_cannot_be_is_wrong_usage(
    description: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    failed = run(description, *options)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert expected in failed.stderr


def test_motes_that_nobody_can_hear_are_told(description: Path) -> None:
    there = "[radio]\nmodel = 'disc'\nrange_m = 12\n"
    places = {0: 0, 1: 10, 2: 20, 5: 500, 7: 1000, 8: 1010}
    for node, x in places.items():
        there += f"[[mote]]\nid = {node}\nx = {x}\ny = 0\nroot = {str(node == 0).lower()}\n"
    description.write_text(there)
    told = run(description, "--speed", "max", "--for", "1s", "--port", 0).stderr.splitlines()
    assert [line for line in told if "hear" in line or "way" in line] == [
        f"skerry: {description}: mote 5: nobody can hear it: mote 2 is the nearest, 480 m away, and radio.range_m is 12 m",
        f"skerry: {description}: motes 7, 8: no way leads from there to the root, whoever passes it on",
    ]


def test_what_a_run_ends_before_is_told(description: Path) -> None:
    faults = "".join(f"[[fault]]\nat = {at!r}\nkind = 'kill'\nmote = 1\n" for at in ("2 s", "3 s", "5 min"))
    description.write_text(f"{NETWORK}boot = '4 s'\n{faults}")
    done = run(description, "--speed", "max", "--for", "3s", "--port", 0)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "never" in line] == [
        f"skerry: {description}: {key} never happens: the run ends at 3 s"
        for key in ("fault[1], kill at '3 s'", "fault[2], kill at '5 min'", "mote 1: boot at '4 s'")
    ]


@pytest.mark.parametrize("option", ["--report", "--pcap"])
def test_a_file_that_cannot_be_written_to_the_end_is_named(description: Path, option: str) -> None:
    failed = run(description, "--speed", "max", "--for", "1s", "--port", 0, option, "/dev/full")
    assert failed.returncode == 1
    assert failed.stderr.endswith("\nskerry: /dev/full: No space left on device\n")


def test_a_run_that_cannot_begin_leaves_files_as_they_were(description: Path, tmp_path: Path) -> None:
    report, pcap = tmp_path / "r.json", tmp_path / "r.pcap"
    pcap.write_text("of the run before")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run(description, "--for", "1s", "--port", port, "--report", report, "--pcap", pcap)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"skerry: port {port}: Address already in use")
    assert (report.exists(), pcap.read_text()) == (False, "of the run before")


@pytest.mark.parametrize(
    ("report", "pcap", "expected"),
    [
        ("pair.toml", "r.pcap", "--report {}/pair.toml: that is the network description already"),
        ("r.json", "../{name}/pair.toml", "--pcap {}/../{name}/pair.toml: that is the network description"),
        ("r", "r", "--pcap {}/r: that is --report already"),
    ],
)
def test_no_file_is_written_over_another(
    description: Path, tmp_path: Path, report: str, pcap: str, expected: str
) -> None:
    files = (tmp_path / text.format(name=tmp_path.name) for text in (report, pcap))
    failed = run(
        description,
        "--for",
        "1s",
        "--port",
        0,
        *(f"{o}={f}" for o, f in zip(("--report", "--pcap"), files, strict=True)),
    )
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"skerry: {expected.format(tmp_path, name=tmp_path.name)}")
    assert description.read_text() == NETWORK


def test_a_slow_run_ends_when_it_is_told_to(description: Path) -> None:
    """Between two of its steps are four minutes."""
    command = [SKERRY, "testbed", str(description), "--speed", "0.0001", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "socket://" in process.stderr.readline()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_a_bad_description_is_one_line_and_exit_1(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[radio]\nmodl = 'disc'\n")
    failed = run(path)
    assert failed.returncode == 1
    assert failed.stderr == f"skerry: {path}: radio.modl: no such key; did you mean 'model'?\n"


def test_no_description_is_wrong_usage() -> None:
    assert run().returncode == 2


def test_a_speed_that_is_not_reached_is_told(description: Path) -> None:
    command = [SKERRY, "testbed", str(description), "--speed", "100000", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "of the 100000 virtual seconds per second asked for" not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
