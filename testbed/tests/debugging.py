"""A testbed with debuggers' ports as a process, and GDB as another."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: s that nothing here should take, on whatever machine.
LIMIT_S = 120
_SKERRY = str(Path(sys.executable).parent / "skerry")


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


class Bed:
    """``skerry testbed`` that runs, and what it has said on standard error."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def waits(self) -> dict[int, list[str]]:
        """The command that users are told for GDB, by mote."""
        told = re.findall(r"^mote (\d+) waits for a debugger: (.*)$", self.said, re.MULTILINE)
        return {int(mote): shlex.split(command) for mote, command in told}

    def port(self, mote: int) -> int:
        """Where that GDB attaches."""
        return int(re.findall(r"target remote 127\.0\.0\.1:(\d+)", " ".join(self.waits()[mote]))[0])

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


@contextmanager
def running(description: Path, *options: object, gdb: dict[int, int]) -> Iterator[Bed]:
    """It, once it waits for its debuggers; ``gdb``: ports by mote."""
    log = description.with_suffix(".log")
    debuggers = [f"--gdb={mote}:{port}" for mote, port in gdb.items()]
    command = [_SKERRY, "testbed", str(description), "--port", "0", *map(str, options), *debuggers]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file)
    bed = Bed(process, log)
    try:
        wait_for(lambda: len(bed.waits()) == len(gdb) or process.poll() is not None, "the testbed to wait")
        assert len(bed.waits()) == len(gdb), bed.said
        yield bed
    finally:
        process.kill()
        process.wait()


class Gdb:
    """GDB attached to a mote, doing one command after another."""

    def __init__(self, bed: Bed, mote: int, commands: str, log: Path) -> None:
        program, *arguments = bed.waits()[mote]
        script = log.with_suffix(".gdb")
        script.write_text(commands)
        options = [f"-ex=set {name} off" for name in ("pagination", "confirm", "debuginfod enabled")]
        # On a busy machine an answer may take longer than the 2 s that GDB waits for one.
        options += ["-ex=set width 0", "-ex=set height 0", f"-ex=set remotetimeout {LIMIT_S}"]
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [program, "-q", "-nx", "-batch", *options, *arguments, "-x", str(script)],
                stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self._log.read_text()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> str:
        """Its output, once it has ended."""
        self.process.wait(LIMIT_S)
        return self.said

    def __enter__(self) -> Gdb:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
