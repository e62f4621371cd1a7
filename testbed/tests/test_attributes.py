"""Every attribute of the table has a value on every board, and what is sampled an emulated sensor: whoever adds one is told what lacks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from skerry_protocol import attributes, wire_header
from skerry_protocol.codes import PacketType
from skerry_testbed.core import BACKENDS, SENSORS
from skerry_testbed.pytest import MakeNetwork, disc, grid
from skerry_testbed.queries import ask, rows

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
SAMPLED = [attribute for attribute in attributes.ATTRIBUTES if attribute.sample_ms]
#: In queries of so many columns as a mote's row has room for.
OF_MOTES = [
    entry.name
    for entry in (
        *attributes.ATTRIBUTES,
        *attributes.PLACE_ATTRIBUTES,
        *attributes.MADE_ATTRIBUTES,
        *attributes.HEALTH_ATTRIBUTES,
    )
    if entry.name not in ("nodeid", "parent", "link")
]
COLUMNS = 8


def test_what_is_sampled_has_an_emulated_sensor() -> None:
    assert [entry.name for entry in SAMPLED if entry.name not in SENSORS] == []
    header = (FIRMWARE.parent / "testbed" / "core" / "include" / "skerry_core.h").read_text()
    assert header.count("#define SKERRY_SENSOR_") == len(SENSORS)


def test_every_attribute_has_a_value_on_every_board(network: MakeNetwork) -> None:
    boards = sorted(BACKENDS)
    net = network(grid(3, 1, spacing=10, boards=boards), radio=disc(25), seed=5)
    net.advance("30s")
    parts = [OF_MOTES[at : at + COLUMNS] for at in range(0, len(OF_MOTES), COLUMNS)]
    asked = [
        ask(net, number, f"SELECT {', '.join(names)} FROM sensors SAMPLE PERIOD 8 s")
        for number, names in enumerate(parts, 1)
    ]
    net.advance("40s")
    board_of = {mote.id: mote.board for mote in net.bed.motes}
    seen = {
        (board_of[row["nodeid"]], name): row[name]
        for number, (query, names) in enumerate(zip(asked, parts, strict=True), 1)
        for row in rows(net.line, number, query)
        for name in names
    }
    wanted = {(board, name) for board in boards for name in OF_MOTES}
    assert wanted - seen.keys() == set()
    assert [place for place, value in seen.items() if value is None] == []
    available = {record.body.node: record.body.attributes for record in net.line.of(PacketType.STATUS)}
    lacking = [
        (board_of[node], entry.name)
        for node, bits in available.items()
        for entry in SAMPLED
        if not bits >> entry.number & 1
    ]
    assert available.keys() == board_of.keys()
    assert lacking == []


def test_the_compiler_names_an_attribute_that_no_mote_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = attributes._attribute(
        29, "pressure", attributes.ValueFormat.U16, "hPa", 1, (300, 1100), "of the air"
    )
    monkeypatch.setitem(attributes.BY_NUMBER, 29, new)
    (tmp_path / "wire.h").write_text(wire_header.generate())
    command = [
        "gcc",
        "-std=gnu11",
        "@warnings.opt",
        "-fsyntax-only",
        f"-I{tmp_path}",
        "-Iboards/host",
        "-Iinclude",
        "-I.",
    ]
    done = subprocess.run(
        [*command, "query/expressions/attribute.c"],
        cwd=FIRMWARE, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "enumeration value 'WIRE_ATTRIBUTE_PRESSURE' not handled in switch" in done.stderr
