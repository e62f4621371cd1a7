"""A gateway as a process: what is started here ends with its ``with``, however that ends."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon


@contextmanager
def gateway_over(link: str) -> Iterator[Daemon]:
    """A gateway for a root's line, in a folder of its own; it has not been started yet."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        daemon = Daemon(link, Path(directory) / "data")
        try:
            yield daemon
        finally:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.kill(signal.SIGTERM)


@contextmanager
def gateway_and_root() -> Iterator[tuple[Daemon, RootPeer]]:
    """The same over a root that is played."""
    root = RootPeer()
    try:
        with gateway_over(root.url) as daemon:
            yield daemon, root
    finally:
        root.close()
