"""Includes against the direction of the layers, and loops between files. `make lint` runs it; it exits with 1 where it finds any.

A folder may include itself, those below it, and what all may include. A module is a C file and its header. No module may reach itself
again through includes, but for pairs in LOOPS, which only shrinks: a pair that is not needed any more is an error as well.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[1]

#: From the lowest on; those of one line do not include each other. The longest that a path begins with is its layer.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("include", "lib", "boards/every"),
    ("index", "join"),
    ("kernel",),
    ("drivers",),
    ("storage",),
    ("commands",),
    ("net/app", "net/net_conf"),
    ("net/mac",),
    ("net/routing",),
    ("net/transport",),
    ("net/content",),
    ("net/schedule",),
    ("net/root", "net/health"),
    ("net",),
    ("query/query_conf",),
    ("query/expressions",),
    ("query/program",),
    ("query/queueing", "query/events"),
    ("query/routes",),
    ("query/operators",),
    ("query/sampling",),
    ("query",),
    ("boards", "main"),
)
#: Of the board that an image is built for: each board has one of its own, and every module may include it.
BOARD = "board.h"
#: Pairs of modules that include each other: the first one's include of the second does not count. Remove what is not needed any more;
#: add nothing.
LOOPS: tuple[tuple[str, str], ...] = ()

_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Include:
    """A file and one that it includes; both without suffix, relative to the firmware."""

    module: str
    other: str
    #: As in an error message: file, line.
    where: str


def includes(firmware: Path) -> Iterator[Include]:
    """Of all C files but tests, of files of this tree."""
    for path in sorted(firmware.rglob("*.[ch]")):
        name = path.relative_to(firmware)
        if name.parts[0] == "tests":
            continue
        text = path.read_text()
        for match in _INCLUDE.finditer(text):
            if match[1] == BOARD:
                continue
            target = next(
                (
                    base / match[1]
                    for base in (firmware, path.parent, firmware / "include")
                    if (base / match[1]).exists()
                ),
                None,
            )
            if target is not None:
                line = text.count("\n", 0, match.start()) + 1
                other = target.resolve().relative_to(firmware.resolve()).with_suffix("")
                yield Include(str(name.with_suffix("")), str(other), f"{name}:{line}")


def layer(module: str) -> tuple[int, str]:
    """Height and name of a module's layer. Raises KeyError where it has none."""
    parts = module.split("/")
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        for height, names in enumerate(LAYERS):
            if folder in names:
                return height, folder
    raise KeyError(module)


def against_direction(found: list[Include]) -> Iterator[str]:
    """A message for each include of something that lies higher, or beside."""
    for one in found:
        try:
            (own, name), (other, of) = layer(one.module), layer(one.other)
        except KeyError as unknown:
            yield f"{one.where}: {unknown.args[0]} is in no layer: LAYERS in tools/layers.py says where it stands"
            continue
        if name != of and other >= own:
            place = "above" if other > own else "beside"
            yield (
                f"{one.where}: {name}/ includes {one.other}.h, which is {place} it: {name}/ declares what it needs, and {of}/ implements it"
            )


def loops(found: list[Include], allowed: tuple[tuple[str, str], ...] = LOOPS) -> Iterator[str]:
    """A message for each loop of modules, and for each pair that is allowed and not needed."""
    edges: dict[str, dict[str, str]] = {}
    for one in found:
        if one.module != one.other:
            edges.setdefault(one.module, {}).setdefault(one.other, one.where)
    for first, second in allowed:
        if second in edges.get(first, {}) and first in edges.get(second, {}):
            del edges[first][second]
        else:
            yield f"LOOPS in tools/layers.py: {first} and {second} do not include each other any more: remove them"
    while path := _loop(edges):
        yield f"{edges[path[0]].pop(path[1])}: a loop: {' > '.join(path)}"


def _loop(edges: dict[str, dict[str, str]]) -> list[str]:
    """Modules from one back to it, each of which includes the next; none where there is no loop."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as found:
        return list(reversed(found.args[1]))
    return []


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("firmware", type=Path, nargs="?", default=FIRMWARE)
    found = list(includes(parser.parse_args().firmware))
    messages = [*against_direction(found), *loops(found)]
    for message in messages:
        print(message, file=sys.stderr)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
