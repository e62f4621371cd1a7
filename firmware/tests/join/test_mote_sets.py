"""Sets of motes, as programs carry them: the firmware reads what the protocol's own code does."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.host import FIRMWARE, TRAPS, build
from skerry_protocol import mote_sets

NONE = 0xFFFF
VECTORS = json.loads((FIRMWARE.parent / "protocol" / "vectors" / "mote_sets.json").read_text())


class MoteSet(ctypes.Structure):
    """struct mote_set."""

    _fields_ = (("bytes", ctypes.c_char_p), ("length", ctypes.c_uint8))


@pytest.fixture(scope="module")
def code() -> Any:
    """The firmware's own, compiled for this machine; undefined behaviour ends the process."""
    found = ctypes.CDLL(str(build("libskerry_mote_set.so", (FIRMWARE / "join" / "mote_set.c",), TRAPS)))
    for function in (found.mote_set_number, found.mote_set_mote):
        function.argtypes, function.restype = (MoteSet, ctypes.c_uint16), ctypes.c_uint16
    return found


def read(code: Any, told: bytes) -> list[int]:
    """The motes of a set, one number after the other."""
    found: list[int] = []
    while (mote := code.mote_set_mote(MoteSet(told, len(told)), len(found))) != NONE:
        found.append(mote)
    return found


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden_bytes(code: Any, vector: dict[str, Any]) -> None:
    assert read(code, bytes.fromhex(vector["hex"])) == vector["meaning"]


@given(st.binary(max_size=30), st.integers(0, NONE - 1))
def test_any_bytes(code: Any, told: bytes, other: int) -> None:
    motes = mote_sets.parse(told)
    if motes and motes[-1] >= NONE:
        return  # no program has addresses that there are not
    assert read(code, told) == motes
    for mote in (other, *motes):
        number = code.mote_set_number(MoteSet(told, len(told)), mote)
        assert number == (motes.index(mote) if mote in motes else NONE)
