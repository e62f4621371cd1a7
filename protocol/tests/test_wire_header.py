"""firmware/include/wire.h is what the definitions say."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry_protocol import wire_header

HEADER = Path(__file__).resolve().parents[2] / "firmware" / "include" / "wire.h"


def test_header_is_not_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert wire_header.main(["--check", str(HEADER)]) == 0, capsys.readouterr().err


def test_stale_header_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "wire.h"
    stale.write_text(HEADER.read_text().replace("WIRE_PACKET_MAXIMUM 116U", "WIRE_PACKET_MAXIMUM 117U"))
    assert wire_header.main(["--check", str(stale)]) == 1
    assert "is stale: it lacks '#define WIRE_PACKET_MAXIMUM 116U" in capsys.readouterr().err
    assert wire_header.main([str(stale)]) == 0
    assert stale.read_text() == HEADER.read_text()
