"""Sizes of a mote image: flash, static RAM, worst-case stack. Exits with 1 above the limits.

The worst case is the deepest path of calls from main, plus the deepest interrupt handler (handlers do not nest). Frames come
from the compiler (-fstack-usage), calls from the disassembly; each call adds the return address. A call through a pointer may
reach every function that the sources register for such calls.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

#: Bytes that a call pushes on chips of up to 128 KB flash.
RETURN_ADDRESS = 2
#: Frame of a function the compiler did not see (libgcc, avr-libc): registers it saves at most, from their sources.
LIBRARY_FRAME = 20

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
CALL = re.compile(r"\t(r?call|r?jmp)\t.*; 0x[0-9a-f]+ <([^>+]+)(?:\+0x[0-9a-f]+)?>")
INDIRECT = re.compile(r"\te?icall")
STACK_USAGE = re.compile(r"^.*:(\w+)\t(\d+)\t(\w+)")


class Recursion(Exception):
    """A function may reach itself: the stack has no bound."""


def frames(folder: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Frame size of each function, in bytes (the largest where static ones share a name), and its file."""
    sizes: dict[str, int] = {}
    files: dict[str, str] = {}
    for path in folder.rglob("*.su"):
        for line in path.read_text().splitlines():
            match = STACK_USAGE.match(line)
            if not match:
                continue
            name, size, kind = match.groups()
            if kind == "dynamic":
                sys.exit(f"{path}: {name} has a frame without bound")
            sizes[name] = max(sizes.get(name, 0), int(size))
            files[name] = str(path.relative_to(folder).with_suffix(""))
    return sizes, files


def calls(elf: Path) -> tuple[dict[str, set[str]], set[str]]:
    """Who calls whom, and who calls through pointers."""
    text = subprocess.run(["avr-objdump", "-d", str(elf)], check=True, capture_output=True, text=True).stdout
    graph: dict[str, set[str]] = {}
    indirect: set[str] = set()
    current = ""
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            current = match[1]
            graph.setdefault(current, set())
        elif (match := CALL.search(line)) and match[2] != current:
            graph[current].add(match[2])
        elif INDIRECT.search(line):
            indirect.add(current)
    return graph, indirect


#: Who calls through pointers, by source file, and how the sources register what such a call may reach.
REGISTRATIONS: dict[str, str] = {
    "kernel/kernel": r"\.handler = (\w+)|timer_start\([^;]*,\s*(\w+)\)",
    "net/mac": r"mac_send\([^;]*,\s*(\w+)\)",
    "query/vm": r"\b(attribute_\w+)\b",
    "query/aggregate": r"struct aggregate \w+ = \{(\w+), (\w+)\}",
}


def handlers(sources: Path, known: set[str]) -> dict[str, set[str]]:
    """What the pointers in each file of REGISTRATIONS may point at."""
    text = "\n".join(path.read_text() for path in sources.rglob("*.c"))
    return {
        file: {
            name
            for match in re.findall(pattern, text)
            for name in ([match] if isinstance(match, str) else match)
        }
        & known
        for file, pattern in REGISTRATIONS.items()
    }


def deepest(graph: dict[str, set[str]], sizes: dict[str, int], start: str) -> tuple[int, list[str]]:
    """Worst stack of a call to ``start`` and the path that needs it. Raises Recursion."""
    on_path: list[str] = []

    @cache
    def visit(name: str) -> tuple[int, tuple[str, ...]]:
        if name in on_path:
            raise Recursion(" -> ".join([*on_path[on_path.index(name) :], name]))
        on_path.append(name)
        worst: tuple[int, tuple[str, ...]] = (0, ())
        for callee in sorted(graph.get(name, ())):
            worst = max(worst, visit(callee))
        on_path.pop()
        own = sizes.get(name, LIBRARY_FRAME if name in graph else 0)
        return own + RETURN_ADDRESS + worst[0], (name, *worst[1])

    size, path = visit(start)
    return size, list(path)


def main() -> int:
    """Print the table; 1 above a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("elf", type=Path)
    parser.add_argument("--stack-usage", type=Path, required=True, help="folder of the .su files")
    parser.add_argument("--flash-limit", type=int, required=True, help="bytes")
    parser.add_argument("--ram-limit", type=int, required=True, help="bytes, static and stack together")
    options = parser.parse_args()
    size = subprocess.run(["avr-size", str(options.elf)], check=True, capture_output=True, text=True).stdout
    text, data, bss = (int(column) for column in size.splitlines()[1].split()[:3])
    sizes, files = frames(options.stack_usage)
    graph, indirect = calls(options.elf)
    targets = handlers(Path(__file__).parent.parent, set(graph))
    for name in indirect:
        if name in files and files[name] not in targets:
            print(
                f"{name} calls through a pointer: say in REGISTRATIONS what {files[name]}.c may reach",
                file=sys.stderr,
            )
            return 1
        graph[name] |= targets.get(files.get(name, ""), set())
    try:
        main_stack, path = deepest(graph, sizes, "main")
        vectors = [name for name in graph if re.fullmatch(r"__vector_\d+", name)]
        interrupt_stack = max(deepest(graph, sizes, name)[0] for name in vectors)
    except Recursion as cycle:
        print(f"recursion: {cycle}", file=sys.stderr)
        return 1
    stack = main_stack + interrupt_stack
    flash, ram = text + data, data + bss + stack
    print(f"{options.elf.name:12} {'bytes':>7} {'limit':>7}")
    print(f"{'flash':12} {flash:7} {options.flash_limit:7}")
    print(f"{'static RAM':12} {data + bss:7}")
    print(f"{'stack':12} {stack:7}         {' > '.join(path)}")
    print(f"{'RAM':12} {ram:7} {options.ram_limit:7}")
    for name, value, limit in (("flash", flash, options.flash_limit), ("RAM", ram, options.ram_limit)):
        if value > limit:
            print(
                f"{options.elf.name}: {name} is {value - limit} bytes over its limit of {limit}",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
