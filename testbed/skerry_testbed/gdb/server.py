"""TCP ports at which GDB attaches to motes. While a mote is stopped, virtual time stands still, for all motes."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable

from skerry_testbed import built
from skerry_testbed.core import DebuggedMote, Stop
from skerry_testbed.errors import TestbedError
from skerry_testbed.gdb.packets import INTERRUPT, NoPacketError, Reader, packet
from skerry_testbed.gdb.session import Session, output
from skerry_testbed.runner import Testbed, image_of

#: s between two looks at whether the run is to end, while time stands still.
LOOK_S = 0.1
#: s after which a GDB that takes no more bytes is given up.
SEND_LIMIT_S = 2.0
#: GDB as Debian has it, by board.
GDB = {"iris": f"avr-gdb -x {built.FILES / 'debugger' / 'avr_frames.py'}", "cc2538": "gdb-multiarch"}


class Debuggers:
    """Of the motes that somebody named. Each waits for its debugger, and time with it, before the run begins; later ones come and go."""

    def __init__(
        self,
        bed: Testbed,
        ports: Iterable[tuple[int, int]],
        ended: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        """``ports``: motes' ids, and a TCP port for each, 0 for any free one. ``ended``: whether the run is to end, even while a mote is
        stopped. Raises TestbedError."""
        self._bed, self._ended, self.tell = bed, ended, tell
        self.selector = selectors.DefaultSelector()
        self._motes: dict[int, _MotePort] = {}
        try:
            for node, port in ports:
                self._add(node, port)
        except TestbedError:
            self.close()
            raise
        bed.world.on_stop(self._stopped)

    def _add(self, node: int, port: int) -> None:
        if node not in self._bed.index:
            known = ", ".join(str(mote.id) for mote in self._bed.motes)
            raise TestbedError(f"--gdb {node}:{port}: no mote {node}; the network has {known}")
        index = self._bed.index[node]
        if index in self._motes:
            raise TestbedError(f"--gdb {node}:{port}: mote {node} has port {self._motes[index].port} already")
        self._motes[index] = _MotePort(self, self._bed, index, port)

    @property
    def ports(self) -> dict[int, int]:
        """Of each mote that can be attached to, by its id."""
        return {mote.node: mote.port for mote in self._motes.values()}

    def announce(self) -> None:
        """Say how to attach, and that the run waits for it."""
        for mote in self._motes.values():
            self.tell(f"mote {mote.node} waits for a debugger: {mote.how}")

    def stopped(self) -> list[int]:
        """Ids of the motes that are stopped, or wait for their first debugger."""
        return [mote.node for mote in self._motes.values() if mote.stopped]

    def poll(self) -> None:
        """Take what debuggers have sent; return when no mote is stopped (any more)."""
        self._serve(0)
        for mote in self._motes.values():
            mote.watch_power()
        self.hold()

    def hold(self) -> None:
        """While a mote is stopped, do what debuggers ask for. When the run is to end, all motes go on without."""
        began = time.monotonic()
        while self.stopped() and not self._ended():
            self._serve(LOOK_S)
        for mote in self._motes.values():
            if mote.stopped:
                mote.leave()
        self._bed.held_s += time.monotonic() - began

    def _stopped(self, index: int, reason: Stop, address: int) -> None:
        self._motes[index].stop(reason, address)
        self.hold()

    def _serve(self, timeout: float) -> None:
        for key, _ in self.selector.select(timeout):
            # One that an earlier one of them has closed is no more.
            if self.selector.get_map().get(key.fd) == key:
                key.data()

    def close(self) -> None:
        """The run is over: tell debuggers that wait, and close all ports."""
        for mote in self._motes.values():
            mote.close()
        self.selector.close()


class _MotePort:
    """One mote's port, and the debugger that is attached there."""

    def __init__(self, all_of_them: Debuggers, bed: Testbed, index: int, port: int) -> None:
        self._all, self._bed, self._index = all_of_them, bed, index
        self.node = bed.motes[index].id
        #: Time is not to go on.
        self.stopped = True
        self._powered = self._was_powered = False
        self._client: socket.socket | None = None
        self._reader = Reader()
        self._mote: DebuggedMote | None = None
        self._session: Session | None = None
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._server.bind(("127.0.0.1", port))
            self._server.listen(1)
        except OSError as error:
            self._server.close()
            raise TestbedError(
                f"--gdb {self.node}:{port}: port {port}: {error.strerror}; choose another"
            ) from None
        self._server.setblocking(False)
        self.port: int = self._server.getsockname()[1]
        all_of_them.selector.register(self._server, selectors.EVENT_READ, self._accept)

    @property
    def how(self) -> str:
        """What to type to attach."""
        mote = self._bed.motes[self._index]
        return (
            f"{GDB[mote.board]} -ex 'target remote 127.0.0.1:{self.port}' {image_of(self._bed.network, mote)}"
        )

    def status(self) -> str:
        """One line."""
        fault = self._bed.world.fault(self._index)
        powered = self._bed.world.powered(self._index)
        how = (
            "it has no power" if not powered else f"its CPU has stopped: {fault}" if fault else "it has power"
        )
        return f"mote {self.node} ({self._bed.motes[self._index].board}) at {self._bed.now_s:.6f} s: {how}"

    # ---- the debugger comes and goes ----
    def _accept(self) -> None:
        try:
            client, _ = self._server.accept()
        except OSError:  # it has gone again
            return
        client.settimeout(SEND_LIMIT_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._client is not None:
            self._turn_away(client)
            return
        self._client, self._reader = client, Reader()
        self._all.selector.register(client, selectors.EVENT_READ, self._receive)
        self._mote = self._bed.world.debug(self._index)
        self._session = Session(self._mote, self.status)
        self.stopped = True
        self._all.tell(f"mote {self.node}: a debugger is attached at {self._bed.now_s:.6f} s")

    def _turn_away(self, client: socket.socket) -> None:
        """Answers its first command by the reason, and closes at the second."""
        self._all.tell(f"mote {self.node}: a second debugger was turned away")
        told = False

        def answer() -> None:
            nonlocal told
            try:
                if client.recv(4096) and not told:
                    told = True
                    client.sendall(b"+" + packet(f"E.mote {self.node} has a debugger already".encode()))
                    return
            except OSError:
                pass
            self._all.selector.unregister(client)
            client.close()

        self._all.selector.register(client, selectors.EVENT_READ, answer)

    def leave(self) -> None:
        """The mote goes on without a debugger."""
        self.stopped = False
        if self._client is not None:
            self._all.selector.unregister(self._client)
            self._client.close()
            self._all.tell(f"mote {self.node}: the debugger is gone at {self._bed.now_s:.6f} s")
        if self._mote is not None:
            self._mote.detach()
        self._client = self._mote = self._session = None

    def close(self) -> None:
        """Its debugger is told that there is nothing more to wait for."""
        if self._session is not None and self._session.running:
            self._send(b"W00")
        self.leave()
        self._all.selector.unregister(self._server)
        self._server.close()

    # ---- what it says ----
    def _receive(self) -> None:
        assert self._client is not None
        try:
            data = self._client.recv(4096)
            packets, acknowledgements = self._reader.feed(data)
            if data:
                self._client.sendall(acknowledgements)
        except NoPacketError as error:
            self._all.tell(f"mote {self.node}: what is attached is no gdb: {error}")
            data, packets = b"", []
        except OSError:
            data, packets = b"", []
        if not data:
            self.leave()
            return
        for text in packets:
            if self._session is not None:
                self._obey(self._session, text)

    def _obey(self, session: Session, text: bytes) -> None:
        if text == INTERRUPT:
            if session.running:
                self.stop(None)
            return
        reply = session.command(text)
        if reply is not None:
            self._send(reply)
        if session.unacknowledged:
            self._reader.acknowledged = False
        if session.ended:
            self.leave()
        elif session.running:
            self._go()

    def stop(self, reason: Stop | None, address: int = 0) -> None:
        """The mote stands still, for a reason or because its debugger asked for it."""
        self.stopped = True
        if self._session is None or self._mote is None:
            return
        self._mote.go()  # a step that was under way is none any more
        if reason is Stop.FAULT:
            self._say(f"mote {self.node}'s CPU has stopped: {self._bed.world.fault(self._index)}")
        self._send(self._session.stopped(reason, address))

    def _go(self) -> None:
        self.stopped = False
        others = ", ".join(str(node) for node in self._all.stopped())
        fault = self._bed.world.fault(self._index)
        if others:
            self._say(f"time stands still until these motes go on, too: {others}")
        if not self._bed.world.powered(self._index):
            why = "has no power" if self._was_powered else "is not switched on yet"
            self._say(f"mote {self.node} {why}")
        elif fault:
            self._say(f"mote {self.node}'s CPU has stopped: {fault}. Only the others go on, until Ctrl-C")

    def watch_power(self) -> None:
        """Tell its debugger when the mote loses its power."""
        powered = self._bed.world.powered(self._index)
        if self._powered and not powered:
            self._say(f"mote {self.node} has lost its power at {self._bed.now_s:.6f} s")
        self._powered = powered
        self._was_powered |= powered

    def _say(self, text: str) -> None:
        if self._session is not None and self._session.running:
            self._send(output(text))

    def _send(self, data: bytes) -> None:
        if self._client is not None:
            try:
                self._client.sendall(packet(data))
            except OSError:
                self.leave()
