"""What motes report in a day that goes by quickly: a root that is played, and a record of all that it was given to send, for DuckDB."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections import deque
from typing import Any

import duckdb
import pyarrow as pa

from gateway.tests.peer import RootPeer
from skerry_protocol import codec
from skerry_protocol.codes import PacketType

#: Sample period of all motes, in s of network time.
PERIOD_S = 10
#: One of so many readings is lost on its way to the root.
LOST = 50
#: How often the root looks what is due, in s.
_STEP_S = 0.05


class DayOfRows:
    """Rows of so many motes, and of each epoch a partial state of all that reported, at the root's time, which goes ``speed`` times as
    fast as ours. ``sensors`` in :attr:`database` has the rows that were sent, numbered in their order; ``epochs`` the states."""

    def __init__(self, motes: int, speed: float, seed: int) -> None:
        self.root = RootPeer(speed=speed)
        self.motes, self._chance = motes, random.Random(seed)
        self.database = duckdb.connect(config={"threads": 1})
        self.database.execute(
            "CREATE TABLE sensors (number BIGINT, nodeid INTEGER, sample BIGINT, temp INTEGER, light INTEGER);"
            "CREATE TABLE epochs (number BIGINT, epoch BIGINT, motes INTEGER, total BIGINT, most INTEGER)"
        )
        #: Rows and states that were given to the root.
        self.rows = self.states = 0
        self._new_rows: deque[tuple[int, int, int, int, int]] = deque()
        self._new_states: deque[tuple[int, int, int, int, int]] = deque()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def programs(self) -> dict[bool, int]:
        """Numbers of the mote queries of rows (False) and of aggregates (True). There is to be one of each."""
        found = {number: codec.decode_program(program) for number, program in self.root.programs().items()}
        kinds = {bool(program.flags & 1): number for number, program in found.items()}
        if len(kinds) < len(found) or any(program.period != 1000 * PERIOD_S for program in found.values()):
            raise RuntimeError(f"motes are asked otherwise than the benchmark plays them: {found}")
        return kinds

    def start(self) -> None:
        """From the next epoch on. Both kinds of mote queries are there."""
        programs = [codec.decode_program(program) for program in self.root.programs().values()]
        self._query, self._aggregate = self.programs()[False], self.programs()[True]
        self._epoch = max(*(program.start for program in programs), int(self.root.now())) // PERIOD_S + 1
        self._thread.start()

    def end(self) -> None:
        """Nothing more comes."""
        self._over.set()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """What the root has that the gateway has not taken."""
        return len(self.root.waiting)

    def _run(self) -> None:
        # Row n of an epoch is due at its part of the epoch, so that rows come evenly.
        mote, values = 0, list[int]()
        while not self._over.wait(_STEP_S):
            while (self._epoch + mote / self.motes) * PERIOD_S <= self.root.now():
                if mote == self.motes:
                    self._tell(values)
                    self._epoch, mote, values = self._epoch + 1, 0, []
                    continue
                if self._chance.randrange(LOST):
                    values.append(self._report(1 + mote))
                mote += 1

    def _report(self, node: int) -> int:
        temp, light = self._chance.randrange(1500, 3500), self._chance.randrange(40_000)
        packet = codec.encode(
            PacketType.RESULT, query=self._query, node=node, epoch=self._epoch, nulls=0, values=struct.pack("<Hh", light, temp)
        )  # fmt: skip
        with self._lock:
            self._new_rows.append((self.rows, node, 1000 * PERIOD_S * self._epoch, temp, light))
            self.rows += 1
        self.root.waiting.append(packet)
        return temp

    def _tell(self, temps: list[int]) -> None:
        """The partial state of an epoch: AVG, MAX, COUNT, as the mote query has them."""
        count, total, most = len(temps), sum(temps), max(temps)
        states = [{"count": count, "value": value} for value in (total, most, 0)]
        packet = codec.encode(
            PacketType.PARTIAL, query=self._aggregate, epoch=self._epoch, motes=count, overflow=0, states=states
        )  # fmt: skip
        with self._lock:
            self._new_states.append((self.states, self._epoch, count, total, most))
            self.states += 1
        self.root.waiting.append(packet)

    def sent(self, kind: str, first: int, end: int) -> list[tuple[Any, ...]]:
        """``sensors`` or ``epochs`` from one number up to before another."""
        return self.answered(
            f"SELECT * FROM {kind} WHERE number >= {first} AND number < {end} ORDER BY number"
        )

    def answered(self, sql: str) -> list[tuple[Any, ...]]:
        """What DuckDB answers of all that was sent so far; from any thread."""
        with self._lock:
            for name, new in (("sensors", self._new_rows), ("epochs", self._new_states)):
                if new:
                    names = [row[0] for row in self.database.execute(f"DESCRIBE {name}").fetchall()]
                    table = pa.table(dict(zip(names, zip(*new, strict=True), strict=True)))
                    self.database.register("fresh", table)
                    self.database.execute(f"INSERT INTO {name} SELECT * FROM fresh")
                    self.database.unregister("fresh")
                    new.clear()
            cursor = self.database.cursor()
        return cursor.execute(sql).fetchall()

    def wait_until_taken(self, limit_s: float) -> None:
        """Until the gateway has all."""
        deadline = time.monotonic() + limit_s
        while self.root.waiting and time.monotonic() < deadline:
            time.sleep(0.1)
