"""What calls through pointers may reach: all functions of the pointer's type whose address is taken somewhere in the image.

C lets a pointer hold functions of its own type only (the compiler refuses others), so this is an upper bound. Types come from the
debugger's information, addresses from the relocations that the linker leaves in (--emit-relocs).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from footprint.calls import Calls, Function
from footprint.image import ALLOCATED, Image, Unbounded

#: Whose calls go through pointers, by module, or by one function of it, and of what types: a typedef, a member of a struct, or for a
#: call over a distance the function that is called so.
CALLERS: dict[str, tuple[str, ...]] = {
    "kernel/kernel": ("event_handler", "timer_handler"),
    "net/mac/mac": ("mac_handler",),
    "query/program/clauses: clauses_check": ("clause.check",),
    "query/program/clauses: clauses_refusal": ("clause.refusal",),
    "query/program/clauses: clauses_open": ("clause.open",),
    "query/program/clauses: clauses_close": ("clause.close",),
    "query/program/clauses: clauses_size": ("clause.state_size",),
    "query/expressions/vm": ("vm_reader",),
    "query/operators/aggregate": ("aggregate.initialise", "aggregate.merge"),
    "join/pairs": ("pairs_met",),
    "join/search": ("search_next",),
    "drivers/cc2538/flash": ("command",),
}

#: Relocations of calls and branches: they take nobody's address (AVR: elf/avr.h of binutils; ARM: AAELF32, 5.6).
_GOES = {"EM_AVR": {2, 3, 18}, "EM_ARM": {10, 28, 29, 30, 51, 52, 102, 103, 104}}
#: ARM: a whole word, which the section holds.
_R_ARM_ABS32 = 2

Type = str


def _type(die: DIE | None) -> Type:
    """A type in words; equal for equal types."""
    if die is None:
        return "void"
    kind = str(die.tag).removeprefix("DW_TAG_")
    target = die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None
    if kind in ("typedef", "const_type", "volatile_type"):
        return ("const " if kind == "const_type" else "") + _type(target)
    if kind == "pointer_type":
        return f"{_type(target)} *"
    if kind == "subroutine_type":
        return signature(die)
    name = die.attributes.get("DW_AT_name")
    return f"{kind.removesuffix('_type')} {name.value.decode() if name else hex(die.offset)}"


def signature(die: DIE) -> Type:
    """Of a function or of a type of functions."""
    returned = die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None
    parameters = [
        _type(child.get_DIE_from_attribute("DW_AT_type"))
        for child in die.iter_children()
        if child.tag == "DW_TAG_formal_parameter"
    ]
    return f"{_type(returned)} ({', '.join(parameters)})"


def _named(die: DIE) -> str:
    name = die.attributes.get("DW_AT_name")
    return name.value.decode() if name else ""


def _pointed(die: DIE) -> DIE | None:
    """The type of functions that a type points to, if it does."""
    while die.tag in ("DW_TAG_pointer_type", "DW_TAG_typedef", "DW_TAG_const_type"):
        if "DW_AT_type" not in die.attributes:
            return None
        die = die.get_DIE_from_attribute("DW_AT_type")
    return die if die.tag == "DW_TAG_subroutine_type" else None


class Pointers:
    """Types of an image's functions, and what of pointers to them."""

    def __init__(self, image: Image, calls: Calls) -> None:
        self._image, self._calls = image, calls
        #: Of functions by address, and of types by the names that CALLERS has.
        self.functions: dict[int, Type] = {}
        self.types: dict[str, Type] = {}
        if image.elf.has_dwarf_info():
            # The linker has applied the relocations that it leaves in.
            for unit in image.elf.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
                self._read(unit)

    def _read(self, unit: CompileUnit) -> None:
        for die in unit.get_top_DIE().iter_children():
            if die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes:
                whole = die
                for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
                    if link in die.attributes:
                        whole = die.get_DIE_from_attribute(link)
                self.functions[die.attributes["DW_AT_low_pc"].value] = signature(whole)
                self.types.setdefault(_named(whole), signature(whole))
            elif die.tag == "DW_TAG_typedef" and (to := _pointed(die)):
                self.types[_named(die)] = signature(to)
            elif die.tag == "DW_TAG_structure_type":
                for member in die.iter_children():
                    if member.tag == "DW_TAG_member" and (
                        to := _pointed(member.get_DIE_from_attribute("DW_AT_type"))
                    ):
                        self.types[f"{_named(die)}.{_named(member)}"] = signature(to)

    def _targets(self) -> Iterator[tuple[int, int]]:
        """Where an address is written that the image keeps, and that address."""
        elf = self._image.elf
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            of = elf.get_section(section["sh_info"])
            if not of["sh_flags"] & ALLOCATED:
                continue
            data, symbols = of.data(), elf.get_section(section["sh_link"])
            assert isinstance(symbols, SymbolTableSection)
            for entry in section.iter_relocations():
                if entry["r_info_type"] in _GOES[self._image.machine]:
                    continue
                symbol = symbols.get_symbol(entry["r_info_sym"])
                where = entry["r_offset"]
                if entry.is_RELA():
                    yield where, symbol["st_value"] + entry["r_addend"]
                elif entry["r_info_type"] == _R_ARM_ABS32:
                    (value,) = struct.unpack_from("<I", data, where - of["sh_addr"])
                    yield where, value & ~1
                else:
                    yield where, symbol["st_value"] & ~1

    def vectors(self) -> list[int]:
        """Addresses of the handlers in the table of interrupts, where there is one: reset's first."""
        begin, size = self._image.symbols.get("vectors", (0, 0))
        words = struct.unpack(f"<{size // 4}I", self._image.bytes_at(begin, size))
        return [word & ~1 for word in words[1:] if word]

    def taken(self) -> dict[int, Function]:
        """Functions whose address is taken, but for handlers of interrupts in their table."""
        begin, size = self._image.symbols.get("vectors", (0, 0))
        found = self._calls.functions
        return {
            target: found[target]
            for where, target in self._targets()
            if target in found and found[target].compiled and not begin <= where < begin + size
        }

    def connect(self) -> None:
        """Lets calls through pointers go wherever they may. Raises Unbounded where that cannot be told."""
        taken = self.taken()
        reached: set[int] = set()
        for function in self._calls.functions.values():
            if not function.indirect:
                continue
            callers = CALLERS.get(f"{function.module}: {function.name}", CALLERS.get(function.module))
            if callers is None:
                raise Unbounded(
                    f"{function.module}: {function.name} calls through a pointer: CALLERS in tools/footprint/pointers.py says of what type"
                )
            wanted = {self.types[name] for name in callers if name in self.types}
            of_type = {address for address in taken if self.functions.get(address) in wanted}
            # A call over a distance takes no address but its own.
            of_type |= {
                f.address
                for f in self._calls.functions.values()
                if f.module == function.module and f.name in callers
            }
            function.calls |= of_type
            reached |= of_type
        for address in sorted(taken.keys() - reached):
            function = taken[address]
            raise Unbounded(
                f"{function.module}: the address of {function.name} is taken, of type {self.functions.get(address, 'unknown')}, and no call"
                " goes through such a pointer: CALLERS in tools/footprint/pointers.py says who does"
            )
