"""Who goes where in an image, by its disassembly, and what each function leaves on the stack meanwhile."""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field

from footprint.image import LIBRARIES, START, Image, Unbounded


@dataclass(frozen=True)
class Architecture:
    """How a machine's disassembly and its stack look."""

    #: Prefix of its binutils.
    tools: str
    #: Bytes that a call pushes; the compiler's frames have them.
    return_address: int
    #: Bytes that an interrupt pushes before its handler runs, but for those of a call.
    exception_frame: int
    #: A call, and a branch that is none, each with the address of its target in hexadecimal.
    call: re.Pattern[str]
    branch: re.Pattern[str]
    #: A call and a jump through a pointer.
    indirect_call: re.Pattern[str]
    indirect_jump: re.Pattern[str]
    #: What a function ends with that does not run on into the next one.
    end: re.Pattern[str]
    #: Routines of libgcc's that are part of who jumps to them, and jump back: to a case of a switch, or with registers saved and restored
    #: (-mcall-prologues). What the compiler tells of a frame has what they push.
    parts: frozenset[str]
    #: Sets the stack pointer.
    unknown_stack: re.Pattern[str]


ARCHITECTURES = {
    "EM_AVR": Architecture(
        "avr-", 2, 0,
        re.compile(r"\tr?call\t.*; 0x([0-9a-f]+) <"), re.compile(r"\t(?:r?jmp|br\w+)\t.*; 0x([0-9a-f]+) <"),
        re.compile(r"\te?icall"), re.compile(r"\te?ijmp"),
        re.compile(r"\t(?:reti?|e?i?r?jmp)\b"), frozenset({"__tablejump2__", "__prologue_saves__", "__epilogue_restores__"}),
        re.compile(r"\tout\t0x3[de],"),
    ),
    # Two registers hold the return address and the pointer to the frame: both are in the compiler's frames. An exception pushes eight
    # words, and one more to align.
    "EM_ARM": Architecture(
        "arm-none-eabi-", 0, 36,
        re.compile(r"\tblx?\t([0-9a-f]+) <"), re.compile(r"\t(?:b|cbn?z)[a-z.]*\t(?:r\d+, )?([0-9a-f]+) <"),
        re.compile(r"\tblx\t(?:r\d|s[bl]|fp|ip|lr)"), re.compile(r"\tbx\t(?!lr)|\tmov\tpc, (?!lr)"),
        re.compile(r"\t(?:bx|b|b\.[nw])\t|pc\}|\tmov\tpc|\tldr(?:\.w)?\tpc|\ttb[bh]\t"), frozenset(),
        re.compile(r"\tmov\tsp|\t(?:sub|add)\S*\tsp, (?:sp, )?r"),
    ),
}  # fmt: skip

_ADDRESS = re.compile(r" *([0-9a-f]+):\t")
_HEAD = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_AVR_PUSH = re.compile(r"\tpush\t")
_AVR_ROOM = re.compile(r"\trcall\t\.\+0\b")
#: A jump into libgcc's row of pushes, one word each, behind as many as it is to leave out; X holds the bytes of room to make then.
_AVR_SAVES = re.compile(r"\tr?jmp\t.*<__prologue_saves__(?:\+0x([0-9a-f]+))?>")
_AVR_SAVED = 18
_AVR_X = re.compile(r"\tldi\tr(2[67]), 0x([0-9A-Fa-f]+)")
_ARM_PUSH = re.compile(r"\t(?:push|stmdb\tsp!,)\S*\t?\s*\{([^}]*)\}")
_ARM_ROOM = re.compile(r"\tsub(?:\.w|w)?\tsp, (?:sp, )?#(\d+)|\tstrd?(?:\.w)?\t.*\[sp, #-(\d+)\]!")


def _is_table(image: Image, line: str) -> bool:
    """Whether a line of the disassembly is of data that the compiler keeps in flash without a symbol: the jump tables of switches. Read as
    code, one of their words may happen to be a call."""
    address = _ADDRESS.match(line)
    piece = image.piece(int(address[1], 16)) if address else None
    return piece is not None and piece.name.startswith(".progmem")


@dataclass
class Function:
    """A function and the addresses of those it goes to: by a call, or by a jump for which its own frame is gone already."""

    address: int
    name: str
    module: str
    frame: int = 0
    calls: set[int] = field(default_factory=set)
    jumps: set[int] = field(default_factory=set)
    #: It calls, or jumps, through a pointer.
    indirect: bool = False

    @property
    def compiled(self) -> bool:
        """By us: the compiler has told its frame."""
        return self.module not in (LIBRARIES, START)


def _registers(text: str) -> int:
    """How many ``r3, r4-r7, lr`` are."""
    count = 0
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        count += int(last[1:]) - int(first[1:]) + 1 if last else 1
    return count


def _library_frame(name: str, lines: list[str], arch: Architecture) -> int:
    """Bytes that a function without the compiler's word leaves on the stack, at most: all that it pushes anywhere."""
    pushed = arch.return_address
    room: dict[str, int] = {}
    for line in lines:
        if match := _AVR_X.search(line):
            room[match[1]] = int(match[2], 16)
        elif match := _AVR_SAVES.search(line):
            if len(room) < 2:
                raise Unbounded(
                    f"{name}, of a library, lets __prologue_saves__ make room that cannot be told"
                )
            pushed += _AVR_SAVED - int(match[1] or "0", 16) // 2 + room["26"] + 256 * room["27"]
        if arch.unknown_stack.search(line):
            raise Unbounded(f"{name}, of a library, sets the stack pointer: its frame cannot be told")
        if arch.tools == "avr-":
            pushed += len(_AVR_PUSH.findall(line)) + 2 * len(_AVR_ROOM.findall(line))
        elif match := _ARM_PUSH.search(line):
            pushed += 4 * _registers(match[1])
        elif match := _ARM_ROOM.search(line):
            pushed += int(match[1] or match[2])
    return pushed


class Calls:
    """The functions of an image by their addresses."""

    def __init__(self, image: Image) -> None:
        """Raises Unbounded where a compiled function has no frame."""
        self.arch = arch = ARCHITECTURES[image.machine]
        self.functions: dict[int, Function] = {}
        lines: dict[int, list[str]] = {}
        text = subprocess.run(
            [f"{arch.tools}objdump", "-d", str(image.path)], check=True, capture_output=True, text=True
        ).stdout
        current = -1
        for line in text.splitlines():
            if match := _HEAD.match(line):
                current = int(match[1], 16)
                if current in image.data:
                    current = -1
                    continue
                piece = image.piece(current)
                if current not in image.functions and piece is not None and piece.module == LIBRARIES:
                    current = max(self.functions)
                    continue
                # What runs before main is nobody's function, whoever has written it.
                module = START if piece is None or piece.name.startswith((".init", ".fini")) else piece.module
                self.functions[current] = Function(current, match[2], module)
                lines[current] = []
            elif current >= 0 and "\t" in line and not _is_table(image, line):
                lines[current].append(line)
        self._starts = sorted(self.functions)
        for address, function in self.functions.items():
            self._read(image, function, lines[address])

    def at(self, address: int) -> Function:
        """The function in which an address lies."""
        return self.functions[self._starts[bisect_right(self._starts, address) - 1]]

    def named(self, name: str) -> Function:
        """The only function of a name."""
        (found,) = (f for f in self.functions.values() if f.name == name)
        return found

    def _read(self, image: Image, function: Function, lines: list[str]) -> None:
        arch = self.arch
        if function.compiled:
            frame = image.frame(function.module, function.name)
            if frame is None:
                raise Unbounded(
                    f"{function.module}: {function.name} has no frame: the compiler does not say in its .su file what it takes"
                )
            function.frame = frame
        elif function.module == LIBRARIES and function.name not in arch.parts:
            function.frame = _library_frame(function.name, lines, arch)
        for line in lines:
            if match := arch.call.search(line):
                self._goes(function, function.calls, int(match[1], 16))
            elif match := arch.branch.search(line):
                self._goes(function, function.jumps, int(match[1], 16))
            elif arch.indirect_call.search(line) or arch.indirect_jump.search(line):
                function.indirect |= function.name not in arch.parts
        after = bisect_right(self._starts, function.address)
        if not function.compiled and lines and after < len(self._starts) and not arch.end.search(lines[-1]):
            function.jumps.add(self._starts[after])

    def _goes(self, function: Function, to: set[int], target: int) -> None:
        if (found := self.at(target)) is not function and found.name not in self.arch.parts:
            to.add(found.address)
