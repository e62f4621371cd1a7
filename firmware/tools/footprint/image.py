"""A linked image: what lies where in it, by its ELF file, the linker's map and the compiler's notes (-fstack-usage)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

#: SHF_ALLOC: the section is in the mote's memory.
ALLOCATED = 2
#: Module of what comes from the tool chain: its libraries, and what runs before main.
LIBRARIES, START = "libraries", "start"
#: By e_machine of the ELF header.
MACHINES = ("EM_AVR", "EM_ARM")
_REGION = re.compile(r"^(\w+) +0x([0-9a-f]+) +0x([0-9a-f]+)", re.MULTILINE)
#: An output section, or an input section in it and its file.
_SECTION = re.compile(r"^( ?)(\.\S+|COMMON)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?: (\S.*))?$", re.MULTILINE)
_USAGE = re.compile(r"^[^:]*:\d+:\d+:([\w.]+)\t(\d+)\t(\w+)", re.MULTILINE)


class Unbounded(Exception):
    """The stack has no bound, or none that can be told."""


@dataclass(frozen=True)
class Piece:
    """An input section where the linker put it."""

    output: str
    name: str
    address: int
    size: int
    module: str


@dataclass(frozen=True)
class Region:
    """A memory that the linker fills, at most ``length`` bytes from ``origin``."""

    name: str
    origin: int
    length: int

    def __contains__(self, address: int) -> bool:
        return self.origin <= address < self.origin + self.length


def module_of(file: str, objects: Path) -> str:
    """``net/tree`` of an object file in the folder ``objects``, ``index/zone`` of ``index.a(zone.o)``; of others LIBRARIES or START."""
    archive, _, member = file.removesuffix(")").partition("(")
    path = (Path(archive).with_suffix("") / member if member else Path(file)).resolve()
    inside = path.is_relative_to(objects.resolve())
    if member and not inside:
        return LIBRARIES
    if inside:
        return str(path.relative_to(objects.resolve()).with_suffix(""))
    return START


@dataclass
class Map:
    """What the linker's map says. It is written even where a region overflows."""

    path: Path
    objects: Path
    regions: dict[str, Region] = field(default_factory=dict)
    #: Address and size of output sections.
    sections: dict[str, tuple[int, int]] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = self.path.read_text()
        text = text[text.index("\nMemory Configuration") :]
        head, _, body = text.partition("\nLinker script and memory map")
        for name, origin, length in _REGION.findall(head):
            self.regions[name] = Region(name, int(origin, 16), int(length, 16))
        output = ""
        for indent, name, begin, length, file in _SECTION.findall(body):
            address, size = int(begin, 16), int(length, 16)
            if not indent:
                output = name
                self.sections[output] = address, size
            elif size and file:
                self.pieces.append(Piece(output, name, address, size, module_of(file, self.objects)))


class Image:
    """An ELF file for a mote, its map beside it (``.map``) and the folder of its objects and ``.su`` files."""

    def __init__(self, elf: Path, objects: Path) -> None:
        """Exits with a message when the file is no image of a known machine."""
        self.path = elf
        if elf.read_bytes()[:4] != b"\x7fELF":
            raise SystemExit(f"{elf}: not an ELF file")
        self.elf = ELFFile(elf.open("rb"))
        self.machine: str = self.elf["e_machine"]
        if self.machine not in MACHINES:
            raise SystemExit(f"{elf}: made for {self.machine}: known are {', '.join(MACHINES)}")
        self.map = Map(elf.with_suffix(".map"), objects)
        self.objects = objects

    @cached_property
    def _code(self) -> list[Piece]:
        kept = {s.name for s in self.elf.iter_sections() if s["sh_flags"] & ALLOCATED}
        return sorted((p for p in self.map.pieces if p.output in kept), key=lambda piece: piece.address)

    def piece(self, address: int) -> Piece | None:
        """The input section that lies at an address."""
        at = bisect_right(self._code, address, key=lambda piece: piece.address) - 1
        if at < 0 or address >= self._code[at].address + self._code[at].size:
            return None
        return self._code[at]

    @cached_property
    def _table(self) -> list[Symbol]:
        table = self.elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return list(table.iter_symbols())

    @cached_property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size by name; of names that several have, the last one's."""
        return {symbol.name: (symbol["st_value"], symbol["st_size"]) for symbol in self._table}

    @cached_property
    def data(self) -> set[int]:
        """Where data begins that lies among code."""
        return {s["st_value"] for s in self._table if s["st_info"]["type"] == "STT_OBJECT"}

    @cached_property
    def functions(self) -> set[int]:
        """Where functions begin, and not only labels inside of them: thus those of libraries written in assembly, whose own are local."""
        return {
            symbol["st_value"] & ~1 if self.machine == "EM_ARM" else symbol["st_value"]
            for symbol in self._table
            if symbol["st_info"]["type"] == "STT_FUNC" or symbol["st_info"]["bind"] != "STB_LOCAL"
        }

    def bytes_at(self, address: int, size: int) -> bytes:
        """What the image has there."""
        for section in self.elf.iter_sections():
            begin = section["sh_addr"]
            if section["sh_flags"] & ALLOCATED and begin <= address < begin + section["sh_size"]:
                data: bytes = section.data()
                return data[address - begin : address - begin + size]
        return b""

    @cached_property
    def _frames(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for path in sorted(self.objects.rglob("*.su")):
            of = found[str(path.relative_to(self.objects).with_suffix(""))] = {}
            for name, size, kind in _USAGE.findall(path.read_text()):
                if kind == "dynamic":
                    raise Unbounded(f"{path}: {name} has a frame without bound")
                of[name] = max(of.get(name, 0), int(size))
        return found

    def frame(self, module: str, function: str) -> int | None:
        """Bytes of stack that the compiler says a function takes; None: it says nothing. Copies that it has made of a function for some
        of its callers (``name.part.0``) are there by their names, on some machines without the number."""
        of = self._frames.get(module, {})
        return of.get(function, of.get(re.sub(r"\.\d+$", "", function)))
