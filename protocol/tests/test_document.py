"""docs/protocol.md is what the definitions say."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry_protocol import document
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import PacketType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def test_page_is_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert document.main(["--check", str(PAGE)]) == 0, capsys.readouterr().err


def test_page_names_every_packet_and_opcode() -> None:
    text = PAGE.read_text()
    for type in PacketType:
        assert f"### {type.name} 0x{type.value:02X}" in text
    for op in Op:
        assert f"| {op.name} | 0x{op.value:02X} |" in text
