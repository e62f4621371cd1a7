"""The detectors for trying streams out, and with them the first commands of docs/streams.md: from a line over TCP to what is mined."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from examples.detector import GASES, OTHER, Detector
from gateway.tests.ports import free_port
from gateway.tests.process import wait_for

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def test_what_is_smelt_comes_back_and_is_drawn_by_seed() -> None:
    now = datetime(2002, 11, 6, 12, tzinfo=UTC)
    one, same, other = (Detector(number, 7) for number in (0, 0, 1))
    rows = [one.row(second, now) for second in range(800)]
    assert rows == [same.row(second, now) for second in range(800)]
    assert rows != [other.row(second, now) for second in range(800)]
    as_usual = [row["gas"] == GASES[second % 8] for second, row in enumerate(rows)]
    assert 720 < sum(as_usual) < 800
    assert {row["gas"] for row, usual in zip(rows, as_usual, strict=True) if not usual} == {OTHER}


def test_whoever_listens_gets_lines_and_a_port_that_is_taken_is_told() -> None:
    port = free_port()
    with started("-m", "examples.detector", str(port), "--every", "0.05"):
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as client, client.makefile() as lines:
                row = json.loads(lines.readline())
                assert {*row} == {"gas", "level", "at"}
        again = subprocess.run(
            [sys.executable, "-m", "examples.detector", str(port)], cwd=ROOT, capture_output=True, text=True, check=False
        )  # fmt: skip
    assert again.returncode == 1
    assert "address already in use" in again.stderr


@contextmanager
def started(
    *arguments: str, program: Path = Path(sys.executable), environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """What runs meanwhile."""
    process = subprocess.Popen([program, *arguments], cwd=ROOT, env=environment)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def first_commands() -> list[str]:
    """Lines of the page's first block."""
    page = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
    return re.split(r"^```.*\n", page, flags=re.MULTILINE)[1].splitlines()


@pytest.mark.spark
@pytest.mark.slow
def test_the_pages_first_commands_go_from_lines_to_what_is_joined_and_mined(tmp_path: Path) -> None:
    ports = {name: str(free_port()) for name in ("5001", "5002")}
    own = f"127.0.0.1:{free_port()}"
    lines = [re.sub("|".join(ports), lambda found: ports[found[0]], line) for line in first_commands()]
    detectors, gateway, *commands = lines
    assert detectors.startswith("python -m examples.detector ")
    assert gateway.startswith("skerry gateway &")
    paths = {"PATH": f"{BIN}:{os.environ['PATH']}", "XDG_STATE_HOME": str(tmp_path)}
    environment = {**os.environ, **paths, "SKERRY_URL": f"http://{own}"}
    said: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(started(*detectors.partition("&")[0].split()[1:]))
        stack.enter_context(
            started("gateway", "--listen", own, program=BIN / "skerry", environment=environment)
        )
        host, _, port = own.partition(":")
        wait_for(lambda: socket.socket().connect_ex((host, int(port))) == 0)
        for command in commands:
            words = [*shlex.split(command), *(["--format", "json"] if "SELECT" in command else [])]
            ran = subprocess.run(
                words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, f"{command}: {ran.stderr}"
            said.append(ran.stdout)
    tried, _, _, *found = said
    assert "CREATE SENSORS things (" in tried
    places, levels, joined, mined = ([json.loads(line) for line in text.splitlines()] for text in found)
    assert places == [{"id": 1, "place": "gate A"}, {"id": 2, "place": "gate B"}]
    assert len(levels) == len(joined) == 5
    for place, level in map(dict.values, levels):
        assert place in ("gate A", "gate B")
        assert float(level) > 0.5
    assert {gas for gas, *_ in map(dict.values, joined)} <= {*GASES, OTHER}
    assert len(mined) == 4
    for place, symbol, length, confidence in map(dict.values, mined):
        assert place in ("gate A", "gate B")
        assert symbol in GASES
        assert length in (4, 8)
        assert confidence >= 0.8
