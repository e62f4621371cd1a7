"""A gateway in this process that listens to its roots but has no Spark: for tests of what it remembers, not of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.service.gateway import Gateway
from skerry.sources.addresses import DEFAULT


@contextmanager
def opened(
    peers: RootPeer | Sequence[RootPeer], data: Path, sources: Sequence[str] = DEFAULT
) -> Iterator[Gateway]:
    """One on a data directory, which has heard the first root; it is closed in order. ``sources``: what may be opened."""
    peers = [peers] if isinstance(peers, RootPeer) else peers
    gateway = Gateway([peer.url for peer in peers], data, sources=sources)
    try:
        gateway.links.open()
        gateway.links.start()
        if peers:
            wait_for(lambda: gateway.site.status()["link"]["state"] == "connected")
        yield gateway
    finally:
        gateway.close()
