"""The gateway as a process on a real TCP port, for tests: started, asked, killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.ports import free_port
from skerry.client.operator import Operator
from skerry.storage import operator_key
from skerry_protocol import codec
from skerry_protocol.codes import PacketType

#: What most tests ask.
SQL = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s"
COMMAND = str(Path(sys.executable).parent / "skerry")


class Daemon:
    """A gateway process that can be killed and started again on the same data. ``users``: who may ask, of one that asks for tokens."""

    def __init__(self, link: str, data: Path, *more: str, users: tuple[str, ...] = ()) -> None:
        self.links, self.data, self.port, self._users = (link, *more), data, free_port(), users
        #: By the names of users, once they have been added.
        self.tokens: dict[str, str] = {}
        #: Its standard error.
        self.log = data.parent / f"{data.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        #: What is started, and where.
        self.command: tuple[str, ...] = (COMMAND,)
        #: Of every start.
        self.options: tuple[str, ...] = ()
        self.folder: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *options: str) -> None:
        """Start it, with further options; returns when it answers and has heard the first root."""
        self.launch(*options)
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self.port)) == 0)
        if self._users and not self.tokens:
            wait_for(self._is_there)
            self.tokens.update(self.operator().add_users(*self._users)["tokens"])
        wait_for(lambda: self.client().status()["link"]["state"] == "connected")

    def _is_there(self) -> bool:
        """It is a moment later than somebody listens."""
        if not (self.data / operator_key.FILE).exists():
            return False
        try:
            return self.operator().users() == []
        except skerry.GatewayError:
            return False

    def operator(self) -> Operator:
        """A client of who runs it."""
        return Operator(self.url, operator_key.read(self.data))

    def launch(self, *options: str) -> None:
        """The same without waiting for it."""
        arguments = [part for link in self.links for part in ("--link", link)]
        arguments += ["--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "gateway", *arguments, *self.options, *options],
                stderr=log,
                cwd=self.folder,
            )

    def client(self, user: str | None = None) -> skerry.Client:
        """A client for a user; where it asks for tokens and none is said, for the first one."""
        return skerry.connect(self.url, user=user, token=self.token_of(user))

    def token_of(self, user: str | None) -> str | None:
        """None where it asks for no tokens."""
        return self.tokens[user or self._users[0]] if self.tokens else None

    def started(self) -> list[int]:
        """Process ids of all that it, or one that it started, has started."""
        assert self.process is not None
        return started_by(self.process.pid)

    @property
    def driver(self) -> int:
        """Process id of its Spark driver."""
        [found] = [pid for pid in self.started() if "skerry.spark.driver" in said(pid, "cmdline")]
        return found

    def child(self, name: str) -> int:
        """Process id of the one of these that has this name."""
        [found] = [pid for pid in self.started() if said(pid, "comm").strip() == name]
        return found

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(120)


def started_by(pid: int) -> list[int]:
    """All processes behind one."""
    children = [
        int(child) for thread in _threads(pid) for child in said(pid, f"task/{thread}/children").split()
    ]
    return [*children, *(later for child in children for later in started_by(child))]


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def said(pid: int, what: str) -> str:
    """What the system says of a process; of one that has ended meanwhile nothing."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_for(condition: Any, limit_s: float = 600) -> None:
    """Until it holds. Who asks a gateway that starts takes time from it: so seldom that it is late by a fiftieth of the wait."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < limit_s, "waited in vain"
        time.sleep(min(0.05 + waited / 50, 0.25))


def ask(peer: RootPeer, daemon: Daemon) -> tuple[skerry.Rows, int, bytes]:
    """Ada's query, and the number and program the motes have got for it."""
    asked = daemon.client("ada").query(SQL)
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    return asked, query, program


def queue_rows(peer: RootPeer, query: int, epochs: range, program: bytes, motes: range = range(1, 4)) -> None:
    """A row of each mote and epoch, of one column: 20 °C, and 0.1 °C more for each epoch, 0.01 °C for each number."""
    fields = codec.decode_program(program).fields
    assert len(fields) == 1, "one column is asked for"
    for epoch in epochs:
        for node in motes:
            packet = codec.encode(
                PacketType.RESULT,
                query=query,
                node=node,
                epoch=epoch,
                nulls=0,
                values=struct.pack("<h", 2000 + epoch * 10 + node),
            )
            peer.waiting.append(packet)
