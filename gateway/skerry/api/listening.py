"""Where the API listens, and to how many."""

from __future__ import annotations

import fcntl
import resource
import socket
from typing import Any

from skerry.api.access import is_loopback, split_address

#: Files that the process may have open: asked of the system, as far as it allows. Each connection is one.
FILES = 65_536
#: The first one that is a connection, where there may be so many. Those below are left for the log, and for Spark, which goes through
#: ``select``, which knows no further ones: thousands of readers may be back before Spark is.
FIRST = 1024
#: Connections that wait for the server, which takes a while to start.
_BACKLOG = 2048


def connections() -> int:
    """How many there may be at once: more than that are answered 503, so that users cannot take the files that rows are stored in.

    A shell's usual limit of 1,024 open files is raised as far as may be.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = FILES if soft == resource.RLIM_INFINITY else soft
    return max(files - FIRST, files // 2)


class Listening(socket.socket):
    """A socket whose connections are files from :data:`FIRST` on."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. Raises OSError."""
        connection, address = super().accept()
        try:
            moved = fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, FIRST)
        except OSError:
            # No file may have such a number here, or all of those are taken.
            return connection, address
        connection.close()
        return socket.socket(self.family, self.type, self.proto, fileno=moved), address


def reaches_others(listen: str) -> bool:
    """Whether others than this machine's users come to ``host:port``. Raises ValueError, OSError."""
    return not all(is_loopback(str(info[4][0])) for info in _found(listen))


def _found(listen: str) -> list[Any]:
    host, port = split_address(listen)
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--listen {listen}: expected HOST:PORT, as in 127.0.0.1:8642 or [::1]:8642")
    try:
        return socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(f"--listen {listen}: {error.strerror}") from None


def bind(listen: str, *, shared: bool = False) -> Listening:
    """The socket to listen on, at ``host:port``. ``shared``: with others that say so, over which the system shares connections out. Raises
    ValueError, OSError."""
    found = _found(listen)
    # Without its protocol, asyncio would leave Nagle's algorithm on: each answer but the first would wait 40 ms for an acknowledgement.
    bound = Listening(*found[0][:3])
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind(found[0][4])
        # Until somebody listens, others may bind to it as well, and a gateway that starts at the same time would.
        bound.listen(_BACKLOG)
    except OSError as error:
        raise OSError(f"--listen {listen}: {error.strerror}") from None
    return bound
