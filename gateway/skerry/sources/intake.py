"""The intake process: reads the sources that queries have selected, and hands what they bring to the gateway, which alone appends.

``python -m skerry.sources.intake DESCRIPTOR``, as :mod:`skerry.sources.supervisor` starts it. It ends when the gateway does, however that
happens. One loop has all sources; one batch is under way at a time, and rows of each are taken in turn, so that none waits for a busy one.
Where the gateway does not keep up, sources are not read.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from skerry.sources.batching import Part, batch_of, sifted
from skerry.sources.messages import Brought, Job, Key, Rows, SourceState, States, Taken, Wanted
from skerry.sources.opening import Opener
from skerry.sources.reading import Arrived, Reading
from skerry.sources.stream_type import types
from skerry.storage.log.source_batches import SourceBatch
from skerry.storage.log.source_positions import Position

#: Rows that have come gather for so long, in s: the disk takes as long for many as for one.
GATHER_S = 0.02
#: Rows of a source that are taken in its turn, and of all of a table at a time, and about so many bytes of them as they came.
TURN_ROWS, BATCH_ROWS, BATCH_BYTES = 2048, 32_768, 64 << 20
#: After a batch that could not be stored, in s.
_AGAIN_S = 1.0
#: How sources are is told so often, in s.
_TELL_S = 0.5

#: Files that the process may have open, where the system allows so many.
_FILES = 65_536
_Done = TypeVar("_Done")


class Intake:
    """Serves a gateway over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        job: Job = connection.recv()
        self._opener = Opener(types(), Path(job.folder), job.allowed, Path(job.secrets))
        self._readings: dict[Key, Reading] = {}
        #: Behind all rows that were taken, of sources that are or were open: these will be in the log, while this process lives.
        self._positions: dict[Key, Position] = {}
        self._some, self._answered = asyncio.Event(), asyncio.Event()
        self._taken = False
        #: Whose turn it is first.
        self._turn = 0
        self._wanted = asyncio.Queue[Wanted]()
        self._thread = ThreadPoolExecutor(1, "batches")

    async def serve(self) -> None:
        """Until the gateway is gone."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        await asyncio.gather(self._follow(), self._give(), self._tell())

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                word = self._connection.recv()
            except (EOFError, OSError):
                # Nobody is left for whom anything could be put in order.
                os._exit(0)
            if isinstance(word, Taken):
                loop.call_soon_threadsafe(self._answer, word.done)
            else:
                loop.call_soon_threadsafe(self._wanted.put_nowait, word)

    def _answer(self, done: bool) -> None:
        self._taken = done
        self._answered.set()

    def _say(self, word: object) -> None:
        try:
            self._connection.send(word)
        except OSError:
            os._exit(0)

    async def _follow(self) -> None:
        """Open what is wanted, and nothing else."""
        while True:
            wanted = await self._wanted.get()
            while not self._wanted.empty():
                wanted = self._wanted.get_nowait()
            gone = {
                key: reading
                for key, reading in self._readings.items()
                if wanted.openings.get(key) != reading.opening
            }
            await asyncio.gather(*(reading.stop() for reading in gone.values()))
            for key in gone:
                del self._readings[key]
                position = self._positions.get(key)
                if position is not None and not position.lasting:
                    del self._positions[key]
            changed = list[Coroutine[Any, Any, None]]()
            for key, reading in self._readings.items():
                is_same = wanted.tables[key[0]] == reading.table
                if is_same and (wanted.rows[key] == reading.values or reading.become(wanted.rows[key])):
                    continue
                changed.append(self._change(key, reading, wanted))
            await asyncio.gather(*changed)
            for key, values in wanted.rows.items():
                if key not in self._readings:
                    self._open(key, wanted, values)

    async def _change(self, key: Key, reading: Reading, wanted: Wanted) -> None:
        """A tuple has changed."""
        await reading.stop()
        while reading.waiting:
            self._some.set()
            await asyncio.sleep(GATHER_S)
        self._open(key, wanted, wanted.rows[key])

    def _open(self, key: Key, wanted: Wanted, values: tuple[object, ...]) -> None:
        position = self._positions.get(key, wanted.positions.get(key))
        self._readings[key] = Reading(
            wanted.tables[key[0]],
            key[1],
            values,
            self._opener,
            self._some.set,
            position,
            wanted.openings[key],
        )

    async def _give(self) -> None:
        while True:
            await self._some.wait()
            await asyncio.sleep(GATHER_S)
            self._some.clear()
            taken = self._take()
            batches, brought, others = await self._aside(self._made, taken)
            for reading, row, why in others:
                reading.leave_out(row, why)
            while batches:
                self._answered.clear()
                await self._aside(self._say, Rows(batches, brought))
                await self._answered.wait()
                if self._taken:
                    for part in (part for parts in taken.values() for part in parts):
                        part.reading.progress.kept(part.last)
                    break
                await asyncio.sleep(_AGAIN_S)

    async def _aside(self, work: Callable[..., _Done], *arguments: Any) -> _Done:
        """In a thread that neither sources nor names that are looked up can hold up."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _take(self) -> dict[int, list[Part]]:
        """Rows of all sources in turn, by table."""
        found: dict[int, list[Part]] = {}
        room: dict[int, tuple[int, int]] = {}
        keys = list(self._readings)
        self._turn = (self._turn + 1) % max(len(keys), 1)
        for key in keys[self._turn :] + keys[: self._turn]:
            reading, (left, bytes_left) = self._readings[key], room.get(key[0], (BATCH_ROWS, BATCH_BYTES))
            each = max(1, reading.row_bytes)
            # One at least, however long it is.
            rows = reading.take(min(TURN_ROWS, left, max(1, bytes_left // each)) if bytes_left > 0 else 0)
            if rows:
                position, last = reading.progress.behind()
                found.setdefault(key[0], []).append(Part(reading, rows, position, last))
                if position is not None:
                    self._positions[key] = position
                room[key[0]] = left - len(rows), bytes_left - each * len(rows)
            if reading.waiting:
                self._some.set()
        return found

    def _made(
        self, taken: dict[int, list[Part]]
    ) -> tuple[tuple[SourceBatch, ...], tuple[Brought, ...], list[tuple[Reading, Arrived, str]]]:
        """Batches, what is counted of them, and rows that none can have, with the reason."""
        made, others = list[tuple[SourceBatch, Brought]](), list[tuple[Reading, Arrived, str]]()
        for parts in taken.values():
            table = parts[0].reading.table
            try:
                made.append(batch_of(table, parts))
            except Exception:
                # A value that a type has brought, or a tuple has, is not to take others with it.
                fitting = list[Part]()
                for part in parts:
                    left, out = sifted(table, part)
                    fitting += [left] if left.rows else []
                    others += [(part.reading, row, why) for row, why in out]
                made += [batch_of(table, fitting)] if fitting else []
        return tuple(batch for batch, _ in made), tuple(brought for _, brought in made), others

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_TELL_S)
            told: dict[Key, SourceState] = {}
            for key, reading in self._readings.items():
                # Of one that has ended nothing is left to come when that is told.
                if reading.state.waiting != len(reading.waiting):
                    reading.state.waiting, reading.changed = len(reading.waiting), True
                left = reading.waiting or reading.progress.is_flying
                if reading.changed and not (reading.state.state == "ended" and left):
                    reading.changed, told[key] = False, reading.state
            if told:
                self._say(States(told))


def more_files() -> None:
    """Each source is a file: as many as the system allows, where a shell's usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _main(descriptor: int) -> None:
    more_files()
    await Intake(Connection(descriptor)).serve()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
