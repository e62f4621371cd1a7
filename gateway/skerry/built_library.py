"""The motes' own C in shared libraries, which `make firmware` builds and a wheel carries."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
#: What a wheel carries, and where a checkout is built.
_INSTALLED, _CHECKOUT = _PACKAGE / "built", _PACKAGE.parents[1]


class LibraryError(RuntimeError):
    """The library is not there; one line that says what makes it."""


def load(name: str) -> ctypes.CDLL:
    """A library by its file's name. Raises LibraryError."""
    built = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT / "build"
    path = Path(os.environ.get("SKERRY_BUILD", built)) / "firmware" / name
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        mended = "install skerry anew" if built == _INSTALLED else f"run 'make firmware' in {_CHECKOUT}"
        why = str(error) if path.exists() else f"{path} is missing"
        raise LibraryError(f"{why}: {mended}") from None
