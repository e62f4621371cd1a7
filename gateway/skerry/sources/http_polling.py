"""What a web page says now, asked again and again: ``http://host/now?every=2s``, also ``https``.

An answer is an object, a list of objects, or with ``format=csv`` lines. Other options of the address are the server's. One that says that
nothing is new (304) brings nothing. What was there between two questions is not seen.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, ClassVar

import httpx
import msgspec

from skerry.sources import certificates, http_request
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType
from skerry.sql.units import time_of

#: Where nothing is said, in s.
EVERY_S = 10.0
_OWN = frozenset({"every", "format"})
_ANSWER_S = 30.0


class HttpPolling(StreamType):
    """Asks by itself, so many s apart."""

    #: Any: what is not its own goes to the server.
    options: ClassVar[frozenset[str] | None] = None
    reads_tuple: ClassVar[bool] = False

    async def init(self, sensor: Sensor) -> None:
        """Nothing is asked yet."""
        options = sensor.options
        self.every_s = seconds(options.get("every", f"{EVERY_S}s"))
        self._is_csv = options.get("format", "json") == "csv"
        self._url, self._headers = http_request.request(sensor, _OWN, sensor.url.scheme.lower())
        self._json = msgspec.json.Decoder(float_hook=Decimal)
        self._tag = ""
        self._client = httpx.AsyncClient(
            timeout=_ANSWER_S, trust_env=False, verify=certificates.verifying(self._url)
        )

    async def read(self) -> Read:
        """What the page says now. ConnectionError: it cannot be had."""
        try:
            tag = {"If-None-Match": self._tag} if self._tag else {}
            async with self._client.stream("GET", self._url, headers={**self._headers, **tag}) as answer:
                if answer.status_code == 304:
                    return Signal.NO_VALUE
                if not answer.is_success:
                    raise http_request.refused(answer)
                content = await http_request.whole(answer)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise http_request.why(error, self._url) from None
        self._tag = answer.headers.get("ETag", "")
        if self._is_csv:
            return [line for line in content.splitlines() if line.strip()] or Signal.NO_VALUE
        return self._objects(content)

    def _objects(self, content: bytes) -> Read:
        try:
            found: Any = self._json.decode(content)
        except (msgspec.DecodeError, ValueError, ArithmeticError, RecursionError):
            # As a line that is no JSON: counted, and shown.
            return content
        if not isinstance(found, list):
            # What is no object does not fit.
            return found if isinstance(found, dict) else content
        values = [one if isinstance(one, dict) else msgspec.json.encode(one) for one in found]
        return values or Signal.NO_VALUE

    async def close(self) -> None:
        """Hang up."""
        client = getattr(self, "_client", None)
        if client is not None:
            await client.aclose()


#: Times in addresses, in s.
_LEAST_S, _MOST_S = 0.01, 366 * 86_400


def seconds(text: str, option: str = "every") -> float:
    """``2s``, ``500 ms``, ``1 min``. Raises AddressError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = time_of(match[2] or "s") if match is not None else None
    if match is None or unit is None or not _LEAST_S <= float(match[1]) * unit / 1000 <= _MOST_S:
        raise AddressError(f"{option}={text}: write a time from 10 ms to 366 days, as in {option}=2s")
    return float(match[1]) * unit / 1000
