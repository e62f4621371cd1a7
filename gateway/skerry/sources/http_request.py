"""What addresses of web sources say of requests: ``header.NAME=…`` is one of its headers, what is not the type's own goes to the server."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection
from urllib.parse import urlencode

import httpx

from skerry.sources.certificates import distrust
from skerry.sources.stream_type import AddressError, Sensor

# Addresses with their secrets are nobody's to read, whatever a program wants to know otherwise.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)

_HEADER = "header."
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
#: An answer is not longer than so many bytes, and has come in so long, in s.
_MOST_BYTES, _WHOLE_S = 64 << 20, 120.0


def request(sensor: Sensor, own: Collection[str], scheme: str) -> tuple[str, dict[str, str]]:
    """The URL and headers of an address, ``own``: names of options that the type reads itself. Raises AddressError."""
    headers, rest = dict[str, str](), dict[str, str]()
    for name, value in sensor.options.items():
        if name.startswith(_HEADER):
            if not value.isascii() or not value.isprintable() or value != value.strip():
                raise AddressError(
                    f"{name}: a header is of printable ASCII, with no space before or behind it"
                )
            if not _NAME.fullmatch(own_name := name.removeprefix(_HEADER)):
                raise AddressError(
                    f"{name}: a header's name has letters, digits and -, as in header.Authorization"
                )
            headers[own_name] = value
        elif name not in own:
            rest[name] = value
    url = sensor.url._replace(scheme=scheme, query=urlencode(rest), fragment="").geturl()
    try:
        if not httpx.URL(url).host:
            raise AddressError(
                f"'{sensor.address}' names no host: write {sensor.url.scheme}://host:port/path"
            )
        httpx.Headers(headers)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise AddressError(f"'{sensor.address}': {error}") from None
    return url, headers


async def whole(answer: httpx.Response) -> bytes:
    """What an answer says. Raises ConnectionError: it is too long, or takes too long."""
    found = bytearray()
    try:
        async with asyncio.timeout(_WHOLE_S):
            async for part in answer.aiter_bytes():
                found += part
                if len(found) > _MOST_BYTES:
                    raise ConnectionError(f"its answer has more than {_MOST_BYTES >> 20} MB")
    except TimeoutError:
        raise ConnectionError(f"its answer does not end in {_WHOLE_S:g} s") from None
    return bytes(found)


def refused(answer: httpx.Response) -> ConnectionError:
    """What is told of an answer that is none."""
    said = f"it answers {answer.status_code} {answer.reason_phrase}".rstrip()
    place = answer.headers.get("Location")
    if answer.is_redirect and place:
        # Another host is not asked because this one says so.
        said += f" and names {place}, which is not asked: write that address where it is right"
    return ConnectionError(said)


def why(error: Exception, url: str) -> OSError:
    """A request that failed, as sources tell it."""
    if isinstance(error, httpx.TimeoutException):
        return TimeoutError()
    said, seen = distrust(error, httpx.URL(url).host) or str(error), error.__cause__ or error.__context__
    while not said and seen is not None:
        # Some of them say nothing but by what they were raised from.
        said = (seen.strerror if isinstance(seen, OSError) else None) or str(seen)
        seen = seen.__cause__ or seen.__context__
    return ConnectionError(said or type(error).__name__)
