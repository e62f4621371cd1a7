"""A program that migrates copies of a state, and is killed at each of its system calls that write, in turn: what each kill has left stays.

Run with killed_at_calls.c loaded before libc. Each copy is migrated by a process of its own, which is forked.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

from skerry.storage.state.database import StateDatabase
from skerry.storage.state.schema import MIGRATIONS

#: The schema that the state has, and what it is brought to: the last migration that there is, and one that writes every row of a table.
BEFORE = MIGRATIONS[:-1]
LATER = (*MIGRATIONS, "ALTER TABLE queries ADD COLUMN note TEXT; UPDATE queries SET note = user || sql;")
#: As in killed_at_calls.c: more calls are not told apart.
POINTS = 4096
#: Kills leave a write out, or half of one; or each begins with what the one before has left.
WAYS = ("whole", "torn", "again")


def migrate(before: Path, found: Path, way: str) -> str:
    """Copies of ``before`` are ``found / "0"``, which nobody has killed, and ``found / "1"``, ``found / "2"``, …, each as the kill at that
    call has left it, up to one that had fewer calls. Returns the calls of the first one, a letter each."""
    library = ctypes.CDLL(None)
    calls, write = os.pipe()
    at, status = 0, signal.SIGKILL.value
    while at < 2 or status:
        here = found / str(at)
        shutil.copytree(before, here)
        child = os.fork()
        if child == 0:
            library.killed_arm(at, int(way == "torn"))
            StateDatabase(here, LATER).close()
            called = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "killed_points")))
            library.killed_arm(0, 0)
            if at == 0:
                os.write(write, called)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), f"call {at}: it ended by itself, with status {status}"
        if way == "again" and status:
            before = here
        at += 1
    return os.read(calls, POINTS).decode()


if __name__ == "__main__":
    print(migrate(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
