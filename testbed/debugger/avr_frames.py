"""Stack frames of AVR programs for avr-gdb, from what the compiler writes down of them (.debug_frame).

avr-gdb guesses frames from a function's first instructions, and guesses wrong where there are 64 to 255 bytes of local variables (avr-gcc
then subtracts r1 from r29, which is taken for a number) and where a shared prologue left r28 to something else: the stack ends there, and
``finish`` with it. Runs in GDB's own Python: ``avr-gdb -x testbed/debugger/avr_frames.py``.
"""

import bisect
import struct
from io import BytesIO

import gdb
from elftools.dwarf.callframe import CallFrameInfo
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile
from gdb.unwinder import Unwinder, register_unwinder

#: avr-gcc's numbers in .debug_frame: of the stack pointer, and of the column of the return address.
SP, RETURN = 32, 36
#: Registers that a function leaves as they are, unless it says where it has put them (avr-gcc's ABI).
KEPT = [*range(2, 18), 28, 29]
#: In .debug_frame: what follows is common to functions, and of none itself.
COMMON = 0xFFFFFFFF
#: Where GDB has the data space.
DATA = 0x800000


class Frames:
    """Those of one file, by address. Each is decoded when it is asked for: all of them would take seconds."""

    def __init__(self, path):
        with open(path, "rb") as file:
            section = ELFFile(file).get_section_by_name(".debug_frame")
            self._data = section.data() if section else b""
        self._places = []  # of functions: where they begin and end, and where what is known of them does
        at = 0
        while at < len(self._data):
            length, common, begin, size = struct.unpack_from("<4I", self._data, at)
            if common != COMMON:
                self._places.append((begin, begin + size, at, at + 4 + length, common))
            at += 4 + length
        self._places.sort()

    def at(self, pc):
        """Where the function begins, and the rules at this place; None when nothing is known."""
        index = bisect.bisect_right(self._places, (pc, COMMON)) - 1
        if index < 0 or pc >= self._places[index][1]:
            return None
        function, _, begin, end, common = self._places[index]
        # What it has in common with others, and its own: a section that has nothing else.
        shared = self._data[common : common + 4 + struct.unpack_from("<I", self._data, common)[0]]
        own = self._data[begin : begin + 4] + struct.pack("<I", 0) + self._data[begin + 8 : end]
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=4)
        entries = CallFrameInfo(BytesIO(shared + own), len(shared + own), 0, structs).get_entries()
        return function, [row for row in entries[1].get_decoded().table if row["pc"] <= pc][-1]


class FrameId:
    """As GDB wants it."""

    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


class FrameUnwinder(Unwinder):
    """Finds the caller of a frame."""

    def __init__(self):
        super().__init__("avr .debug_frame")
        self._files = {}

    def _rules(self, pc):
        for objfile in gdb.objfiles():
            key = (objfile.filename, objfile.build_id)
            if key not in self._files:
                self._files[key] = Frames(objfile.filename)
            found = self._files[key].at(pc)
            if found:
                return found
        return None

    def __call__(self, frame):
        found = self._rules(int(frame.read_register("PC2")))
        if found is None or found[1]["cfa"].reg not in (SP, 28):
            return None
        start, row = found
        registers = {number: frame.read_register(f"r{number}") for number in KEPT}
        sp = frame.read_register("SP")
        base = (
            int(sp) & 0xFFFF
            if row["cfa"].reg == SP
            else int(registers[28]) & 255 | (int(registers[29]) & 255) << 8
        )
        cfa = base + row["cfa"].offset
        memory = gdb.selected_inferior()

        def read(rule, length):
            return bytes(memory.read_memory(DATA + cfa + rule.arg, length))

        # The return address counts words, its more significant byte first.
        pc = 2 * int.from_bytes(read(row[RETURN], 2), "big")
        caller = frame.create_unwind_info(FrameId(DATA + cfa, start))
        caller.add_saved_register("PC2", gdb.Value(pc.to_bytes(4, "little"), frame.read_register("PC2").type))
        caller.add_saved_register("SP", gdb.Value(cfa.to_bytes(2, "little"), sp.type))
        for number, here in registers.items():
            there = gdb.Value(read(row[number], 1), here.type) if number in row else here
            caller.add_saved_register(f"r{number}", there)
        return caller


register_unwinder(None, FrameUnwinder(), replace=True)
