"""PySpark's daemon, whose workers are prompt: they acknowledge at once what Spark sends them, and are soon ready for the next task.

Spark sends a task in several small pieces and, as it leaves Nagle's algorithm on, each waits for the acknowledgement of the one before.
Linux keeps that back for up to 40 ms on a connection that answers are sent through, so that each batch waited for as long. A socket is
asked for quick acknowledgements before each read, since answers end them (tcp(7), TCP_QUICKACK).

After each task PySpark collects garbage. With all that Arrow and pandas bring that took 50 ms, for which the next task waited where batches
follow each other: what is there after the first task is left out from then on.

In place of ``pyspark.daemon`` by ``spark.python.daemon.module``, which calls :func:`worker` in each process that it forks.
"""

import gc
import io
import os
import socket
from collections.abc import Callable

from pyspark import daemon

_worker: Callable[[socket.socket, bool], int] = daemon.worker
#: The socket option; None: this system has none.
QUICK: int | None = getattr(socket, "TCP_QUICKACK", None)


class PromptFile(io.FileIO):
    """What is read from a TCP connection, of which ``descriptor`` is a duplicate."""

    def __init__(self, descriptor: int, connection: socket.socket) -> None:
        super().__init__(descriptor, "rb")
        self._connection = connection

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        """As a file's; None: nothing is there and the connection does not wait."""
        if QUICK is not None:
            self._connection.setsockopt(socket.IPPROTO_TCP, QUICK, 1)
        return super().readinto(buffer)


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve one connection in a process of its own, until it is closed; returns the exit code."""
    plain = os.fdopen

    def first(descriptor: int, mode: str, size: int) -> io.BufferedReader:
        """What PySpark opens first is what it reads from."""
        os.fdopen = plain
        assert mode == "rb", mode
        return io.BufferedReader(PromptFile(descriptor, sock), size)

    if sock.family in (socket.AF_INET, socket.AF_INET6):
        os.fdopen = first  # type: ignore[assignment]
    code = _worker(sock, authenticated)
    if not code and not gc.get_freeze_count():
        gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
