"""Prologues as calls: what a function saves on entry, and room for its variables, by one routine for all functions.

avr-gcc's own shared prologue (``-mcall-prologues``) is told where to go on and how much room to make, in 12 bytes, and only by functions
that save many registers; here both is the call itself, of 2 or 4 bytes. The routine takes its return address from the stack first, into
Z, which holds nothing on entry (avr-gcc's calling convention), so that the stack is as the function's own code leaves it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .assembly import Function, Instruction, Item, Label, Opaque, Program

#: What the compiler saves, in this order: the call-saved registers from one on, mostly to the last.
SAVED = [*(f"r{n}" for n in range(2, 18)), "r28", "r29"]
#: How the names of the routines begin.
PROLOGUE = "__save_"
#: Registers from which on it pays to call.
FEWEST = 2

_LIBRARY_SAVES = re.compile(r"__prologue_saves__\+\(\(18 - (\d+)\) \* 2\)")
_MAKE_ROOM = [
    Instruction("in", "__tmp_reg__,__SREG__"),
    Instruction("cli"),
    Instruction("out", "__SP_H__,r29"),
    Instruction("out", "__SREG__,__tmp_reg__"),
    Instruction("out", "__SP_L__,r28"),
]
_AT_STACK = [Instruction("in", "r28,__SP_L__"), Instruction("in", "r29,__SP_H__")]


@dataclass(frozen=True, order=True)
class Save:
    """What a prologue does: the registers that it pushes, in this order; whether it makes room of r26 bytes."""

    registers: tuple[str, ...]
    room: bool

    @property
    def name(self) -> str:
        """Of the routine."""
        return f"{PROLOGUE}{'room_' if self.room else ''}{'_'.join(self.registers)}"


@dataclass
class Saves:
    """The routines that functions call."""

    used: set[Save] = field(default_factory=set)

    def share(self, function: Function) -> None:
        """Let a function call its prologue, if that is shorter."""
        items = function.items
        if self._library(items):
            return
        pushed = 0
        while (
            pushed < len(items)
            and isinstance(item := items[pushed], Instruction)
            and item.operation == "push"
        ):
            pushed += 1
        registers = tuple(item.operands for item in items[:pushed] if isinstance(item, Instruction))
        if len(registers) < FEWEST:
            return
        end, room = self._room(items, pushed)
        self._call(items, end, Save(registers, room > 0), room)

    def _library(self, items: list[Item]) -> bool:
        """Of the compiler's own shared prologue."""
        if len(items) < 6 or not isinstance(jump := items[4], Instruction) or not jump.target:
            return False
        match = _LIBRARY_SAVES.fullmatch(jump.target)
        first, second = items[0], items[1]
        if not match or not isinstance(first, Instruction) or not isinstance(second, Instruction):
            return False
        low, high = (
            re.fullmatch(r"r26,(?:lo8\()?(\d+)\)?", first.operands),
            re.fullmatch(r"r27,0", second.operands),
        )
        if low is None or high is None:
            return False
        # Where there are no variables, r28 and r29 are as good as others, unless they are taken for the stack's end.
        room = int(low[1])
        unused = not room and not any(
            isinstance(item, Instruction)
            and re.search(r"__epilogue_restores__", item.target or "")
            and items[i - 3 : i - 1] != _AT_STACK
            for i, item in enumerate(items)
        )
        save = Save(tuple(SAVED[-int(match[1]) :]), not unused)
        self._call(items, 6, save, room)
        return True

    @staticmethod
    def _room(items: list[Item], at: int) -> tuple[int, int]:
        """Where the making of room ends, and of how many bytes; 0: none is made there."""
        if items[at : at + 2] != _AT_STACK or items[at + 3 : at + 3 + len(_MAKE_ROOM)] != _MAKE_ROOM:
            return at, 0
        item = items[at + 2]
        match = (
            re.fullmatch(r"r28,(\d+)", item.operands)
            if isinstance(item, Instruction) and item.operation == "sbiw"
            else None
        )
        return (at + 3 + len(_MAKE_ROOM), int(match[1])) if match else (at, 0)

    def _call(self, items: list[Item], until: int, save: Save, room: int) -> None:
        self.used.add(save)
        load = [Instruction("ldi", f"r26,{room}")] if save.room else []
        items[:until] = [*load, Instruction("call", target=save.name)]

    def functions(self) -> list[Function]:
        """The routines. One whose registers another one saves last goes on within that."""
        made: list[Function] = []
        chains: dict[Save, str] = {}
        for save in sorted(self.used, key=lambda save: (-len(save.registers), save)):
            items: list[Item] = [Instruction("pop", "r31"), Instruction("pop", "r30")]
            if save in chains:
                items.append(Instruction("jmp", target=chains[save]))
            else:
                for place, register in enumerate(save.registers):
                    label = f".L{save.name}.{place}"
                    chains.setdefault(Save(save.registers[place:], save.room), label)
                    items += [Label(label), Instruction("push", register)]
                if save.room:
                    items += [
                        *_AT_STACK,
                        Instruction("sub", "r28,r26"),
                        Instruction("sbc", "r29,__zero_reg__"),
                        *_MAKE_ROOM,
                    ]
                items.append(Instruction("ijmp"))
            made.append(Function(save.name, "frames", items))
        return made


def share_frames(program: Program, untouched: set[str]) -> None:
    """All functions but those."""
    saves = Saves()
    for function in program.functions:
        if function.name in untouched or any(isinstance(item, Opaque) for item in function.items):
            continue
        saves.share(function)
    program.functions += saves.functions()
