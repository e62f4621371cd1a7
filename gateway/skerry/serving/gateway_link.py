"""A worker's connection to its gateway: news that come one after the other, and what it reports."""

from __future__ import annotations

import json
import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import httpx

from skerry.api.operator import KEY_HEADER

log = logging.getLogger(__name__)

#: A gateway that has said nothing for so long, in s, is away: it speaks each 2 s.
SILENT_S = 10.0
#: From a lost connection to the next one, in s.
_AGAIN_S = 0.5
#: The gateway hears so often that this process is there, in s, and within so long of feeds that were closed.
_BEAT_S, _REPORT_S = 5.0, 0.1


class LinkError(RuntimeError):
    """The gateway does not take this process for a worker of its own; one line."""


class GatewayLink:
    """Runs in threads of its own. ``options``: of :class:`httpx.Client`, the gateway's address among them; ``readers``: asked when it
    connects, open feeds by query; ``news``: gets each piece, in order; ``lost``: the connection is."""

    def __init__(
        self,
        options: dict[str, Any],
        key: str,
        name: str,
        readers: Callable[[], dict[str, int]],
        news: Callable[[dict[str, Any]], object],
        lost: Callable[[], object],
    ) -> None:
        self.options = {**options, "headers": {KEY_HEADER: key}}
        self._name, self._readers, self._news, self._lost = name, readers, news, lost
        self._http = httpx.Client(**self.options, timeout=httpx.Timeout(10, read=SILENT_S))
        #: This worker's number at the gateway while it is connected.
        self.number: int | None = None
        self.away_since = time.monotonic()
        self._closed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._begun = threading.Event()
        self._trouble: LinkError | None = None
        self._threads = [
            threading.Thread(target=self._listen, name="news", daemon=True),
            threading.Thread(target=self._report, name="reports", daemon=True),
        ]

    def start(self) -> None:
        """Begin to connect."""
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> None:
        """Until it is connected. Raises LinkError: it will not be, or not within this time."""
        if not self._begun.wait(seconds):
            raise LinkError(f"no gateway at {self._http.base_url} that answers")
        if self._trouble is not None:
            raise self._trouble

    def stop(self) -> None:
        """End; the gateway notices."""
        self._stopping.set()

    @property
    def away_s(self) -> float:
        """For how long the gateway has been away."""
        return 0.0 if self.number is not None else time.monotonic() - self.away_since

    def closed(self, query: str) -> None:
        """A feed has ended."""
        self._closed.put(query)

    def forget_closed(self) -> None:
        """What has ended is in what :attr:`readers` says now."""
        while not self._closed.empty():
            self._closed.get_nowait()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                self._converse()
                log.info("the gateway has ended the connection")
            except LinkError as error:
                if self._begun.is_set():
                    log.error("%s", error)
                else:
                    # Whoever waits for the first connection says so.
                    self._trouble = error
                    self._begun.set()
                    return
            except httpx.HTTPError as error:
                log.info("the gateway is away: %s", error or type(error).__name__)
            except Exception:
                log.exception("news of the gateway could not be taken; the connection begins anew")
            if self.number is not None:
                self.number, self.away_since = None, time.monotonic()
            self._lost()
            self._stopping.wait(_AGAIN_S)

    def _converse(self) -> None:
        described = {
            "name": self._name, "host": socket.gethostname(), "pid": os.getpid(), "version": version("skerry"), "readers": self._readers(),
        }  # fmt: skip
        with self._http.stream("POST", "/workers", json=described) as answer:
            if answer.status_code != 200:
                answer.read()
                self._refused(answer)
            for line in answer.iter_lines():
                if self._stopping.is_set():
                    return
                if line:
                    self._take(json.loads(line))

    def _refused(self, answer: httpx.Response) -> None:
        if answer.status_code in (502, 503, 504):
            raise httpx.TransportError(f"HTTP {answer.status_code}")
        try:
            said = answer.json()["message"]
        except (ValueError, LookupError, TypeError):
            said = f"HTTP {answer.status_code}: is a gateway of this skerry there?"
        raise LinkError(f"{self._http.base_url}: {said}")

    def _take(self, news: dict[str, Any]) -> None:
        self._news(news)
        if "worker" in news:
            self.number = news["worker"]
            self._begun.set()

    def _report(self) -> None:
        with httpx.Client(**self.options, timeout=10) as http:
            reported = 0.0
            while not self._stopping.wait(_REPORT_S):
                number, closed = self.number, list[str]()
                while not self._closed.empty():
                    closed.append(self._closed.get_nowait())
                if number is None or not (closed or time.monotonic() - reported > _BEAT_S):
                    for query in closed:
                        self._closed.put(query)
                    continue
                try:
                    # A gateway that does not know this number any more has dropped all readers of it.
                    http.post(f"/workers/{number}", json={"closed": closed})
                    reported = time.monotonic()
                except httpx.HTTPError as error:
                    log.info("not reported: %s", error)
                    for query in closed:
                        self._closed.put(query)
