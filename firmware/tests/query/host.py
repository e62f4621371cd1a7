"""Builds host programs and libraries from the firmware's own sources."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = FIRMWARE.parent / "build" / "firmware" / "host"
QUERY = (
    *sorted(path for path in (FIRMWARE / "query").rglob("*.c") if path.name != "queue_discipline.c"),
    *sorted((FIRMWARE / "lib").glob("*.c")),
    FIRMWARE / "index" / "point.c",
    FIRMWARE / "index" / "halving.c",
    FIRMWARE / "join" / "mote_set.c",
    FIRMWARE / "join" / "pairs.c",
    FIRMWARE / "kernel" / "kernel.c",
    FIRMWARE / "net" / "routing" / "neighbours.c",
    FIRMWARE / "net" / "routing" / "positions.c",
    FIRMWARE / "boards" / "host" / "rowstore.c",
    HERE / "environment.c",
)
INCLUDES = (FIRMWARE, FIRMWARE / "include", HERE)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
#: Undefined behaviour ends the process; needs no run-time library, so that Python can load the result.
TRAPS = ("-fPIC", "-shared", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")


def build(name: str, sources: Sequence[Path], flags: Sequence[str], board: str = "iris") -> Path:
    """Compile ``sources`` into ``build/firmware/host/name``, nothing when that is newer than all of them. Names of a board come from
    that board's header; who calls implements them.

    Raises CalledProcessError with the compiler's messages on standard error.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    target = BUILD / name
    headers = [header for folder in (FIRMWARE, HERE) for header in folder.rglob("*.h")]
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes run side by side
        newest = max(path.stat().st_mtime for path in (*sources, *headers, Path(__file__)))
        if not target.exists() or target.stat().st_mtime < newest:
            fresh = target.with_suffix(".new")
            includes = [f"-I{folder}" for folder in (*INCLUDES, FIRMWARE / "boards" / board)]
            subprocess.run(
                ["gcc", "-std=c11", "-g", "-O1", f"@{FIRMWARE / 'warnings.opt'}", *flags, *includes,
                 *map(str, sources), "-o", str(fresh)],
                check=True,
            )  # fmt: skip
            os.replace(fresh, target)
    return target


def discipline_library() -> Path:
    """The same with the queue that motes have."""
    sources = (
        *QUERY,
        HERE / "vm_rows.c",
        FIRMWARE / "net" / "transport" / "queue.c",
        *(FIRMWARE / "query").rglob("queue_discipline.c"),
        HERE / "discipline.c",
    )
    return build("libskerry_discipline.so", sources, TRAPS)


def query_library() -> Path:
    """The query engine with its environment as a shared library."""
    return build("libskerry_query.so", (*QUERY, HERE / "vm_rows.c"), TRAPS)
