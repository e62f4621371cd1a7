"""Two states of the project, each by its own checkout, driven from outside in one run: gateways as processes, rows by files, readers by
HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.measuring import line_and_log
from bench.measuring.processes import processor_shares, proportional_memory
from bench.runner.benchmark import OptionError
from bench.runner.provenance import PROJECT
from bench.runner.recorder import Recorder
from gateway.tests.process import Daemon, wait_for
from skerry import GatewayError

SINCE, BEFORE = "since", "before"
#: Starts the gateway of a state that had patched workers with those of PySpark: the folder that it puts before all else on its workers'
#: path is another one, which has a daemon of the name that it asks for.
_PLAIN_WORKERS = """
import sys
from pathlib import Path
import skerry.proxy.spark
skerry.proxy.spark.WORKERS = Path(sys.argv.pop(1))
from skerry.cli.entry import main
main()
"""
_PLAIN_DAEMON = 'import runpy\nrunpy.run_module("pyspark.daemon", run_name="__main__")\n'


#: Names the folder of another checkout, built, of the state before. No option: results tell options, and a folder says nothing elsewhere.
VARIABLE = "SKERRY_BENCH_BEFORE"


@dataclass(frozen=True)
class State:
    """``name``: as figures call it; ``options``: of its gateway; ``plain_workers``: without what patched PySpark's workers in it;
    ``table``: rows of a table that users' rows are joined with, one for each, 0: there is none."""

    name: str
    folder: Path
    options: tuple[str, ...] = ()
    plain_workers: bool = False
    table: int = 0

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / ".venv" / "bin" / "python")


def states(recorder: Recorder, *, plain_workers: bool = False) -> list[State]:
    """Before, if there is one, and since; a remark tells which state that is. Raises OptionError."""
    found, given = [State(SINCE, PROJECT)], os.environ.get(VARIABLE)
    if given:
        folder = Path(given).resolve()
        before = State(BEFORE, folder, plain_workers=plain_workers)
        if not Path(before.python).exists():
            raise OptionError(f"{VARIABLE}={given}: there is no built checkout: run make setup in it")
        told = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(told, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
        plain = ", its Spark workers without its patches" if plain_workers else ""
        recorder.remark(f"Before is commit {commit}{plain}.")
        found.insert(0, before)
    else:
        recorder.remark(
            f"There was nothing to compare with: {VARIABLE} names the folder of another checkout."
        )
    return found


class Driven:
    """A running gateway of a state. ``users``: queries, and the lowest and highest ``light`` that they ask for."""

    def __init__(self, state: State, daemon: Daemon, helper: subprocess.Popen[str]) -> None:
        self.state, self.daemon, self._helper = state, daemon, helper
        self.client = daemon.client("crowd")
        self.users: dict[str, tuple[int, int]] = {}
        #: Rows that were appended.
        self.rows = 0

    @property
    def pid(self) -> int:
        """The gateway's process."""
        assert self.daemon.process is not None
        return self.daemon.process.pid

    def ask(self, low: int, high: int) -> str:
        """One more user, who has no reader yet."""
        sql = f"SELECT nodeid, light FROM sensors WHERE light BETWEEN {low} AND {high} SAMPLE PERIOD 1 s"
        if self.state.table:
            joined = f"k.number = s.light % {self.state.table} AND s.light BETWEEN {low} AND {high}"
            sql = f"SELECT s.nodeid, s.light, k.weight FROM sensors AS s, kinds AS k WHERE {joined} SAMPLE PERIOD 1 s"
        query = self.client.query(sql, linger_s=None).id
        self.users[query] = low, high
        return query

    def begin(self) -> None:
        """Start the gateway again, which then knows what is in its log, so that readers can begin behind that. Rows are of the mote query
        that all users share now, which those who have come may have changed."""
        self.daemon.kill(signal.SIGTERM)
        with suppress(GatewayError):
            # Of ten thousand users it plans all queries again before it answers.
            self.daemon.start(*self.state.options)
        wait_for(self._answers, 600)
        wait_for(lambda: self.client.status()["spark"]["state"] == "running")
        stream = self.client.status()["streams"][-1]["stream"]
        self._do("open", stream, self.daemon.data)

    def _answers(self) -> bool:
        with suppress(GatewayError):
            return bool(self.client.status()["link"]["state"] == "connected")
        return False

    def append(self, count: int) -> tuple[float, float]:
        """So many rows at once; when that began and ended, in s of the monotonic clock."""
        [(first, count, began, ended)] = self._do("append", count)
        self.rows = first + count
        return began, ended

    def trickle(self, rate: int, seconds: float) -> list[tuple[int, int, float]]:
        """So many rows a second; for each time that some were appended the first one's number, how many, and when."""
        done = [(first, count, at) for first, count, at, _ in self._do("trickle", rate, seconds)]
        self.rows = done[-1][0] + done[-1][1]
        return done

    def through(self) -> None:
        """Wait until all rows have been through Spark."""
        wait_for(lambda: self.client.status()["processed"] >= self.rows)

    def expected(self, users: Iterable[str], appended: Iterable[tuple[int, int]]) -> int:
        """Rows that these users get together of some that were appended: the first one's number and how many, for each time."""
        found = np.concatenate([line_and_log.lights(first, count) for first, count in appended])
        upto = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=line_and_log.SPAN))])
        ranges = [self.users[user] for user in users]
        return int(sum(upto[high + 1] - upto[low] for low, high in ranges))

    def processor(self) -> dict[str, float]:
        """Processor time of its processes so far, in s, by what they are."""
        return processor_shares(self.pid)

    def memory(self) -> int:
        """Bytes of all its processes."""
        return proportional_memory(self.pid)

    def _do(self, *words: object) -> Any:
        line = _told(self._helper, *words)
        if not line:
            raise RuntimeError(f"{self.state.name}: who writes its log has ended")
        return json.loads(line)


@contextmanager
def driven(state: State) -> Iterator[Driven]:
    """Its gateway, started, with a root that says nothing but that it is there."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skerry-bench-")))
        helper = stack.enter_context(
            subprocess.Popen(
                [state.python, "-P", line_and_log.__file__],
                cwd=state.folder,
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(state.folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(helper.kill)
        daemon = Daemon(json.loads(_told(helper, "url")), directory / "data")
        daemon.command, daemon.folder = _command(state, directory), state.folder
        if state.table:
            _write_table(daemon.data / "tables" / "kinds.csv", state.table)
        stack.callback(_stop, daemon)
        daemon.start(*state.options)
        yield Driven(state, daemon, helper)


def _write_table(path: Path, rows: int) -> None:
    """Its keys are 0, 1, 2 …"""
    path.parent.mkdir(parents=True)
    path.write_text("number,weight\n" + "".join(f"{i},{i % 97}\n" for i in range(rows)))


def _told(helper: subprocess.Popen[str], *words: object) -> str:
    """Its answer; "": it has ended."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    print(*words, file=helper.stdin, flush=True)
    return helper.stdout.readline()


def _command(state: State, directory: Path) -> tuple[str, ...]:
    if not state.plain_workers:
        return (str(Path(state.python).parent / "skerry"),)
    workers = directory / "workers"
    workers.mkdir()
    (workers / "prompt_daemon.py").write_text(_PLAIN_DAEMON)
    return (state.python, "-c", _PLAIN_WORKERS, str(workers))


def _stop(daemon: Daemon) -> None:
    if daemon.process is not None and daemon.process.poll() is None:
        daemon.kill(signal.SIGTERM)
    elif daemon.process is not None:
        print(daemon.log.read_text()[-2000:], file=sys.stderr)
