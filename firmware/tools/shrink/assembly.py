"""What avr-gcc writes with -S, as functions of instructions and labels, and back.

Names that several files have for themselves (static functions and variables) are made different on the way, as all files become one.
Branches and calls are kept without their length: ``jmp``, ``call`` and a branch by its condition, whatever the distance. Which form
reaches is for :mod:`layout` to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

#: Conditions and their opposites.
OPPOSITE = {
    "breq": "brne", "brcs": "brcc", "brlo": "brsh", "brlt": "brge", "brmi": "brpl", "brvs": "brvc", "brhs": "brhc", "brts": "brtc",
    "brie": "brid",
}  # fmt: skip
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}
#: Instructions of two words; all others take one (AVR instruction set manual, 0856L).
TWO_WORDS = frozenset({"lds", "sts", "jmp", "call"})
#: They leave out the instruction behind them.
SKIPS = frozenset({"cpse", "sbrc", "sbrs", "sbic", "sbis"})

NAME = re.compile(r"[A-Za-z_.$][\w.$]*")
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*|\d+):\s*(.*)$")
_SECTION = re.compile(r"^\s*(?:\.section\s+([^\s,]+).*|\.(text|data|bss)\s*)$")


@dataclass(frozen=True)
class Label:
    """A place that something goes to or names."""

    name: str


@dataclass(frozen=True)
class Instruction:
    """One instruction; what jumps, calls or branches names where to."""

    operation: str
    operands: str = ""
    target: str | None = None

    @property
    def size(self) -> int:
        """Bytes; of branches and calls in their short form."""
        return 4 if self.operation in TWO_WORDS and self.target is None else 2

    @property
    def conditional(self) -> bool:
        """A branch that may not be taken."""
        return self.operation in OPPOSITE

    @property
    def ends(self) -> bool:
        """Nothing goes on behind it."""
        return self.operation in ("jmp", "ret", "reti", "ijmp")

    @property
    def skips(self) -> bool:
        """The instruction behind it may be left out."""
        return self.operation in SKIPS

    def __str__(self) -> str:
        return f"{self.operation} {self.operands or self.target or ''}".rstrip()


@dataclass(frozen=True)
class Opaque:
    """Assembly from the source, which is taken as it is."""

    lines: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes at most."""
        return 4 * sum(1 for line in self.lines if re.match(r"^\s*[a-z]", line))


Item = Label | Instruction | Opaque


@dataclass
class Function:
    """``file``: where it comes from, without its suffix."""

    name: str
    file: str
    items: list[Item] = field(default_factory=list)
    exported: bool = False

    def instructions(self) -> Iterable[Instruction]:
        """Without labels."""
        return (item for item in self.items if isinstance(item, Instruction))

    @property
    def size(self) -> int:
        """Bytes, with all branches short."""
        return sum(item.size for item in self.items if not isinstance(item, Label))


@dataclass
class Program:
    """All files. ``data``: what is not code, as it was; ``renamed``: by file, names as they were before and are now."""

    functions: list[Function] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    renamed: dict[str, dict[str, str]] = field(default_factory=dict)

    def copy(self) -> Program:
        """With functions of its own."""
        functions = [Function(f.name, f.file, list(f.items), f.exported) for f in self.functions]
        return Program(functions, self.data, self.renamed)

    def named_in_data(self) -> set[str]:
        """Names in what is not code."""
        return {name for line in self.data for name in NAME.findall(line)}


class AssemblyError(Exception):
    """A line that the compiler is not known to write: says which."""


def owned(text: str) -> set[str]:
    """Names that a file has for itself: its functions and variables that are not global, and its labels."""
    exported = set(re.findall(r"^\s*\.(?:global|globl|weak)\s+(\S+)", text, re.M))
    exported |= set(re.findall(r"^\s*\.comm\s+([^\s,]+)", text, re.M)) - set(
        re.findall(r"^\s*\.local\s+(\S+)", text, re.M)
    )
    defined = set(re.findall(r"^([A-Za-z_.$][\w.$]*):", text, re.M)) | set(
        re.findall(r"^\s*\.local\s+(\S+)", text, re.M)
    )
    return defined - exported


def read(paths: dict[str, Path]) -> Program:
    """Several files of assembly, by the names of their sources. Raises AssemblyError."""
    texts = {file: path.read_text() for file, path in paths.items()}
    own = {file: owned(text) for file, text in texts.items()}
    count = Counter(name for names in own.values() for name in names)
    program = Program()
    for number, (file, text) in enumerate(texts.items()):
        names = {
            name: f".L{number}_{name[2:]}" if name.startswith(".L") else f"{name}.{file.replace('/', '.')}"
            for name in own[file]
            if name.startswith(".L") or count[name] > 1
        }
        program.renamed[file] = names
        _Reader(program, file, names, f".Ln{number}").read(text.splitlines())
    return program


def read_lines(lines: list[str]) -> Program:
    """Assembly of functions, as it was written. Raises AssemblyError."""
    program = Program()
    _Reader(program, "", {}, ".Ln").read(['\t.section .text.program,"ax",@progbits', *lines])
    return program


class _Reader:
    """Reads one file into a program."""

    def __init__(self, program: Program, file: str, names: dict[str, str], numbered: str) -> None:
        self._program, self._file, self._names, self._prefix = program, file, names, numbered
        self._function: Function | None = None
        self._functions: dict[str, Function] = {}
        self._section = ".text"
        self._head: list[str] = []
        self._exported: set[str] = set()
        self._numbered: Counter[str] = Counter()

    def read(self, lines: list[str]) -> None:
        """All lines."""
        inline: list[str] | None = None
        for line in lines:
            if line.startswith("/* #APP"):
                inline = []
            elif line.startswith("/* #NOAPP"):
                self._inline(inline or [])
                inline = None
            elif inline is not None:
                inline.append(line)
            else:
                self._line(line)
        self._function = None

    def _inline(self, lines: list[str]) -> None:
        kept = tuple(line for line in lines if not line.startswith(" ;") and not line.startswith("\t;"))
        if self._function is not None and not any(_SECTION.match(line) for line in kept):
            kept = tuple(line for line in kept if line.strip())
            if len(kept) == 1 and ":" not in kept[0]:
                self._instruction(kept[0].strip())
            elif kept:
                self._function.items.append(Opaque(kept))
        else:
            self._function = None
            self._program.data += ["\t.text", *kept]

    def _line(self, line: str) -> None:
        stripped = re.sub(r"/\*.*?\*/", "", line).rstrip()
        if not stripped.strip() or re.match(r"^(__\w+__|\.L__stack_usage) = ", stripped):
            return
        if section := _SECTION.match(stripped):
            self._section = section[1] or "." + section[2]
            # A function goes on behind its jump table.
            self._function = self._functions.get(self._section)
            if not self._in_code():
                self._program.data.append(self._rename(stripped))
            return
        if not self._in_code():
            self._program.data.append(self._rename(stripped))
            return
        if label := _LABEL.match(stripped.strip()):
            self._label(label[1])
            if not label[2]:
                return
            stripped = label[2]
        if directive := re.match(r"^\s*\.(global|globl|weak)\s+(\S+)", stripped):
            self._exported.add(directive[2])
        elif not re.match(r"^\s*\.(type|size|file|ident|p2align)\b", stripped):
            self._instruction(stripped.strip())

    def _in_code(self) -> bool:
        return self._section == ".text" or self._section.startswith(".text.")

    def _rename(self, text: str) -> str:
        return NAME.sub(lambda match: self._names.get(match[0], match[0]), text)

    def _label(self, name: str) -> None:
        if name.isdigit():
            self._numbered[name] += 1
            name = self._numbered_label(name, 0)
        elif not name.startswith("."):
            self._function = Function(self._rename(name), self._file, exported=name in self._exported)
            self._program.functions.append(self._function)
            self._functions[self._section] = self._function
            return
        if self._function is None:
            raise AssemblyError(f"{self._file}: label {name} outside of a function")
        self._function.items.append(Label(self._rename(name)))

    def _numbered_label(self, number: str, ahead: int) -> str:
        return f"{self._prefix}_{number}_{self._numbered[number] + ahead}"

    def _instruction(self, text: str) -> None:
        if self._function is None:
            raise AssemblyError(f"{self._file}: outside of a function: {text}")
        operation, _, operands = text.partition("\t")[0].partition(" ")
        if not operands:
            operands = text[len(operation) :]
        operands = re.sub(r"\s*,\s*", ",", operands.strip())
        operands = re.sub(
            r"\b(\d+)([bf])\b", lambda m: self._numbered_label(m[1], 0 if m[2] == "b" else 1), operands
        )
        operands = self._rename(operands)
        items = self._function.items
        before = items[-1] if items else None
        if (
            operation in ("rjmp", "jmp")
            and isinstance(before, Instruction)
            and before.operands in (".+2", ".+4")
        ):
            items[-1] = Instruction(OPPOSITE[before.operation], target=operands)
        elif operation in OPPOSITE and operands in (".+2", ".+4"):
            items.append(Instruction(operation, operands))
        elif operation in OPPOSITE or (operation in ("rjmp", "jmp", "rcall", "call") and operands != "."):
            items.append(
                Instruction(
                    operation.removeprefix("r") if operation[0] == "r" else operation, target=operands
                )
            )
        else:
            items.append(Instruction(operation, operands))
