"""The thread that has all ports: it waits for any of them, and hands on what came through all of them together.

What several roots bring goes to the disk at once, which takes it as long for many as for one; and no root waits for another one's port.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from skerry.network.link.link import Link, PortError
from skerry.storage.state import StorageError
from skerry_protocol.codec import Packet

log = logging.getLogger(__name__)

#: Longest wait for bytes before timers are looked at, in s.
POLL_S = 0.01
#: Time between two calls of ``on_idle``, in s.
IDLE_S = 0.2
#: Wait before packets that could not be stored are tried again, in s.
STORE_AGAIN_S = 1.0


class Links:
    """``on_packets`` is called with the packets of links, by their place among ``links``, and returns once they are durable: only then
    are they acknowledged. When it raises StorageError they are held and tried again. ``on_read`` is called before, once whatever has come
    for all links was read; ``on_idle`` a few times a second; both do not raise."""

    def __init__(
        self,
        links: Sequence[Link],
        on_packets: Callable[[Sequence[tuple[int, list[Packet]]]], None],
        on_read: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        self._links, self._on_packets = tuple(links), on_packets
        self._on_read, self._on_idle = on_read, on_idle
        # ``select`` refuses files beyond the first 1,024, and among thousands of readers a port may be one of those.
        self._poll = select.poll()
        #: By file: whose port it is.
        self._ports: dict[int, Link] = {}
        self._store_at = self._idle_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="links", daemon=True)

    def open(self) -> None:
        """Open the ports. Raises PortError when none can be opened; others that cannot are tried again once this is started."""
        errors = []
        for link in self._links:
            try:
                link.open()
            except PortError as error:
                errors.append(error)
        if errors and len(errors) == len(self._links):
            raise errors[0]
        for failed in errors:
            log.warning("%s; it is tried again", failed)

    def start(self) -> None:
        """Begin; a port that is not open is tried again and again."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and close the ports."""
        self._stop.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)
        for link in self._links:
            link.close()

    def take(self, data: Sequence[bytes]) -> None:
        """In place of the thread: what has come for each link, nothing included. To be called many times a second, as timers are looked
        at, too."""
        for link, came in zip(self._links, data, strict=True):
            link.feed(came)
        self._on_read()
        self._store()
        for link in self._links:
            link.go_on()
        self._look()

    def _run(self) -> None:
        for link in self._links:
            self._watch(link)
        while not self._stop.is_set():
            for file, _ in self._poll.poll(1000 * POLL_S):
                self._read(self._ports[file])
            self._on_read()
            self._store()
            for link in self._links:
                self._go_on(link)
            self._look()

    def _watch(self, link: Link) -> None:
        if link.file is None:
            link.lose(OSError("it could not be opened"))
        else:
            self._ports[link.file] = link
            self._poll.register(link.file, select.POLLIN)

    def _read(self, link: Link) -> None:
        try:
            link.feed(link.read())
        except OSError as error:
            self._lose(link, error)

    def _go_on(self, link: Link) -> None:
        if link.file is None:
            if not link.found_again():
                return
            self._watch(link)
        try:
            link.go_on()
        except OSError as error:
            self._lose(link, error)

    def _lose(self, link: Link, error: OSError) -> None:
        assert link.file is not None
        self._poll.unregister(link.file)
        del self._ports[link.file]
        link.lose(error)

    def _store(self) -> None:
        """Hand on what is held. What a lost line leaves comes again when it is back."""
        if time.monotonic() < self._store_at:
            return
        whose = [place for place, link in enumerate(self._links) if link.held and link.endpoint.connected]
        if not whose:
            return
        try:
            self._hand_on(whose)
        except StorageError:
            self._store_at = time.monotonic() + STORE_AGAIN_S
        except Exception:
            log.exception("what roots sent could not be taken in; it is tried again")
            self._store_at = time.monotonic() + STORE_AGAIN_S
            # A fault of the gateway's that one root's packets bring out is not the others' concern.
            for place in whose if len(whose) > 1 else ():
                with suppress(Exception):
                    self._hand_on([place])

    def _hand_on(self, places: Sequence[int]) -> None:
        self._on_packets([(place, self._links[place].held) for place in places])
        for place in places:
            self._links[place].held.clear()

    def _look(self) -> None:
        if time.monotonic() >= self._idle_at:
            self._idle_at = time.monotonic() + IDLE_S
            self._on_idle()
