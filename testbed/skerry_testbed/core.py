"""The emulator's core (``testbed/core``) for Python: worlds, motes, frames. A thin front; units as in ``skerry_core.h``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI

from skerry_testbed import built
from skerry_testbed.errors import TestbedError

#: CPU back-end of each board.
BACKENDS = {"iris": "avr", "cc2538": "arm"}

#: Numbers of ``SKERRY_SENSOR_…``, by attribute.
SENSORS = {"temp": 0, "humidity": 1, "light": 2, "accel_x": 3, "accel_y": 4, "voltage": 5}
#: Pages of a board's flash, at most.
FLASH_PAGES = 256


class Stop(IntEnum):
    """Why a mote under a debugger stops; numbers as in ``skerry_core.h``."""

    BREAKPOINT = 1
    STEP = 2
    WATCHPOINT = 3
    FAULT = 4


@dataclass(frozen=True, slots=True)
class AirFrame:
    """A frame that was on the air: virtual ns, mote index, PSDU with FCS, motes that received it."""

    start_ns: int
    end_ns: int
    sender: int
    received_by: int
    psdu: bytes


@cache
def library() -> tuple[FFI, Any]:
    """The core. Raises TestbedError where it is missing, or does not belong to this package."""
    path = built.library("core")
    ffi = FFI()
    ffi.cdef(re.sub(r"^#include.*$", "", built.HEADER.read_text(), flags=re.MULTILINE))
    core = ffi.dlopen(str(path))
    # One that is older than this question does not know it.
    has = getattr(core, "skerry_interface", int)()
    if has != built.interface():
        raise TestbedError(f"{path} is of another version than {built.HEADER}: {built.how('testbed')}")
    return ffi, core


class World:
    """Emulated motes on one medium. Not thread-safe, except for :meth:`stop`."""

    def __init__(
        self, seed: int, noise_dbm: float = -98.0, capture_db: float = 3.0, collisions: bool = True
    ) -> None:
        self._ffi, self._lib = library()
        config = self._ffi.new("skerry_world_config *")
        config.seed, config.noise_dbm, config.capture_db = seed, noise_dbm, capture_db
        config.collisions = collisions
        self._world = self._ffi.gc(
            self._check(self._lib.skerry_world_create(config)), self._lib.skerry_world_free
        )
        self._frames = self._ffi.new("skerry_frame[]", 1024)
        self._bytes = self._ffi.new("uint8_t[]", 16384)
        self._text = self._ffi.new("char[]", 65536)
        self._backends: set[str] = set()
        self._stop_callback: Any = None
        self._stop_error: BaseException | None = None

    def _check(self, result: Any) -> Any:
        if result < 0 if isinstance(result, int) else result == self._ffi.NULL:
            raise TestbedError(self._ffi.string(self._lib.skerry_error()).decode())
        return result

    def load_backend(self, name: str, library: Path) -> None:
        """A CPU of another kind; ``add_mote`` then takes its name for a board."""
        self._check(self._lib.skerry_backend_load(self._world, str(library).encode()))
        self._backends.add(name)

    def add_mote(
        self,
        node: int,
        board: str,
        elf: Path,
        settings: bytes,
        *,
        clock_ppm: float,
        supply_mv: float,
        boot_ns: int,
    ) -> int:
        """Index of the new mote. Raises TestbedError for an image that does not fit the board."""
        backend = BACKENDS.get(board, board)
        if backend not in self._backends:
            self.load_backend(backend, built.library(backend))
        config = self._ffi.new("skerry_mote_config *")
        keep = [self._ffi.new("char[]", text.encode()) for text in (backend, str(elf))]
        config.backend, config.elf = keep
        eeprom = self._ffi.from_buffer("uint8_t[]", settings)
        config.node, config.eeprom, config.eeprom_length = node, eeprom, len(settings)
        config.clock_ppm, config.supply_mv, config.boot_ns = clock_ppm, supply_mv, boot_ns
        index: int = self._check(self._lib.skerry_mote_add(self._world, config))
        return index

    def set_link(self, sender: int, receiver: int, gain_db: float, reception: float = math.nan) -> None:
        """Directed link; -1000 dB or less removes it. ``reception`` as probability, NaN: by signal to noise."""
        self._check(self._lib.skerry_link_set(self._world, sender, receiver, gain_db, reception))

    def set_bursts(
        self, sender: int, receiver: int, good_s: float, bad_s: float, reception: float, seed: int
    ) -> None:
        """Losses in bursts on a link that there is; ``bad_s`` 0 ends them. Links with one seed are bad together."""
        self._check(
            self._lib.skerry_link_bursts(self._world, sender, receiver, good_s, bad_s, reception, seed)
        )

    def add_interference(
        self, channel: int, on_s: float, off_s: float, begin_ns: int, end_ns: int, seed: int
    ) -> int:
        """Number of a new source that nobody hears yet: see :meth:`set_interference`."""
        config = self._ffi.new("skerry_interference_config *")
        config.channel, config.on_s, config.off_s = channel, on_s, off_s
        config.begin_ns, config.end_ns, config.seed = begin_ns, end_ns, seed
        number: int = self._check(self._lib.skerry_interference_add(self._world, config))
        return number

    def set_interference(self, source: int, mote: int, dbm: float) -> None:
        """How strong a source is at a mote while it is on; -200 dBm or less: not at all."""
        self._check(self._lib.skerry_interference_level(self._world, source, mote, dbm))

    def run(self, until_ns: int) -> None:
        """Run all motes up to a virtual time."""
        self._ran(self._lib.skerry_world_run(self._world, until_ns))

    def watch(self, mote: int, slice_ns: int, until_ns: int) -> None:
        """The same by slices, up to multiples of so many ns, until the end of one in which something came of a mote's serial line, of
        frames or of messages."""
        self._ran(self._lib.skerry_world_watch(self._world, mote, slice_ns, until_ns))

    def _ran(self, result: int) -> None:
        self._check(result)
        if self._stop_error is not None:
            error, self._stop_error = self._stop_error, None
            raise error

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        now: int = self._lib.skerry_world_now(self._world)
        return now

    def set_sensor(self, mote: int, attribute: str, value: float) -> None:
        """What the mote's surroundings are, in SI; NaN makes the sensor fail."""
        self._check(self._lib.skerry_sensor_set(self._world, mote, SENSORS[attribute], value))

    def uart_read(self, mote: int) -> bytes:
        """Bytes sent since the last call."""
        count = self._check(self._lib.skerry_uart_read(self._world, mote, self._bytes, len(self._bytes)))
        return bytes(self._ffi.buffer(self._bytes, count)) if count else b""

    def uart_write(self, mote: int, data: bytes) -> int:
        """Queue bytes for the mote; how many were taken."""
        count: int = self._check(self._lib.skerry_uart_write(self._world, mote, data, len(data)))
        return count

    def kill(self, mote: int) -> None:
        """Power off."""
        self._check(self._lib.skerry_mote_kill(self._world, mote))

    def reboot(self, mote: int) -> None:
        """Power cycle; EEPROM is kept."""
        self._check(self._lib.skerry_mote_reboot(self._world, mote))

    def flash(self, mote: int, settings: bytes) -> None:
        """As at its first start: other settings, and powered on. Raises TestbedError when they are too long."""
        data = self._ffi.from_buffer("uint8_t[]", settings)
        self._check(self._lib.skerry_mote_flash(self._world, mote, data, len(settings)))

    def cut_power(self, mote: int, after: int, seed: int) -> None:
        """Power goes, and comes back, while the mote writes a word of flash or erases a page, after so many of them. How far that one comes
        is drawn by the seed. Raises TestbedError for a board whose flash is not counted."""
        self._check(self._lib.skerry_mote_cut(self._world, mote, after, seed))

    def button(self, mote: int, down: bool) -> None:
        """Press the mote's button, or let it go."""
        self._check(self._lib.skerry_mote_button(self._world, mote, down))

    def outputs(self, mote: int) -> set[str]:
        """Which of ``red``, ``green``, ``yellow`` and ``actuator`` its firmware has switched on."""
        bits = self._lib.skerry_mote_outputs(self._world, mote)
        self._check(min(bits, 0))
        return {name for bit, name in enumerate(("red", "green", "yellow", "actuator")) if bits >> bit & 1}

    def set_clock(self, mote: int, ppm: float) -> None:
        """Error of the crystal from now on."""
        self._check(self._lib.skerry_mote_clock(self._world, mote, ppm))

    def set_coarse(self, mote: int, timer_step_ns: int, tail_reads: int) -> None:
        """Model a CC2538 mote more simply from now on, as Renode does: its sleep timer goes on in steps of so many ns,
        and its radio shows itself as sending for so many reads of FSMSTAT1 (0 to 255) after a frame."""
        self._check(self._lib.skerry_mote_coarse(self._world, mote, timer_step_ns, tail_reads))

    def alive(self, mote: int) -> bool:
        """Powered and not crashed."""
        return self.powered(mote) and not self.fault(mote)

    def powered(self, mote: int) -> bool:
        """Powered, though its CPU may have crashed."""
        return bool(self._lib.skerry_mote_alive(self._world, mote) == 1)

    def fault(self, mote: int) -> str:
        """What stopped the CPU, or nothing."""
        return str(self._ffi.string(self._lib.skerry_mote_fault(self._world, mote)).decode())

    def _struct(self, name: str, call: Any, mote: int) -> dict[str, Any]:
        struct = self._ffi.new(f"{name} *")
        self._check(call(self._world, mote, struct))
        return {field: getattr(struct, field) for field, _ in self._ffi.typeof(name).fields}

    def energy(self, mote: int) -> dict[str, float]:
        """Joule (``*_j``) and seconds (``*_s``) by component and state."""
        return self._struct("skerry_energy", self._lib.skerry_mote_energy, mote)

    def counters(self, mote: int) -> dict[str, int]:
        """Frames and resets of the mote."""
        return self._struct("skerry_counters", self._lib.skerry_mote_counters, mote)

    def eeprom(self, mote: int, length: int) -> bytes:
        """The first bytes of its non-volatile memory."""
        count = self._check(self._lib.skerry_mote_eeprom(self._world, mote, self._bytes, length))
        return bytes(self._ffi.buffer(self._bytes, count))

    def erasures(self, mote: int) -> list[int]:
        """How often each page of its flash was erased; nothing where that is not counted."""
        pages = self._ffi.new("uint32_t[]", FLASH_PAGES)
        count = self._check(self._lib.skerry_mote_wear(self._world, mote, pages, FLASH_PAGES))
        return list(pages[0:count])

    def messages(self) -> list[str]:
        """What motes did, since the last call, that their chip's model does not know; a line each, with mote and time."""
        count = self._check(self._lib.skerry_messages_read(self._world, self._text, len(self._text)))
        if not count:
            return []
        return str(self._ffi.string(self._text, count).decode(errors="replace")).splitlines()

    def memory(self, mote: int) -> int:
        """Bytes of host memory the mote holds."""
        size: int = self._lib.skerry_mote_memory(self._world, mote)
        return size

    def on_stop(self, handler: Callable[[int, Stop, int], None]) -> None:
        """Called with mote, reason and a watchpoint's address when a mote under a debugger stops. Virtual time stands still until it
        returns. After an exception the mote goes on without its debugger, and :meth:`run` raises it at its end."""

        def stopped(_context: Any, mote: int, reason: int, address: int) -> None:
            try:
                handler(mote, Stop(reason), address)
            except BaseException as error:
                self._stop_error = error
                # Else it would stop here again at once, and never get to the end of the run.
                self._lib.skerry_debug_detach(self._world, mote)

        self._stop_callback = self._ffi.callback("skerry_stop_handler", stopped)
        self._lib.skerry_debug_handler(self._world, self._stop_callback, self._ffi.NULL)

    def debug(self, mote: int) -> DebuggedMote:
        """Attach a debugger, of which a mote can have one."""
        self._check(self._lib.skerry_debug_attach(self._world, mote))
        return DebuggedMote(self, mote, self._ffi, self._lib)

    def frames(self) -> list[AirFrame]:
        """Frames that ended since the last call, in that order."""
        found: list[AirFrame] = []
        while count := self._lib.skerry_frames_read(self._world, self._frames, 1024):
            for frame in self._frames[0:count]:
                psdu = bytes(self._ffi.buffer(frame.psdu, frame.length))
                found.append(AirFrame(frame.start_ns, frame.end_ns, frame.sender, frame.received_by, psdu))
        return found


class DebuggedMote:
    """A mote as its debugger sees it. Registers and addresses by GDB's numbers; what cannot be raises TestbedError."""

    def __init__(self, world: World, mote: int, ffi: FFI, lib: Any) -> None:
        self._world, self._mote, self._ffi, self._lib = world, mote, ffi, lib
        self._bytes = ffi.new("uint8_t[]", 4096)

    def _call(self, function: str, *arguments: Any) -> Any:
        call = getattr(self._lib, f"skerry_debug_{function}")
        return self._world._check(call(self._world._world, self._mote, *arguments))

    def detach(self) -> None:
        """The mote runs on as if there had been no debugger. Nothing, when that has been done."""
        self._lib.skerry_debug_detach(self._world._world, self._mote)

    @property
    def description(self) -> str:
        """GDB's target description, nothing where it needs none."""
        return str(self._ffi.string(self._call("description")).decode())

    def register(self, number: int) -> bytes:
        """Least significant byte first."""
        return bytes(self._ffi.buffer(self._bytes, self._call("register_read", number, self._bytes)))

    def set_register(self, number: int, value: bytes) -> None:
        """As many bytes as it has."""
        self._call("register_write", number, value, len(value))

    def read(self, address: int, length: int) -> bytes:
        """As much of it as there is, at least a byte, at most 4096."""
        count = self._call("memory_read", address, self._bytes, min(length, len(self._bytes)))
        return bytes(self._ffi.buffer(self._bytes, count))

    def write(self, address: int, data: bytes) -> None:
        """All of it."""
        if self._call("memory_write", address, data, len(data)) != len(data):
            raise TestbedError(f"only a part of the {len(data)} bytes at 0x{address:08x} can be written")

    def breakpoint(self, address: int, *, on: bool) -> None:
        """Stop before the instruction there, or no more."""
        self._call("breakpoint", address, on)

    def watchpoint(self, address: int, length: int, *, on: bool) -> None:
        """Stop after what changes one of these bytes, or no more."""
        self._call("watchpoint", address, length, on)

    def step(self, begin: int = 0, end: int = 0) -> None:
        """When it goes on: one instruction, or until it is outside ``begin`` to ``end``."""
        self._call("step", begin, end)

    def go(self) -> None:
        """When it goes on: to a breakpoint or watchpoint."""
        self._call("continue")
