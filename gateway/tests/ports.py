"""TCP ports for tests whose processes come and go."""

from __future__ import annotations

import random
import socket

#: Below those that systems give to whoever asks for any port: one that is free stays so while its process starts, or starts again.
_PORTS = range(10_000, 30_000)


def free_port() -> int:
    """A port on which nobody listens."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
