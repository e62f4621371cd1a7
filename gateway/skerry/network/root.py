"""One root mote as the gateway has it: its line, the network behind it, and the rows that it brings."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import Any, Protocol

from construct import Container

from skerry.network.link.link import Link
from skerry.network.network import Common, Network

#: A link that is down for so long, in s, is an alarm.
LOST_S = 10.0
#: So is a root that has told no time for so long, in s, though its line is up.
SILENT_S = 30.0


class Listener(Protocol):
    """Who is told that a root has begun, in the links' thread."""

    def hello(self, root: Root, hello: Container[Any]) -> None:
        """A root has introduced itself."""


class Root:
    """One, whose link is opened once it has a ``listener``."""

    def __init__(self, url: str, common: Common) -> None:
        self.listener: Listener
        self.link = Link(url, lambda hello: self.listener.hello(self, hello))
        self.network = Network(self.link.send, common)
        #: Why nothing that it says counts; None: it does.
        self.refused: str | None = None
        #: When the link was last up (monotonic).
        self._up = time.monotonic()

    @property
    def name(self) -> str:
        """For people."""
        known = f"root {self.network.root}, " if self.network.session else ""
        return f"{known}link {self.link.url}"

    def clash(self, roots: Iterable[Root], hello: Container[Any]) -> str | None:
        """Why the root that says HELLO cannot be told from one of the others that are heard; None: it can."""
        address = hello.node
        for other in roots:
            heard = other is not self and other.network.clock.known and other.link.endpoint.connected
            if heard and other.refused is None and other.network.root == address:
                return (
                    f"the root at link {self.link.url} is mote {address}, as is that at link {other.link.url}: its rows are "
                    "not taken in; give one of them, and the motes behind it, numbers of their own"
                )
        return None

    def renewed(self, hello: Container[Any]) -> str | None:
        """Why nothing that the root says counts until it has begun another session, which it is told to; None: it does."""
        last = self.network.renewed(hello)
        if last is None:
            return None
        return (
            f"the root at link {self.link.url}, mote {hello.node}, says session {hello.session}, and its last one was {last}: its "
            "settings were lost, as when it is flashed again; it was told to begin a new session, and its motes come over by themselves"
        )

    def trouble(self) -> str | None:
        """What keeps its rows away, in a line; None: nothing."""
        if self.refused is not None:
            return self.refused
        now = time.monotonic()
        self.network.reachable = self.link.state == "connected"
        if self.network.reachable:
            self._up = now
        if self.network.clock.silent() >= SILENT_S:
            return (
                f"{self.name} has not told its time for {self.network.clock.silent():.0f} s: nothing begins or ends until it does; "
                "emulated motes may have been paused, or be more than this machine can keep up with"
            )
        if now - self._up < LOST_S:
            return None
        return f"nothing comes from {self.name}: {self.link.state}; what is behind it waits there"

    def status(self) -> dict[str, Any]:
        """Its link and session."""
        link, network = self.link, self.network
        return {
            "root": network.root if network.session else None,
            "link": {
                "url": link.url,
                "state": link.state,
                **dataclasses.asdict(link.endpoint.counters),
                "errors": link.endpoint.line_errors,
                "waiting": link.endpoint.queued,
            },
            "network_time_s": round(network.clock.now(), 1),
            "speed": float(f"{network.clock.speed:.3g}"),
            "session": network.session,
            "query_version": network.query_version,
        }
