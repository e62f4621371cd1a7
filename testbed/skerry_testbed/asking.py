"""The queries of a run, and the gateway that they are put to: a process of its own that lives in the run's virtual time, so that a
run with queries, too, is the same to the bit when it is repeated. What passes between is :mod:`skerry.service.step_messages`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from skerry.service.step_messages import Begin, End, Ended, QueryReport, Step, Told
from skerry_testbed.description import Query
from skerry_testbed.duration import seconds
from skerry_testbed.errors import TestbedError
from skerry_testbed.runner import Testbed

#: Virtual ns between two turns of the gateway: what the root has said waits so long at most.
TURN_NS = 50_000_000

Answer = TypeVar("Answer", Told, Ended)


class Asking:
    """A gateway at the root of a run, from here until :meth:`close`. ``rows`` is given a line of JSON for each row that a user gets,
    ``say`` what else there is to tell. Raises TestbedError for a query that is wrong, here or, where it shows later, in the middle of
    the run."""

    def __init__(
        self,
        bed: Testbed,
        queries: Sequence[Query],
        rows: Callable[[str], object],
        say: Callable[[str], object],
    ) -> None:
        self._bed, self._rows, self._say = bed, rows, say
        #: In the order in which they are asked; the gateway numbers them likewise.
        self._queries = sorted(queries, key=lambda query: seconds(query.at))
        self._stops = sorted(
            (seconds(query.until), number)
            for number, query in enumerate(self._queries)
            if query.until is not None
        )
        self._put = 0
        self._from_root = bytearray()
        self._next_ns = 0
        #: By query, where its rows are joined, if motes join them (:meth:`skerry.service.pair_service.PairService.status`).
        self.joined: dict[str, dict[str, Any]] = {}
        self._told: dict[str, list[float]] = {}
        self._data = tempfile.TemporaryDirectory(prefix="skerry-testbed-")
        self._gateway = _started()
        try:
            data = Path(self._data.name) / "gateway"
            statements = [query.sql for query in self._queries]
            network = bed.network
            begin = Begin(str(data), network.tables, network.seed, statements, network.attributes)
            self._check(self._call(begin, Told))
        except BaseException:
            self.close()
            raise
        bed.line_listeners.append(self._from_root.extend)
        bed.slice_listeners.append(self._turn)

    def _turn(self) -> None:
        now = self._bed.world.now_ns
        if now < self._next_ns:
            return
        self._next_ns = now - now % TURN_NS + TURN_NS
        step = Step(self._bed.now_s, bytes(self._from_root))
        self._from_root.clear()
        while self._put < len(self._queries) and seconds(self._queries[self._put].at) <= step.now:
            query = self._queries[self._put]
            step.ask.append((query.sql, query.user))
            self._put += 1
        while self._stops and self._stops[0][0] <= step.now:
            step.stop.append(self._stops.pop(0)[1])
        told = self._call(step, Told)
        if told.data:
            self._bed.send(told.data)
        for note in told.notes:
            self._say(f"note: {note}")
        self.joined |= {joined["query"]: joined for joined in told.joined}
        for asked, row in told.rows:
            self._told.setdefault(asked, []).append(step.now)
            self._rows(json.dumps({"query": asked, "at": round(step.now, 3), "row": row}))
        self._check(told)

    def _check(self, told: Told) -> None:
        if told.error is not None:
            raise TestbedError(told.error)

    def _call(self, message: msgspec.Struct, answer: type[Answer]) -> Answer:
        process = self._gateway
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(message) + b"\n")
            process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise TestbedError(
                f"the gateway of this run has ended with exit code {process.wait()} at {self._bed.now_s:g} s of virtual time"
            )
        return msgspec.json.decode(line, type=answer)

    def report(self, mote_queries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What users were told, for the run's report. ``mote_queries``: the report's ``queries``. Ends the gateway's part in the run."""
        ended = self._call(End(), Ended)
        return {
            "asked": [self._of(asked, mote_queries) for asked in ended.queries],
            "alarms": ended.alarms,
        }

    def _of(self, asked: QueryReport, mote_queries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        mine = [query for query in mote_queries if query["query"] in asked.mote_queries]
        produced = sum(query["produced"] - query["under_way"] for query in mine)
        times = self._told.get(asked.id, [])
        return {
            **msgspec.structs.asdict(asked),
            "rows": len(times),
            "first_row_s": times[0] if times else None,
            "last_row_s": times[-1] if times else None,
            "yield": sum(query["delivered"] for query in mine) / produced if produced else None,
        }

    def close(self) -> None:
        """The gateway ends, if it has not."""
        assert self._gateway.stdin is not None
        assert self._gateway.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._gateway.stdin.close()
        self._gateway.wait()
        self._gateway.stdout.close()
        self._data.cleanup()


def _started() -> subprocess.Popen[bytes]:
    # In a session of its own: Ctrl-C on the terminal reaches this process only, which ends it. Sets of texts have one order.
    return subprocess.Popen(
        [sys.executable, "-m", "skerry.service.stepped"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
