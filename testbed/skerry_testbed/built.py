"""Where libraries, images and what belongs to them lie: beside this package, in a checkout as `make` builds them or in an installation as
the wheel carries them. Never where another copy of this package has its own."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path

from skerry_protocol import wire_header
from skerry_testbed.errors import TestbedError

_PACKAGE = Path(__file__).resolve().parent
#: What a wheel carries.
INSTALLED = _PACKAGE / "built"
#: The checkout, where this is one.
PROJECT = _PACKAGE.parent.parent
_OWN = INSTALLED if INSTALLED.is_dir() else PROJECT / "build"
#: ``testbed/`` has the libraries, ``firmware/`` the images.
BUILD = Path(os.environ.get("SKERRY_BUILD", _OWN))
#: What is not built: headers, models for Renode, the debugger's script, networks.
FILES = INSTALLED if INSTALLED.is_dir() else PROJECT / "testbed"
HEADER = FILES / "core" / "include" / "skerry_core.h"

#: In each image: which packets it knows.
_SPEAKS = re.compile(rb"skerry-protocol:([0-9a-f]{16})")


def how(target: str) -> str:
    """What mends it."""
    if BUILD == INSTALLED:
        return "the installed package lacks it: install skerry anew"
    return f"run 'make {target}' in {PROJECT}"


def library(name: str) -> Path:
    """``core``, or a CPU's back-end. Raises TestbedError."""
    return _there(BUILD / "testbed" / f"libskerry_{name}.so", "testbed")


def image(board: str) -> Path:
    """The board's own. Raises TestbedError."""
    return _there(BUILD / "firmware" / f"{board}.elf", "firmware")


def _there(path: Path, target: str) -> Path:
    if not path.exists():
        raise TestbedError(f"{path} is missing: {how(target)}")
    return path


def interface() -> int:
    """Of the header that the core's functions are called by: the core has the same."""
    return int(hashlib.sha256(HEADER.read_bytes()).hexdigest()[:8], 16)


def check_image(path: Path) -> None:
    """Raises TestbedError for one of this project that knows other packets than this package does. What says nothing of packets is
    somebody's own."""
    state = path.stat()
    found = _speaks(path, state.st_mtime_ns, state.st_size)
    own = wire_header.digest()
    if found not in (None, own):
        raise TestbedError(
            f"{path} is of another version: it has protocol {found}, this package ({_PACKAGE}) {own}: {how('firmware')}"
        )


@cache
def _speaks(path: Path, changed: int, size: int) -> str | None:
    del changed, size
    found = _SPEAKS.search(path.read_bytes())
    return found[1].decode() if found else None
