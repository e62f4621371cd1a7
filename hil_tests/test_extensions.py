"""A command and an aggregate from a folder outside the firmware: built in, planned, run by emulated motes, evaluated by the gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.tests.pasts import ORIGIN, past_engine, plain_records, plan_of, rows_behind, stream_of
from hil_tests.desk import Desk
from skerry.catalog import actions
from skerry.delivery.engine import Engine
from skerry.execution.filters import Filter
from skerry.execution.residual import Residual, Rows
from skerry.expressions import extension_aggregates
from skerry.ingest.partial_states import from_packet, merge_partials, partials_batch
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.planner.semantics import aggregate_functions, temporal_aggregates
from skerry.service.explain import explain, explain_text
from skerry.sql.errors import QueryError
from skerry.storage.history.answer import Answer
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import RECORD, Block, Kind
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream
from skerry_protocol.codes import PacketType
from skerry_protocol.extensions import ExtensionError
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, line_of
from skerry_testbed.queries import ask

HERE = Path(__file__).resolve().parent
FIRMWARE = HERE.parent / "firmware"
TAKEN = {*aggregate_functions.NAMES, *temporal_aggregates.NAMES}


def make(build: Path, extensions: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    command = [
        "make",
        "-s",
        "-C",
        str(FIRMWARE),
        f"PYTHON={sys.executable}",
        f"BUILD={build}",
        f"EXTENSIONS={extensions}",
        *targets,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded is forgotten again: a process keeps it, and other tests say what there is."""
    monkeypatch.setattr(extension_aggregates, "_BY_NAME", {})
    monkeypatch.setattr(actions, "_KNOWN", dict(actions._KNOWN))


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_known")
def test_an_aggregate_is_one_file_and_so_is_a_command(network: MakeNetwork, tmp_path: Path) -> None:
    built = make(tmp_path, HERE / "extensions")
    assert built.returncode == 0, built.stderr
    with pytest.raises(QueryError, match="unknown function 'RANGE'"):
        plan_query("SELECT RANGE(temp) SAMPLE PERIOD 4 s")
    extension_aggregates.load(tmp_path / "extensions", TAKEN)
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


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_known")
def test_what_motes_lack_is_refused_to_who_asks_it_and_to_nobody_else(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway knows an aggregate that the motes' images were built without, and would merge it with another user's."""
    code, table = tmp_path / "extensions" / "extensions.so", tmp_path / "iris" / "registry.c"
    assert make(tmp_path, HERE / "extensions", str(code), str(table)).returncode == 0
    extension_aggregates.load(code.parent, TAKEN)
    slope = Environment(fields={"temp": Field(base=20.0, gradient=(0.1, 0.0))})
    desk = Desk(
        network(line_of(5, spacing=10, boards=("iris", "cc2538")), radio=disc(12), environment=slope),
        tmp_path / "data",
        monkeypatch,
    )
    desk.advance(60)
    plain = desk.ask("SELECT epoch, motes, COUNT(*) AS n, MAX(temp) AS most FROM sensors SAMPLE PERIOD 4 s")
    desk.advance(60)
    lacking = desk.ask("SELECT RANGE(temp), COUNT(*) FROM sensors SAMPLE PERIOD 4 s")
    desk.advance(120)
    assert desk.rows[lacking] == []
    assert desk.networks.refused(lacking)
    desk.stop(lacking)
    desk.advance(60)
    rows = desk.rows[plain]
    assert [row["epoch"] for row in rows] == list(range(rows[0]["epoch"], rows[0]["epoch"] + len(rows)))
    assert len(rows) >= 50
    assert {(row["motes"], row["n"]) for row in rows} == {(5, 5)}
    assert [row["most"] for row in rows] == pytest.approx([24.0] * len(rows), abs=0.1)


@pytest.mark.usefixtures("nothing_known")
def test_an_aggregate_is_asked_of_the_past_and_called_by_its_name(tmp_path: Path) -> None:
    code, table = tmp_path / "extensions" / "extensions.so", tmp_path / "iris" / "registry.c"
    built = make(tmp_path, HERE / "extensions", str(code), str(table))
    assert built.returncode == 0, built.stderr
    extension_aggregates.load(code.parent, TAKEN)
    stream = stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 5 s")
    log, history = StreamLog(tmp_path, 1000), History(tmp_path)
    log.append(plain_records(stream, range(200), [1, 2, 3]))

    def asked(sql: str) -> list[dict[str, Any]]:
        plan = plan_of(f"SELECT {sql} HISTORY 1 day ONLY")
        reader = Reader(history, log.path, [stream], plan.attributes, ORIGIN)
        return [row for _, row in rows_behind(Answer(plan, reader, log.rows, past_engine()))[0]]

    both = "RANGE(temp) AS own, MAX(temp) - MIN(temp) AS same"
    for condition, groups in (("", 1), ("GROUP BY nodeid", 3)):
        rows = asked(f"{both} FROM sensors {condition}")
        assert [row["own"] for row in rows] == [row["same"] for row in rows]
        assert len(rows) == groups
    assert asked(f"{both} FROM sensors WHERE nodeid = 9") == [{"own": None, "same": None}]
    live = plan_of("SELECT RANGE(temp) FROM sensors HAVING RANGE(temp) > 3 SAMPLE PERIOD 4 s")
    text = explain_text(explain(live))
    assert "  send RANGE(temp)\n" in text
    assert Filter.of(live).in_executors.having is None, "executors have no code of its own"
    stream, stored = Stream(1, 1, 1, merge([live])), np.zeros(40, RECORD)
    stored["stream"], stored["epoch"], stored["kind"] = 1, np.arange(40), Kind.TOLD
    stored["count"], stored["value"][:, 1] = 1, 100 * np.arange(40)
    engine = Engine({1: stream}.get)
    engine.subscribe("u", live)
    engine.set_feeds("u", {1: Feed("u", 1, 4000, 4000, 0)})
    engine.process(Block(0, stored))
    told = engine.subscriber("u").buffer.after(-1)  # type: ignore[union-attr]
    assert [row[live.outputs[0].name] for _, row in told or []] == list(range(4, 40))
    assert "keeps epochs having RANGE(temp) > 3" in text
    with pytest.raises(QueryError, match="RANGE cannot be approximated"):
        plan_of("SELECT RANGE(temp) FROM sensors SAMPLE PERIOD 4 s APPROXIMATE WITHIN 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AGGREGATE(range, 5, 2, 0, SUMMARY)", "aggregate number 5: from outside they are 16..31"),
        ("AGGREGATE(range, 16, 13, 0, SUMMARY)", "13 cells: a state has 1..12"),
        ("AGGREGATE(range, 16, 2, 0, SMALL)", "property SMALL: there are EXEMPLARY, SUMMARY, MONOTONIC"),
        ("COMMAND(blink, 130, 3, 0)", "bounds 3, 0: the lower one stands first"),
        (
            "COMMAND(blink, 130, 0, LEDS)",
            "COMMAND(blink, 130, 0, LEDS): expected COMMAND(name, number, low, high) with",
        ),
        (
            "AGGREGATE (range, 16, 2, 0, SUMMARY)",
            "expected AGGREGATE(name, number, cells, digits, properties) with",
        ),
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
        extension_aggregates.load(tmp_path, TAKEN)
