"""One source that is read: opened, asked, decoded, closed and opened again, with what it has brought waiting to be taken."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skerry.sensors.definitions import SensorTable
from skerry.sources.addresses import address_of, refusal
from skerry.sources.decoding import Decoder, MisfitError, Row, microseconds
from skerry.sources.messages import SourceState
from skerry.sources.stream_type import AddressError, Sensor, Signal, StreamType, Timed, Value

#: Rows of a source that wait; it is not read while there are more.
WAITING_ROWS = 20_000
#: From a failure to the next attempt, in s: the first time, and at most.
AGAIN_S = (0.5, 30.0)
#: A row may be dated so far ahead of the clock, in us.
AHEAD_US = 60_000_000
#: Rows that do not fit, of which so many are shown, with so many characters.
_SAMPLES, _SHOWN = 5, 120


@dataclass(slots=True)
class Arrived:
    """A row: its fields, its time and when it came, UTC in us."""

    fields: Row
    time_us: int
    arrival_us: int


class Reading:
    """A tuple's source. ``some`` is called when rows wait."""

    def __init__(
        self,
        table: SensorTable,
        number: int,
        values: Sequence[Any],
        types: Mapping[str, type[StreamType]],
        folder: Path,
        allowed: Sequence[str],
        some: Callable[[], None],
    ) -> None:
        stream = table.stream
        assert stream is not None
        place = table.place(stream.name)
        assert place is not None
        self.table, self.number, self.values = table, number, tuple(values)
        self._types, self._folder, self._allowed, self._some = types, folder, allowed, some
        self._fields = stream.fields
        self.address = address_of(values, place)
        self.state = SourceState(table.name, number, self.address)
        self.waiting: deque[Arrived] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self.changed = True
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Nobody asks for it any more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def take(self, most: int) -> list[Arrived]:
        """So many of the rows that wait, oldest first."""
        found = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        if len(self.waiting) < WAITING_ROWS:
            self._room.set()
        return found

    # ---- the source ----

    async def _run(self) -> None:
        pause = AGAIN_S[0]
        while True:
            before = self.state.rows
            try:
                await self._read_through()
                return self._say("ended")
            except AddressError as error:
                return self._say("refused", str(error))
            except (OSError, asyncio.IncompleteReadError) as error:
                if self.state.rows > before:
                    pause = AGAIN_S[0]
                self._say("away", f"{_reason(error)}; tried again in {pause:g} s")
            except Exception as error:
                # A type that somebody else wrote is not to take others with it.
                self._say("away", f"{type(error).__name__}: {error}; tried again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, AGAIN_S[1])

    async def _read_through(self) -> None:
        """From its opening to its end. Raises AddressError, OSError."""
        refused = refusal(self.address, self._allowed, self._folder)
        if refused is not None:
            raise AddressError(refused)
        names = [column.name for column in self.table.columns]
        fields = tuple(field.name for field in self._fields)
        timed = next((field.name for field in self._fields if field.time), None)
        sensor = Sensor(self.address, dict(zip(names, self.values, strict=True)), fields, timed, self._folder)
        scheme = sensor.url.scheme.lower()
        kind = self._types.get(scheme)
        if kind is None:
            raise AddressError(
                f"there is no type of streams '{scheme}': there are {', '.join(sorted(self._types))}"
            )
        unknown = sensor.options.keys() - kind.options if kind.options is not None else set()
        if unknown and kind.options is not None:
            has = ", ".join(sorted(kind.options)) or "none"
            raise AddressError(f"option '{min(unknown)}' is none of {scheme}'s, which has {has}")
        decoder = Decoder(self._fields, sensor.options.get("format", "json"))
        stream = kind()
        try:
            await _called(stream.init, sensor)
            self._say("open")
            await self._ask(stream, decoder)
        finally:
            await _called(stream.close)

    async def _ask(self, stream: StreamType, decoder: Decoder) -> None:
        while True:
            found = await _called(stream.read)
            if found is Signal.END:
                return
            if found is not Signal.NO_VALUE:
                self._keep(found if isinstance(found, list | tuple) else [found], decoder)
            if not self._room.is_set():
                await self._room.wait()
            if stream.every_s is not None:
                await asyncio.sleep(stream.every_s)

    def _keep(self, values: Sequence[Value], decoder: Decoder) -> None:
        now = time.time_ns() // 1000
        for value in values:
            bare = value.value if isinstance(value, Timed) else value
            try:
                fields = decoder.line(bare) if isinstance(bare, bytes) else decoder.mapping(bare)
            except MisfitError as error:
                self._misfit(str(error), bare)
                continue
            at = microseconds(value.time) if isinstance(value, Timed) else now
            if decoder.time is not None and fields[decoder.time] is not None:
                at = fields[decoder.time]
            if at > now + AHEAD_US:
                self.state.ahead += 1
                continue
            self.waiting.append(Arrived(fields, at, now))
            self.state.rows += 1
        self.state.last, self.changed = now / 1e6, True
        if len(self.waiting) >= WAITING_ROWS:
            self._room.clear()
        self._some()

    def _misfit(self, why: str, value: bytes | Mapping[str, Any]) -> None:
        self.state.misfits += 1
        shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        self.state.sample = [*self.state.sample[1 - _SAMPLES :], f"{why}: {shown[:_SHOWN].strip()}"]

    def _say(self, state: str, why: str = "") -> None:
        self.state.state, self.state.why, self.changed = state, why, True


async def _called(method: Callable[..., Any], *arguments: Any) -> Any:
    """An ``async`` method in the loop, a plain one in a thread."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    return await asyncio.to_thread(method, *arguments)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
