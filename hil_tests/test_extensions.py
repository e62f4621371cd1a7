"""A command and an aggregate from a folder outside the firmware: built in, planned, run by emulated motes, evaluated by the gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hil_tests.queries import ask
from skerry.lang.errors import QueryError
from skerry.plan import actions, functions, outside, temporal
from skerry.plan.model import QueryPlan
from skerry.plan.partials import from_packet, merge_partials, partials_batch
from skerry.plan.planner import plan_query
from skerry.plan.residual import Residual, Rows
from skerry_protocol.extensions import ExtensionError
from skerry_protocol.packets import PacketType
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, line_of

HERE = Path(__file__).resolve().parent
FIRMWARE = HERE.parent / "firmware"
TAKEN = {*functions.NAMES, *temporal.NAMES}


def make(build: Path, extensions: Path) -> subprocess.CompletedProcess[str]:
    command = [
        "make",
        "-s",
        "-C",
        str(FIRMWARE),
        f"PYTHON={sys.executable}",
        f"BUILD={build}",
        f"EXTENSIONS={extensions}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded is forgotten again: a process keeps it, and other tests say what there is."""
    monkeypatch.setattr(outside, "_BY_NAME", {})
    monkeypatch.setattr(actions, "_KNOWN", dict(actions._KNOWN))


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_known")
def test_an_aggregate_is_one_file_and_so_is_a_command(network: MakeNetwork, tmp_path: Path) -> None:
    built = make(tmp_path, HERE / "extensions")
    assert built.returncode == 0, built.stderr
    with pytest.raises(QueryError, match="unknown function 'RANGE'"):
        plan_query("SELECT RANGE(temp) SAMPLE PERIOD 4 s")
    outside.load(tmp_path / "extensions", TAKEN)
    images: dict[str, str] = {board: str(tmp_path / f"{board}.elf") for board in ("iris", "cc2538")}
    slope = Environment(fields={"temp": Field(base=20.0, gradient=(0.1, 0.0))})
    net = network(
        line_of(5, spacing=10, boards=("iris", "cc2538")), radio=disc(12), environment=slope, firmware=images
    )
    net.advance("20s")
    sql = "SELECT RANGE(temp), MAX(temp) - MIN(temp) AS same, COUNT(*) FROM sensors SAMPLE PERIOD 4 s"
    query = ask(net, 1, sql)
    ask(net, 2, "SELECT nodeid FROM sensors WHERE nodeid = 3 OUTPUT ACTION blink(2) SAMPLE PERIOD 8 s")
    net.advance("60s")
    parts: dict[int, list[object]] = {}
    for record in net.line.of(PacketType.PARTIAL, 1):
        parts.setdefault(record.body.epoch, []).append(from_packet(query, record.body))
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    rows = Rows(partials_batch(query, [merge_partials(query, found) for found in parts.values()]), query)  # type: ignore[arg-type]
    found = Residual(plan).project(rows, rows.sample_ms.argsort()).to_pylist()
    whole = [row for row in found if row["COUNT(*)"] == 5]
    assert len(whole) >= 5
    assert all(row["RANGE(temp)"] == row["same"] == pytest.approx(4.0, abs=0.1) for row in whole)
    assert [net.motes[node].outputs for node in range(5)] == [set(), set(), set(), {"red", "green"}, set()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AGGREGATE(range, 5, 2, 0, SUMMARY)", "aggregate number 5: from outside they are 16..31"),
        ("AGGREGATE(range, 16, 13, 0, SUMMARY)", "13 cells: a state has 1..12"),
        ("AGGREGATE(range, 16, 2, 0, SMALL)", "property SMALL: there are EXEMPLARY, SUMMARY, MONOTONIC"),
        ("COMMAND(blink, 5, 0, 3)", "command number 5: from outside they are 128..255"),
        ("COMMAND(leds, 130, 0, 3)", "COMMAND(leds, 130) and COMMAND(leds, 1)"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_built(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.c").write_text(text)
    built = make(tmp_path / "build", tmp_path)
    assert built.returncode != 0
    assert message in built.stderr
    assert "wrong.c" in built.stderr


def test_a_folder_without_extensions_is_refused(tmp_path: Path) -> None:
    """Images would be built without what somebody thinks is in them."""
    (tmp_path / "range.cpp").write_text("AGGREGATE(range, 16, 2, 0, SUMMARY)")
    built = make(tmp_path / "build", tmp_path)
    assert built.returncode != 0
    assert f"{tmp_path} has no C file with an AGGREGATE or a COMMAND" in built.stderr


@pytest.mark.parametrize("target", ["firmware", "flash"])
def test_a_folder_is_relative_to_where_it_is_said(target: str) -> None:
    said = subprocess.run(
        ["make", "-n", target, "EXTENSIONS=hil_tests/extensions"],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"--extensions {HERE}/extensions " in said.stdout, said.stderr


def test_what_is_not_built_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="build them with make firmware EXTENSIONS=folder"):
        outside.load(tmp_path, TAKEN)
