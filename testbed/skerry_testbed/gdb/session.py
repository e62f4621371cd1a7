"""What GDB's commands do to a mote (GDB manual, E.2 to E.4, E.6). A command that is not known here is answered by nothing: GDB then does
without, or says that the target does not support it."""

from __future__ import annotations

from collections.abc import Callable

from skerry_testbed.core import DebuggedMote, Stop
from skerry_testbed.errors import TestbedError
from skerry_testbed.gdb.packets import PACKET_BYTES

#: GDB's numbers of signals.
SIGINT, SIGTRAP, SIGABRT = 2, 5, 6
_UNSUPPORTED = b""
_OK = b"OK"
_FAILED = b"E01"


def output(text: str) -> bytes:
    """A line that GDB prints; only while it waits for the mote to stop."""
    return b"O" + (text + "\n").encode().hex().encode()


class Session:
    """One GDB at one mote, from its first command to its last."""

    def __init__(self, mote: DebuggedMote, status: Callable[[], str]) -> None:
        self._mote, self._status = mote, status
        #: GDB waits for the mote to stop.
        self.running = False
        #: GDB has said good-bye.
        self.ended = False
        #: Both sides have agreed not to acknowledge packets, from the next one on.
        self.unacknowledged = False
        self._stop = b"T%02x" % SIGTRAP
        self._commands: dict[bytes, Callable[[bytes], bytes | None]] = {
            b"?": lambda _: self._stop,
            b"g": self._read_registers,
            b"G": self._write_registers,
            b"p": self._read_register,
            b"P": self._write_register,
            b"m": self._read,
            b"M": self._write,
            b"X": self._write_binary,
            b"Z": lambda text: self._point(text, on=True),
            b"z": lambda text: self._point(text, on=False),
            b"H": lambda _: _OK,
            b"c": self._continue,
            b"C": self._continue,
            b"s": self._step,
            b"S": self._step,
            b"D": self._detach,
            b"k": self._kill,
            b"vCont?": lambda _: b"vCont;c;C;s;S;r",
            b"vCont;": self._resume,
            b"qSupported": self._supported,
            b"qAttached": lambda _: b"1",  # so that it detaches when it quits
            b"QStartNoAckMode": self._without_acknowledgements,
            b"qXfer:features:read:target.xml:": self._describe,
            b"qRcmd,": self._monitor,
        }
        # The longest name first: c is no vCont.
        self._names = sorted(self._commands, key=len, reverse=True)

    def command(self, text: bytes) -> bytes | None:
        """The reply; None: none, or none until the mote stops."""
        for name in self._names:
            if text.startswith(name):
                try:
                    return self._commands[name](text[len(name) :])
                except (TestbedError, ValueError):
                    return _FAILED
        return _UNSUPPORTED

    def stopped(self, reason: Stop | None, address: int = 0) -> bytes:
        """The mote stands: what tells GDB. No reason: as GDB asked for it by Ctrl-C."""
        signal = {None: SIGINT, Stop.FAULT: SIGABRT}.get(reason, SIGTRAP)
        self._stop = b"T%02x" % signal
        if reason is Stop.WATCHPOINT:
            self._stop += b"watch:%x;" % address
        self.running = False
        return self._stop

    # ---- registers and memory ----
    def _registers(self) -> list[bytes]:
        found: list[bytes] = []
        while True:
            try:
                found.append(self._mote.register(len(found)))
            except TestbedError:
                return found

    def _read_registers(self, _: bytes) -> bytes:
        return b"".join(self._registers()).hex().encode()

    def _write_registers(self, text: bytes) -> bytes:
        values = bytes.fromhex(text.decode())
        for number, before in enumerate(self._registers()):
            value, values = values[: len(before)], values[len(before) :]
            if value != before:
                self._mote.set_register(number, value)
        return _OK

    def _read_register(self, text: bytes) -> bytes:
        return self._mote.register(int(text, 16)).hex().encode()

    def _write_register(self, text: bytes) -> bytes:
        number, value = text.split(b"=")
        self._mote.set_register(int(number, 16), bytes.fromhex(value.decode()))
        return _OK

    def _read(self, text: bytes) -> bytes:
        address, length = (int(part, 16) for part in text.split(b","))
        return self._mote.read(address, length).hex().encode()

    def _write(self, text: bytes) -> bytes:
        place, _, data = text.partition(b":")
        return self._write_bytes(place, bytes.fromhex(data.decode()))

    def _write_binary(self, text: bytes) -> bytes:
        place, _, data = text.partition(b":")
        return self._write_bytes(place, data)

    def _write_bytes(self, place: bytes, data: bytes) -> bytes:
        address, length = (int(part, 16) for part in place.split(b","))
        if length != len(data):
            return _FAILED
        if data:
            self._mote.write(address, data)
        return _OK

    # ---- where it stops, and how it goes on ----
    def _point(self, text: bytes, *, on: bool) -> bytes:
        kind, address, length = text.split(b";")[0].split(b",")
        if kind in (b"0", b"1"):
            self._mote.breakpoint(int(address, 16), on=on)
        elif kind == b"2":
            self._mote.watchpoint(int(address, 16), int(length, 16), on=on)
        else:
            return _UNSUPPORTED  # to watch what is read, a back-end would have to tell of reads
        return _OK

    def _resume(self, text: bytes) -> bytes | None:
        # A mote is one thread: the first action is its.
        action = text.split(b";")[0].split(b":")[0]
        if action.startswith(b"r"):
            begin, end = (int(part, 16) for part in action[1:].split(b","))
            self._mote.step(begin, end)
        elif action[:1] in b"sS":
            self._mote.step()
        else:
            self._mote.go()
        self.running = True
        return None

    def _continue(self, text: bytes) -> bytes | None:
        del text  # a signal, which motes do not have
        return self._resume(b"c")

    def _step(self, text: bytes) -> bytes | None:
        del text
        return self._resume(b"s")

    def _detach(self, _: bytes) -> bytes:
        self.ended = True
        return _OK

    def _kill(self, _: bytes) -> None:
        """GDB leaves; a mote is not GDB's to end."""
        self.ended = True

    # ---- what else GDB asks ----
    def _supported(self, _: bytes) -> bytes:
        offer = b"PacketSize=%x;QStartNoAckMode+;vContSupported+" % PACKET_BYTES
        return offer + (b";qXfer:features:read+" if self._mote.description else b"")

    def _without_acknowledgements(self, _: bytes) -> bytes:
        self.unacknowledged = True
        return _OK

    def _describe(self, text: bytes) -> bytes:
        begin, length = (int(part, 16) for part in text.split(b","))
        whole = self._mote.description.encode()
        part = whole[begin : begin + length]
        return (b"m" if begin + length < len(whole) else b"l") + part

    def _monitor(self, text: bytes) -> bytes:
        """``monitor status``."""
        asked = bytes.fromhex(text.decode()).decode(errors="replace").strip()
        told = (
            self._status() if asked == "status" else f"monitor {asked}: only 'monitor status' is known here"
        )
        return (told + "\n").encode().hex().encode()
