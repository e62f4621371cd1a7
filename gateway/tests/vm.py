"""The motes' own stack machine, compiled for this host."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

FIRMWARE = Path(__file__).parents[2] / "firmware"
_READER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint8, ctypes.POINTER(ctypes.c_int32), ctypes.c_void_p)


class MoteMachine:
    """``firmware/query/vm.c`` behind ctypes."""

    def __init__(self, folder: Path) -> None:
        library = folder / "libvm.so"
        sources = [FIRMWARE / "query" / name for name in ("vm.c", "wide.c")]
        command = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", f"-I{FIRMWARE}", f"-I{FIRMWARE / 'include'}"]
        subprocess.run([*command, *map(str, sources), "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
        self._run = loaded.vm_run
        self._run.restype = ctypes.c_bool
        self._run.argtypes = [
            ctypes.c_char_p, ctypes.c_uint8, _READER, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32),
        ]  # fmt: skip

    def run(self, code: bytes, attributes: dict[int, int | None]) -> int | None:
        """The program's value over attributes by number; None: NULL."""

        def read(number: int, value: ctypes._Pointer[ctypes.c_int32], _context: int) -> bool:
            known = attributes[number]
            value[0] = known or 0
            return known is not None

        result = ctypes.c_int32()
        known = self._run(code, len(code), _READER(read), None, ctypes.byref(result))
        return result.value if known else None
