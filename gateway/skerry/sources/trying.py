"""A look at what an address brings, for who has no table for it yet: opened as the gateway would, for some seconds, and closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from skerry.sources.opening import Opener, called, closed, reason
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType, Value, types


def look(
    address: str, data: Path, secrets: Path, limit_s: float, most: int, show: Callable[[Value], None]
) -> list[Value]:
    """What comes in so many s, so many values at most; each is shown when it comes. ``data``: the folder of files. Raises AddressError for
    an address that cannot be right, OSError where nothing is there: in one line that tells no secret."""
    return asyncio.run(_look(Opener(types(), data, None, secrets), address, limit_s, most, show))


async def _look(
    opener: Opener, address: str, limit_s: float, most: int, show: Callable[[Value], None]
) -> list[Value]:
    opened = opener.made(Sensor(address, {}, (), trial=True))
    stream, found = opened.stream, list[Value]()
    until = time.monotonic() + limit_s
    try:
        opened.decoder(())
        async with asyncio.timeout(limit_s):
            await called(stream.init, opened.sensor)
        while len(found) < most and time.monotonic() < until:
            values = await _read(stream, until - time.monotonic())
            if values is Signal.END or values is None:
                break
            if not isinstance(values, Signal):
                some: Sequence[Value] = values if isinstance(values, list | tuple) else [cast(Value, values)]
                for value in some[: most - len(found)]:
                    found.append(value)
                    show(value)
            if stream.every_s is not None:
                await asyncio.sleep(min(stream.every_s, max(0.0, until - time.monotonic())))
    except AddressError as error:
        raise AddressError(opened.hide(str(error))) from None
    except Exception as error:
        if not found:
            raise ConnectionError(opened.hide(reason(error))) from None
    finally:
        await closed(stream)
    return found


async def _read(stream: StreamType, limit_s: float) -> Read | None:
    """None: nothing came in time."""
    try:
        async with asyncio.timeout(limit_s):
            found: Read = await called(stream.read)
            return found
    except TimeoutError:
        return None
