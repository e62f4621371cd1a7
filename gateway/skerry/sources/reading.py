"""One source that is read: opened, asked, decoded, closed and opened again, with what it has brought waiting to be taken."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skerry.sensors.definitions import SensorTable
from skerry.sources.addresses import address_of
from skerry.sources.decoding import Decoder, MisfitError, Row, microseconds
from skerry.sources.messages import SourceState
from skerry.sources.opening import Opened, Opener, called, closed, reason
from skerry.sources.progress import Progress
from skerry.sources.shown import LOOKED, ROW, plain
from skerry.sources.stream_type import AddressError, Sensor, Signal, StreamType, Timed, Value
from skerry.sql.row_text import moment_text
from skerry.storage.log.source_positions import Position

#: Rows of a source that wait, and about so many bytes of them as they came; it is not read while there are more.
WAITING_ROWS, WAITING_BYTES = 20_000, 16 << 20
#: Of values that come as objects each so many-th is measured.
_MEASURED = 64
#: Of the values of one ``read`` so many are decoded before others have their turn.
DECODED_ROWS = 2048
#: From a failure to the next attempt, in s: the first time, and at most.
AGAIN_S = (0.5, 30.0)
#: A row may be dated so far ahead of the clock, in us.
AHEAD_US = 60_000_000
#: A source is closed within so long, in s.
_CLOSING_S = 5.0
#: Of rows that do not fit so many are shown.
_SAMPLES = 5


@dataclass(slots=True)
class Arrived:
    """A row: its fields, its time and when it came, UTC in us; which of its source's values it is; and its tuple as it was then."""

    fields: Row
    time_us: int
    arrival_us: int
    value: int
    values: tuple[Any, ...]


class Reading:
    """A tuple's source. ``some`` is called when rows wait; ``position``: where it goes on; ``opening``: of several times that it was
    wanted, which this is."""

    def __init__(
        self,
        table: SensorTable,
        number: int,
        values: Sequence[Any],
        opener: Opener,
        some: Callable[[], None],
        position: Position | None = None,
        opening: int = 0,
    ) -> None:
        stream = table.stream
        assert stream is not None
        place = table.place(stream.name)
        assert place is not None
        self._place = place
        self._stream: StreamType | None = None
        self.table, self.number, self.values = table, number, tuple(values)
        self._opener, self._some, self.opening = opener, some, opening
        self._fields = stream.fields
        self._hide: Callable[[str], str] = str
        self.address = address_of(values, place)
        self.state = SourceState(table.name, number, self.address)
        self.waiting: deque[Arrived] = deque()
        #: Bytes of what waits, and of an object.
        self._bytes = self._object_bytes = 0
        self.progress = Progress(self.address, position)
        self._room, self._empty = asyncio.Event(), asyncio.Event()
        self._room.set()
        self.changed, self._stopping = True, False
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Nobody asks for it any more. One that does not close in time is left to itself."""
        self._stopping = True
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_CLOSING_S)

    def become(self, values: Sequence[Any]) -> bool:
        """Its tuple has changed: rows that come from now on have these values. False, and nothing is done: it is to be opened again."""
        reads_tuple = self._stream is not None and self._stream.reads_tuple
        if self._task.done() or reads_tuple or address_of(values, self._place) != self.address:
            return False
        self.values, self.changed = tuple(values), True
        return True

    def take(self, most: int) -> list[Arrived]:
        """So many of the rows that wait, oldest first."""
        found = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        self._bytes -= len(found) * self._bytes // max(1, len(found) + len(self.waiting))
        if self._has_room:
            self._room.set()
        if not self.waiting:
            self._empty.set()
        if found:
            self.progress.taken(found[-1].value, last=not self.waiting)
        return found

    @property
    def _has_room(self) -> bool:
        return len(self.waiting) < WAITING_ROWS and self._bytes < WAITING_BYTES

    @property
    def row_bytes(self) -> int:
        """About so many has a row that waits."""
        return self._bytes // max(1, len(self.waiting))

    def leave_out(self, row: Arrived, why: str) -> None:
        """A row that was taken does not fit after all."""
        self.state.rows -= 1
        self.changed = True
        self._misfit(
            why, dict(zip((field.name for field in self._fields), row.fields, strict=True)), self._hide
        )

    # ---- the source ----

    async def _run(self) -> None:
        pause = AGAIN_S[0]
        while True:
            before = self.state.rows
            opened: Opened | None = None
            try:
                opened = self._opener.made(self._sensor())
                self._hide = opened.hide
                await self._read_through(opened)
                return self._say("ended")
            except AddressError as error:
                return self._say("refused", _hidden(str(error), opened))
            except (OSError, asyncio.IncompleteReadError) as error:
                why = reason(error)
            except asyncio.CancelledError:
                if self._stopping:
                    raise
                why = "what it waited for was cancelled"
            except Exception as error:
                # A type that somebody else wrote is not to take others with it.
                why = f"{type(error).__name__}: {error}"
            if self._stopping:
                # A library may make something else of its being cancelled.
                return None
            if self.state.rows > before:
                pause = AGAIN_S[0]
            self._say("away", f"{_hidden(why, opened)}; tried again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, AGAIN_S[1])

    def _sensor(self) -> Sensor:
        names = [column.name for column in self.table.columns]
        fields = tuple(field.name for field in self._fields)
        timed = next((field for field in self._fields if field.time), None)
        return Sensor(
            self.address, dict(zip(names, self.values, strict=True)), fields,
            timed.name if timed is not None else None, (timed.format if timed is not None else None) or "iso",
            position=self.progress.position, identity=f"{self.table.number}-{self.number}",
        )  # fmt: skip

    async def _read_through(self, opened: Opened) -> None:
        """From its opening to its end. Raises AddressError, OSError."""
        stream, decoder = opened.stream, opened.decoder(self._fields)
        self._stream = stream
        try:
            await called(stream.init, opened.sensor)
            self.progress.opened(stream)
            self._say("open", opened.hide(stream.note))
            await self._ask(stream, decoder, opened.hide)
        finally:
            self._stream = None
            self.progress.closed()
            await closed(stream)

    async def _ask(self, stream: StreamType, decoder: Decoder, hide: Callable[[str], str]) -> None:
        while True:
            found = await called(stream.read)
            if found is Signal.END:
                return
            if found is not Signal.NO_VALUE:
                values = found if isinstance(found, list | tuple) else [found]
                await self._keep_all(values[self.progress.come_again(len(values)) :], decoder, hide)
            self.progress.read_is_over(waiting=bool(self.waiting))
            if stream.note != self.state.why:
                self._say("open", hide(stream.note))
            if stream.in_step and self.waiting:
                self._empty.clear()
                await self._empty.wait()
            if stream.every_s is not None:
                await asyncio.sleep(stream.every_s)

    async def _keep_all(self, values: Sequence[Value], decoder: Decoder, hide: Callable[[str], str]) -> None:
        """A part at a time, so that others have their turn, and as many as there is room for."""
        for begin in range(0, len(values), DECODED_ROWS):
            self._keep(values[begin : begin + DECODED_ROWS], decoder, hide)
            if not self._room.is_set():
                await self._room.wait()
            elif len(values) > DECODED_ROWS:
                await asyncio.sleep(0)

    def _keep(self, values: Sequence[Value], decoder: Decoder, hide: Callable[[str], str]) -> None:
        now = time.time_ns() // 1000
        for value in values:
            number = self.progress.came()
            bare = value.value if isinstance(value, Timed) else value
            try:
                if isinstance(bare, bytes):
                    fields = decoder.line(bare)
                elif type(bare) is dict or isinstance(bare, Mapping):
                    fields = decoder.mapping(bare)
                else:
                    raise TypeError(f"read gave {bare!r:.60}: a value is bytes or a mapping of fields")
            except MisfitError as error:
                self._misfit(error.told(hide), bare, hide)
                continue
            at, clock = now, now
            if isinstance(value, Timed):
                at = microseconds(value.time)
                clock = min(now, microseconds(value.clock)) if value.clock is not None else now
            if decoder.time is not None and fields[decoder.time] is not None:
                at = fields[decoder.time]
            if at > clock + AHEAD_US:
                self.state.ahead += 1
                when = moment_text(datetime.fromtimestamp(at // 1_000_000, UTC))
                self._show(f"its time, {when}, is more than a minute ahead of the clock", bare, hide)
                continue
            self.waiting.append(Arrived(fields, at, now, number, self.values))
            if not isinstance(bare, bytes) and number % _MEASURED == 1:
                self._object_bytes = _size(fields)
            self._bytes += len(bare) if isinstance(bare, bytes) else self._object_bytes
            self.state.rows += 1
        self.state.last, self.changed = now / 1e6, True
        if not self._has_room:
            self._room.clear()
        self._some()

    def _misfit(self, why: str, value: bytes | Mapping[str, Any], hide: Callable[[str], str]) -> None:
        self.state.misfits += 1
        self._show(why, value, hide)

    def _show(self, why: str, value: bytes | Mapping[str, Any], hide: Callable[[str], str]) -> None:
        shown = value[:LOOKED].decode(errors="replace") if isinstance(value, bytes) else str(value)[:LOOKED]
        self.state.sample = [
            *self.state.sample[1 - _SAMPLES :],
            f"{plain(why)}: {plain(hide(shown)[:ROW].strip())}",
        ]

    def _say(self, state: str, why: str = "") -> None:
        self.state.state, self.state.why, self.changed = state, why, True


def _size(fields: Row) -> int:
    """About what it has taken as a text."""
    return sum(
        8 * (len(one) + 1) if isinstance(one, list) else len(one) if isinstance(one, str) else 8
        for one in fields
    )


def _hidden(text: str, opened: Opened | None) -> str:
    return opened.hide(text) if opened is not None else text
