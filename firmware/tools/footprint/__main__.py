"""What an image takes, by module, beside the table that is kept; whether it fits. Exits with 1 when it does not.

Limits are the linker's: `--defsym` in boards/iris/board.mk, regions in boards/cc2538/cc2538.ld. With --overflow it has refused an image:
the table says what grew, the error by how much.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from footprint import table
from footprint.image import Image, Map, Unbounded
from footprint.stack import stack

_TOO_LARGE = re.compile(r"region `\w+' overflowed|is not within region")


def overflow(name: str, of: Map, said: str, kept: Path) -> int:
    """Of what the linker has said when it failed: how much too large an image is, or the words themselves."""
    if not _TOO_LARGE.search(said):
        print(said, end="", file=sys.stderr)
        return 1
    sizes = table.measured(of)
    print("\n".join(table.lines(name, sizes, table.read(kept))))
    total = sum(sizes.values(), table.Size())
    for memory, section, size in (("flash", ".text", total.flash), ("RAM", ".data", total.ram)):
        limit = table.region_of(of, section).length
        if size > limit:
            stack_too = ", the stack not counted" if memory == "RAM" else ""
            print(
                f"{name}: {memory}: {size:,} bytes{stack_too}: {size - limit:,} more than the {limit:,} there are",
                file=sys.stderr,
            )
    return 1


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("elf", type=Path, help="its map lies beside it")
    parser.add_argument("--objects", type=Path, required=True, help="folder of its objects and .su files")
    parser.add_argument("--kept", type=Path, required=True, help="table to compare with")
    parser.add_argument("--keep", action="store_true", help="write the table anew")
    parser.add_argument("--overflow", type=Path, help="what the linker has said, when it failed")
    options = parser.parse_args()
    name = options.elf.name
    if options.overflow:
        of = Map(options.elf.with_suffix(".map"), options.objects)
        return overflow(name, of, options.overflow.read_text(), options.kept)
    image = Image(options.elf, options.objects)
    sizes = table.measured(image.map)
    if options.keep:
        table.write(options.kept, sizes)
    total = sum(sizes.values(), table.Size())
    flash, ram = (table.region_of(image.map, section).length for section in (".text", ".data"))
    print("\n".join(table.lines(name, sizes, table.read(options.kept))))
    try:
        deepest = stack(image)
    except Unbounded as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return 1
    print(
        f"stack: {deepest.bytes}: {' > '.join(deepest.path)}; in an interrupt {' > '.join(deepest.interrupt)}"
    )
    whole = total.ram + deepest.bytes
    print(f"flash: {total.flash} of {flash} bytes")
    print(f"RAM: {whole} of {ram} bytes with the stack")
    if whole > ram:
        print(
            f"{name}: RAM: {whole:,} bytes with the stack: {whole - ram:,} more than the {ram:,} there are",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
