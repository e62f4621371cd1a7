"""Sizes of a mote image: flash, static RAM, worst-case stack. Exits with 1 above the limits.

The worst case is the deepest path of calls from main, plus the deepest interrupt handler (handlers do not nest). Frames come
from the compiler (-fstack-usage), calls from the disassembly; each call adds the return address, a jump nothing. A call through a
pointer may reach every function that the sources register for such calls.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Architecture:
    """How an architecture's disassembly and stack look."""

    #: Prefix of its binutils.
    tools: str
    #: Bytes that a call pushes beside the frame.
    return_address: int
    #: Bytes that an interrupt pushes before its handler runs.
    exception_frame: int
    #: Frame of a function the compiler did not see (libgcc, C library): registers it saves at most, from their sources.
    library_frame: int
    #: A call, or a jump out of a function, with the name of its target.
    call: re.Pattern[str]
    #: A jump to the middle of one: back to where a shared sequence of instructions was jumped to from (tools/shrink), or into libgcc.
    back: re.Pattern[str]
    #: What goes anywhere by name, up to the address; the address; the name.
    direct: re.Pattern[str]
    #: A jump, whatever comes before it: its own address, where it goes, and that by name.
    jump: re.Pattern[str]
    #: What a function ends with that does not run on into the next one.
    end: re.Pattern[str]
    #: A call through a pointer.
    indirect: re.Pattern[str]
    #: Names of interrupt handlers.
    interrupt: re.Pattern[str]


AVR = Architecture(
    "avr-", 2, 0, 20, re.compile(r"\tr?(?:call|jmp)\t.*; 0x[0-9a-f]+ <([^>+]+)(?:\+0x[0-9a-f]+)?>"),
    re.compile(r"\tr?jmp\t.*; 0x[0-9a-f]+ <(?!__)[^>+]+\+0x[0-9a-f]+>"),
    re.compile(r"(\tr?(?:call|jmp)\t.*; )0x([0-9a-f]+) <([^>]+)>"),
    re.compile(r"^ *([0-9a-f]+):\t.*\tr?jmp\t.*; 0x([0-9a-f]+) <([^>]+)>"),
    re.compile(r"^$|\tret|jmp|\.word|\.\.\."), re.compile(r"\te?icall"), re.compile(r"__vector_\d+"),
)  # fmt: skip
#: Return addresses are part of the frames there (the link register is saved); an exception pushes eight words, and one more to align.
ARM = Architecture(
    "arm-none-eabi-", 0, 36, 40, re.compile(r"\tb(?:l|\w{0,2}(?:\.[nw])?)?\t[0-9a-f]+ <([^>+]+)(?:\+0x[0-9a-f]+)?>"),
    re.compile(r"(?!)"), re.compile(r"(?!)"), re.compile(r"(?!)"), re.compile(""), re.compile(r"\tblx\t"), re.compile(r"\w+_isr"),
)  # fmt: skip
#: By e_machine of the ELF header.
ARCHITECTURES = {83: AVR, 40: ARM}

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
STACK_USAGE = re.compile(r"^(.*?)(?:\.c)?:\d+:\d+:([\w.]+)\t(\d+)\t(\w+)")


class Recursion(Exception):
    """A function may reach itself: the stack has no bound."""


def frames(where: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Frame size of each function, in bytes (the largest where static ones share a name), and its file. ``where``: a file or a folder."""
    sizes: dict[str, int] = {}
    files: dict[str, str] = {}
    for path in where.rglob("*.su") if where.is_dir() else [where]:
        for line in path.read_text().splitlines():
            match = STACK_USAGE.match(line)
            if not match:
                continue
            file, name, size, kind = match.groups()
            if kind == "dynamic":
                sys.exit(f"{path}: {name} has a frame without bound")
            sizes[name] = max(sizes.get(name, 0), int(size))
            files[name] = file if where.is_file() else str(path.relative_to(where).with_suffix(""))
    return sizes, files


def architecture(elf: Path) -> Architecture:
    """Of an ELF file. Exits when it is none that is known."""
    header = elf.read_bytes()[:20]
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in ARCHITECTURES:
        sys.exit(f"{elf}: not an ELF file for a known machine: {sorted(ARCHITECTURES)}")
    return ARCHITECTURES[machine]


def run(command: str, *arguments: str) -> str:
    """Standard output of a tool."""
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout


def through_jumps(text: str, arch: Architecture) -> str:
    """A disassembly in which calls and jumps name what they go to in the end, where there is a jump on the way (tools/shrink)."""
    jumps: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if match := arch.jump.search(line):
            jumps[match[1]] = match[2], match[3]

    def end(match: re.Match[str]) -> str:
        address, name = match[2], match[3]
        for _ in range(len(jumps)):
            if address not in jumps:
                break
            address, name = jumps[address]
        return f"{match[1]}0x{address} <{name}>"

    return arch.direct.sub(end, text)


def shared_addresses(elf: Path, arch: Architecture, sizes: dict[str, int]) -> None:
    """Gives functions that begin at the same address (one of which runs on into the other at once) the larger frame: the disassembly names
    only one of them."""
    there: dict[str, list[str]] = defaultdict(list)
    for line in run(f"{arch.tools}nm", str(elf)).splitlines():
        address, _, symbol = line.strip().partition(" ")
        if symbol[:2] in ("T ", "t "):
            there[address].append(symbol[2:])
    for names in there.values():
        if frame := max(sizes.get(name, 0) for name in names):
            sizes |= dict.fromkeys(names, frame)


def calls(elf: Path, arch: Architecture) -> tuple[dict[str, dict[str, int]], set[str]]:
    """Whom a function goes to, with the bytes that this takes (a jump takes none), and who calls through pointers."""
    text = through_jumps(run(f"{arch.tools}objdump", "-d", str(elf)), arch)
    graph: dict[str, dict[str, int]] = {}
    indirect: set[str] = set()
    current = last = ""
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            if current and not arch.end.search(last):
                graph[current].setdefault(match[1], 0)
            current, last = match[1], ""
            graph.setdefault(current, {})
            continue
        last = line.strip() or last
        if arch.back.search(line):
            continue
        elif (match := arch.call.search(line)) and match[1] != current:
            address = 0 if "jmp" in line else arch.return_address
            graph[current][match[1]] = max(address, graph[current].get(match[1], 0))
        elif arch.indirect.search(line):
            indirect.add(current)
    return graph, indirect


#: Who calls through pointers, by source file, and how the sources register what such a call may reach.
REGISTRATIONS: dict[str, str] = {
    "kernel/kernel": r"\.handler = (\w+)|timer_start\([^;]*,\s*(\w+)\)",
    "net/mac": r"mac_send\([^;]*,\s*(\w+)\)",
    "drivers/cc2538/flash": r"IN_RAM static void (\w+)\(",
    "query/vm": r"\b(attribute_\w+)\b",
    "query/aggregate": r"struct aggregate \w+ = \{\d+, (\w+), (\w+)\}",
}


def handlers(sources: Path, known: set[str]) -> dict[str, set[str]]:
    """What the pointers in each file of REGISTRATIONS may point at."""
    text = "\n".join(path.read_text() for path in sources.rglob("*.c"))
    #: Static ones that share a name with others have their file's behind it (tools/shrink).
    by_name: dict[str, set[str]] = defaultdict(set)
    for name in known:
        by_name[name.split(".")[0]].add(name)
    return {
        file: {
            function
            for match in re.findall(pattern, text)
            for name in ([match] if isinstance(match, str) else match)
            if name
            for function in by_name[name]
        }
        for file, pattern in REGISTRATIONS.items()
    }


def deepest(
    graph: dict[str, dict[str, int]], sizes: dict[str, int], start: str, arch: Architecture
) -> tuple[int, list[str]]:
    """Worst stack of a call to ``start`` and the path that needs it. Raises Recursion."""
    on_path: list[str] = []

    @cache
    def visit(name: str) -> tuple[int, tuple[str, ...]]:
        if name in on_path:
            raise Recursion(" -> ".join([*on_path[on_path.index(name) :], name]))
        on_path.append(name)
        worst: tuple[int, tuple[str, ...]] = (0, ())
        for callee, address in sorted(graph.get(name, {}).items()):
            size, path = visit(callee)
            worst = max(worst, (address + size, path))
        on_path.pop()
        own = sizes.get(name, arch.library_frame if name in graph else 0)
        return own + worst[0], (name, *worst[1])

    size, path = visit(start)
    return arch.return_address + size, list(path)


def main() -> int:
    """Print the table; 1 above a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("elf", type=Path)
    parser.add_argument("--stack-usage", type=Path, required=True, help="a .su file, or a folder of them")
    parser.add_argument("--flash-limit", type=int, required=True, help="bytes")
    parser.add_argument("--ram-limit", type=int, required=True, help="bytes, static and stack together")
    options = parser.parse_args()
    arch = architecture(options.elf)
    columns = [line.split() for line in run(f"{arch.tools}size", "-A", str(options.elf)).splitlines()]
    sections = {line[0]: int(line[1]) for line in columns if len(line) == 3 and line[1].isdigit()}
    text = sections[".text"] + sections.get(".configuration", 0)
    data, bss = (sections.get(name, 0) for name in (".data", ".bss"))
    bss += sections.get(".noinit", 0)
    sizes, files = frames(options.stack_usage)
    shared_addresses(options.elf, arch, sizes)
    graph, indirect = calls(options.elf, arch)
    targets = handlers(Path(__file__).parent.parent, set(graph))
    for name in indirect:
        if name in files and files[name] not in targets:
            print(
                f"{name} calls through a pointer: say in REGISTRATIONS what {files[name]}.c may reach",
                file=sys.stderr,
            )
            return 1
        graph[name] |= dict.fromkeys(targets.get(files.get(name, ""), ()), arch.return_address)
    try:
        main_stack, path = deepest(graph, sizes, "main", arch)
        vectors = [name for name in graph if arch.interrupt.fullmatch(name)]
        interrupt_stack = arch.exception_frame + max(deepest(graph, sizes, name, arch)[0] for name in vectors)
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
