"""TCP servers that many sources listen to: lines go to one of the listeners at a time, or nothing ever does."""

from __future__ import annotations

import random
import socket
import threading


class Talker:
    """One port, of which each connection is a source."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._lock = threading.Lock()
        self._clients: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """For a tuple."""
        return f"tcp://127.0.0.1:{self._server.getsockname()[1]}?format=json"

    @property
    def listeners(self) -> int:
        """Connections; those that have been closed are looked for now."""
        with self._lock:
            self._clients = [client for client in self._clients if _is_open(client)]
            return len(self._clients)

    def send(self, line: bytes, chance: random.Random) -> None:
        """To one of them."""
        with self._lock:
            chance.choice(self._clients).sendall(line)

    def close(self) -> None:
        """Of all."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for client in self._clients:
            client.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                self._clients.append(client)


def _is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
