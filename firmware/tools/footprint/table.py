"""Flash and RAM by module, printed beside a table that was kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from footprint.image import Map, Region

#: Output sections that an image is programmed with, and those that lie in RAM.
IN_FLASH = (".constants", ".text", ".data", ".configuration")
IN_RAM = (".data", ".bss", ".noinit")
_HEAD = "module flash RAM"


@dataclass
class Size:
    """In bytes."""

    flash: int = 0
    ram: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.flash + other.flash, self.ram + other.ram)

    def __sub__(self, other: Size) -> Size:
        return Size(self.flash - other.flash, self.ram - other.ram)


Sizes = dict[str, Size]


def measured(of: Map) -> Sizes:
    """By module (``net/tree``); what the linker leaves between them as ``alignment``."""
    sizes: Sizes = defaultdict(Size)
    for section in dict.fromkeys(IN_FLASH + IN_RAM):
        found = [piece for piece in of.pieces if piece.output == section]
        rest = of.sections.get(section, (0, 0))[1] - sum(piece.size for piece in found)
        for module, bytes_ in [*((piece.module, piece.size) for piece in found), ("alignment", rest)]:
            if bytes_:
                sizes[module] += Size(bytes_ * (section in IN_FLASH), bytes_ * (section in IN_RAM))
    return dict(sorted(sizes.items()))


def read(path: Path) -> Sizes:
    """A table that was kept; empty where there is none."""
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines()[1:]]
    return {module: Size(int(flash), int(ram)) for module, flash, ram in rows}


def write(path: Path, sizes: Sizes) -> None:
    """Keeps a table."""
    rows = [f"{module} {size.flash} {size.ram}" for module, size in sorted(sizes.items())]
    path.write_text("\n".join([_HEAD, *rows]) + "\n")


def region_of(of: Map, section: str) -> Region:
    """The memory in which the linker puts an output section, as much of it as is left from the section's begin."""
    begin, _ = of.sections[section]
    (found,) = (region for region in of.regions.values() if begin in region)
    return Region(found.name, begin, found.origin + found.length - begin)


def _folders(sizes: Sizes) -> Sizes:
    found: Sizes = defaultdict(Size)
    for module, size in sizes.items():
        found[module.partition("/")[0]] += size
    return found


def _row(name: str, size: Size, change: Size | None) -> str:
    changes = (size_change(change.flash), size_change(change.ram)) if change else ("", "")
    return f"{name:16} {size.flash:8,} {changes[0]:>8} {size.ram:8,} {changes[1]:>8}".rstrip()


def size_change(change: int) -> str:
    """With its sign; empty for none."""
    return f"{change:+,}" if change else ""


def lines(name: str, sizes: Sizes, before: Sizes) -> Iterator[str]:
    """The table: folders and their change, then the modules that have changed."""
    yield f"{name:16} {'flash':>8} {'':8} {'RAM':>8}"
    now, then = _folders(sizes), _folders(before)
    for folder in sorted(now.keys() | then.keys()):
        size = now.get(folder, Size())
        yield _row(folder, size, size - then.get(folder, Size()) if before else None)
    total, was = sum(sizes.values(), Size()), sum(before.values(), Size())
    yield _row("all", total, total - was if before else None)
    for module in sorted(sizes.keys() | before.keys()) if before else ():
        size = sizes.get(module, Size())
        if (change := size - before.get(module, Size())) != Size():
            yield _row(f"  {module}", size, change)
