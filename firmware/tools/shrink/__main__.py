"""One assembly file of all that avr-gcc has compiled, smaller: prologues are calls, what occurs several times is there once, and
functions lie so that calls between them are short, or reach something that goes on to where they go. What comes out is proven to do the
same. Prints nothing; exits with 1 where the compiler wrote what is not known here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import frames, layout, order, proof, relays, repeats
from .assembly import NAME, AssemblyError, Function, Instruction, Opaque, Program, read, read_lines

#: Names that avr-gcc gives at the head of each file.
HEAD = [
    "__SP_H__ = 0x3e",
    "__SP_L__ = 0x3d",
    "__SREG__ = 0x3f",
    "__RAMPZ__ = 0x3b",
    "__tmp_reg__ = 0",
    "__zero_reg__ = 1",
]

#: Searches for an order: moves that are tried for each function, and quarters of bytes by which one may make the program longer at the
#: beginning. The second knows lengths better.
SEARCHES = ((300, 12), (1400, 6))


def used(program: Program) -> list[Function]:
    """Functions that something reaches: an interrupt, main, or what is not code."""
    by_name = {function.name: function for function in program.functions}
    data = program.named_in_data()
    found: set[str] = set()
    waiting = [
        f for f in program.functions if f.name == "main" or f.name.startswith("__vector_") or f.name in data
    ]
    while waiting:
        function = waiting.pop()
        if function.name in found:
            continue
        found.add(function.name)
        for item in function.items:
            if isinstance(item, Instruction):
                text = f"{item.operands} {item.target}"
            else:
                text = " ".join(item.lines) if isinstance(item, Opaque) else ""
            waiting += [by_name[name] for name in NAME.findall(text) if name in by_name]
    return [function for function in program.functions if function.name in found]


def laid_out(program: Program, timed: set[str]) -> layout.Lengths:
    """The program in the order found for it, with relays."""
    lengths = layout.Lengths(program.functions, timed)
    if lengths.far:
        for moves, heat in SEARCHES:
            program.functions = order.ordered(
                lengths, program.functions, moves * len(program.functions), heat
            )
            lengths = layout.Lengths(program.functions, timed)
    program.functions, lengths = relays.with_relays(program.functions, timed)
    return lengths


def shrink(program: Program, untouched: list[str]) -> list[str]:
    """Lines of assembly. ``untouched``: files, or beginnings of their names, and functions that stay as they are."""
    program.functions = used(program)
    kept = {
        f.name
        for f in program.functions
        if f.name.startswith("__vector_")
        or f.name in untouched
        or any(f.file.startswith(name) for name in untouched)
    }
    frames.share_frames(program, kept)
    before = program.copy().functions
    repeats.Sharer(program, kept).rounds()
    laid = laid_out(program, kept)
    shared = {f.name for f in program.functions if f.file == "shared"}
    proof.prove(before, read_lines(laid.lines()).functions, shared)
    exported = [f"\t.global {f.name}" for f in program.functions if f.exported]
    return [*HEAD, *program.data, '\t.section .text.program,"ax",@progbits', *exported, *laid.lines()]


def stack_usage(program: Program, root: Path) -> list[str]:
    """What the compiler says of each function's frame, by the names as they are now. Sequences and routines have none of their own."""
    lines = []
    for file, renamed in program.renamed.items():
        for line in (root / file).with_suffix(".su").read_text().splitlines():
            name, tab, frame = line.rpartition(":")[2].partition("\t")
            lines.append(f"{file}.c:0:0:{renamed.get(name, name)}{tab}{frame}")
    made = [f for f in program.functions if f.file not in program.renamed]
    return [*lines, *(f"{f.file}.c:0:0:{f.name}\t0\tstatic" for f in made)]


def main() -> int:
    """Reads and writes."""
    parser = argparse.ArgumentParser(prog="shrink", description=(__doc__ or "").split(":")[0])
    parser.add_argument(
        "sources", type=Path, nargs="+", help="assembly files, their stack usage (.su) beside them"
    )
    parser.add_argument(
        "--root", type=Path, required=True, help="folder of the assembly, which mirrors that of the sources"
    )
    parser.add_argument("--output", type=Path, required=True, help="assembly; stack usage goes beside it")
    parser.add_argument(
        "--untouched",
        default="",
        help="files, beginnings of their names, and functions that stay as they are",
    )
    options = parser.parse_args()
    try:
        program = read(
            {str(path.relative_to(options.root).with_suffix("")): path for path in options.sources}
        )
        lines = shrink(program, options.untouched.split())
    except (AssemblyError, proof.Difference) as error:
        print(f"shrink: {error}", file=sys.stderr)
        return 1
    options.output.write_text("\n".join(lines) + "\n")
    options.output.with_suffix(".su").write_text("\n".join(stack_usage(program, options.root)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
