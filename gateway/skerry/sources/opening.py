"""From an address to an object of its type: what there is, what the operator allows, and what stands for secrets."""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skerry.sensors.definitions import Field
from skerry.sources.addresses import wrong
from skerry.sources.decoding import FORMATS, Decoder
from skerry.sources.secrets import filled
from skerry.sources.stream_type import AddressError, Sensor, StreamType
from skerry.sql.errors import did_you_mean

log = logging.getLogger(__name__)

#: Threads that plain methods of one type run in: those of another one are not waited for.
THREADS = 32
_threads: dict[type, ThreadPoolExecutor] = {}
#: Threads in which one runs now.
_running: set[int] = set()


@dataclass(frozen=True, slots=True)
class Opened:
    """An object of a type that is to be opened for ``sensor``, whose address has its secrets; ``hide`` takes them out of a text."""

    stream: StreamType
    sensor: Sensor
    hide: Callable[[str], str]

    def decoder(self, fields: Sequence[Field]) -> Decoder:
        """For what it brings. Raises AddressError: the address says no format that there is."""
        form, own = self.sensor.options.get("format", "json"), self.stream.own_formats
        if form not in own and form not in FORMATS:
            *some, last = [*FORMATS, *sorted(own)]
            raise AddressError(f"format={form}: a format is {', '.join(some)} or {last}")
        return Decoder(fields, "json" if form in own else form)


@dataclass(frozen=True, slots=True)
class Opener:
    """``types``: by scheme. ``allowed``: what addresses may open; None: anything. ``folder``, ``secrets``: where files and those are."""

    types: Mapping[str, type[StreamType]]
    folder: Path
    allowed: Sequence[str] | None
    secrets: Path

    def made(self, sensor: Sensor) -> Opened:
        """Nothing is opened yet. Raises AddressError, which tells no secret."""
        filling = filled(sensor.address, self.secrets)
        try:
            identity = f"{socket.gethostname()}:{self.folder}:{sensor.identity}"
            own = replace(sensor, address=filling.address, folder=self.folder, identity=identity)
            return Opened(self._object(own), own, filling.hide)
        except AddressError as error:
            raise AddressError(filling.hide(str(error))) from None

    def _object(self, sensor: Sensor) -> StreamType:
        said = wrong(sensor.address, self.types, self.allowed, self.folder)
        if said is not None:
            raise AddressError(said)
        scheme = sensor.url.scheme.lower()
        kind = self.types[scheme]
        unknown = sensor.options.keys() - kind.options if kind.options is not None else set()
        if unknown and kind.options is not None:
            has = ", ".join(sorted(kind.options)) or "none"
            guess = did_you_mean(min(unknown), sorted(kind.options))
            raise AddressError(f"option '{min(unknown)}' is none of {scheme}'s: {guess}there are {has}")
        return kind()


async def called(method: Callable[..., Any], *arguments: Any) -> Any:
    """An ``async`` method of a type in the loop, a plain one in a thread of that type's."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    kind = type(getattr(method, "__self__", None))
    if kind not in _threads:
        _threads[kind] = ThreadPoolExecutor(THREADS, kind.__name__)
    found = await asyncio.get_running_loop().run_in_executor(_threads[kind], _plain, method, *arguments)
    # As of a method that something was wrapped around.
    return await found if inspect.isawaitable(found) else found


def still_running() -> bool:
    """Whether a plain method has not returned: Python ends no thread, and does not end before it."""
    return bool(_running)


def _plain(method: Callable[..., Any], *arguments: Any) -> Any:
    _running.add(threading.get_ident())
    try:
        return method(*arguments)
    except (StopIteration, SystemExit) as error:
        # The loop takes neither from a thread: who waits for it would do so for ever, or nobody would be left.
        raise RuntimeError(
            f"{method.__name__} raised {type(error).__name__}: what has ended returns Signal.END"
        ) from None
    finally:
        _running.discard(threading.get_ident())


async def closed(stream: StreamType) -> None:
    """Close one. Where that fails, as it does of one that was opened in part, why it was closed is what is to be told."""
    try:
        await called(stream.close)
    except Exception as error:
        log.debug("%s could not be closed: %s", type(stream).__name__, type(error).__name__)


def reason(error: Exception) -> str:
    """Why a source is away."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename is not None else error.strerror
    if any(isinstance(one, ConnectionRefusedError) for one in _causes(error)):
        return "nobody listens there"
    return str(error) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What it was raised from, as libraries for the web wrap it."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
