"""That a shrunk program does what it did: the same instructions in the same order, whichever way is taken.

Both programs are walked at once, from the beginning of each function. Jumps are followed, and what is shared is gone through where it is
called or jumped to; every other instruction has to be the same on both sides, and none may find another return address on the stack. A
branch and a skip are followed both ways. Places that were compared are not compared again, so that loops end. The shrunk program is walked
as it is written for the assembler; how sequences were chosen is not known here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .assembly import OPPOSITE, Function, Instruction, Item, Label, Opaque
from .frames import PROLOGUE


class Difference(Exception):
    """Two programs do not do the same: says where."""


@dataclass(frozen=True)
class State:
    """Where a program is: before an item of a function ("": before a return), and where the shared sequences that were called go back."""

    function: str
    item: int = 0
    back: tuple[State, ...] = ()


_RETURN, _END = Instruction("ret"), Instruction("end")
#: Operands of a branch around a jump.
AROUND = (".+2", ".+4")
#: Behind a call that does not return, at the end of a function.
_NEVER = Instruction("never")


class Walk:
    """One of the programs. ``shared``: which of its functions are sequences; ``laid``: behind one the next is gone on with."""

    def __init__(self, functions: list[Function], shared: set[str], laid: bool) -> None:
        self._items: dict[str, list[Item]] = {function.name: function.items for function in functions}
        self._following = {a.name: b.name for a, b in itertools.pairwise(functions)} if laid else {}
        self._shared = shared
        self._labels = {name: State(name) for name in shared}
        for name, items in self._items.items():
            self._labels |= {
                item.name: State(name, i) for i, item in enumerate(items) if isinstance(item, Label)
            }
        self._names = {name: State(name) for name in self._items} | self._labels

    def next(self, state: State) -> tuple[Instruction | Opaque, State]:
        """The next instruction that does something, and where it is gone on. A jump to a function is a call of it before a return."""
        for _ in range(1000):
            name, i, back = state.function, state.item, state.back
            if not name:
                return (_RETURN, state) if not back else self.next(back[-1])
            item, following = self._item(name, i)
            if isinstance(item, Label):
                state = State(name, following, back)
            elif isinstance(item, Opaque):
                return item, State(name, following, back)
            elif item.operation == "jmp" and item.target in self._labels:
                state = self.at(item.target, back)
            elif item.operation == "jmp":
                return Instruction("call", target=self._called(item.target)), self._returned(back)
            elif item.operation == "call" and (called := self._called(item.target)) in self._shared:
                state = self.at(called or "", (*back, State(name, following, back)))
            elif item == _RETURN and back:
                state = back[-1]
            else:
                return self._with_target(item), State(name, following, back)
        return _END, state  # in circles, and does nothing there

    def _item(self, name: str, i: int) -> tuple[Item, int]:
        """What stands there, and where it is gone on behind. A branch around a jump, which may have a name, is the opposite branch."""
        items = self._items[name]
        if i >= len(items):
            return self._at_the_end(name), i
        item = items[i]
        if isinstance(item, Instruction) and item.conditional and item.operands in AROUND:
            over = i + 1
            while over < len(items) and isinstance(items[over], Label):
                over += 1
            jump = items[over] if over < len(items) else _END
            if over > i + 1 and isinstance(jump, Instruction) and jump.operation == "jmp":
                return Instruction(OPPOSITE[item.operation], target=jump.target), over + 1
        return item, i + 1

    def _at_the_end(self, name: str) -> Instruction:
        """What is gone on with behind a function."""
        target = self._following.get(name)
        return Instruction("jmp", target=target) if target else self._behind_the_end(name)

    def _behind_the_end(self, name: str) -> Instruction:
        """A function that does not end with a return or a jump ends with a call that never comes back."""
        last = self._items[name][-1] if self._items[name] else None
        return _NEVER if isinstance(last, Instruction) and last.operation == "call" else _END

    def at(self, label: str, back: tuple[State, ...]) -> State:
        """At a label, or at the beginning of a sequence."""
        place = self._labels[label]
        return State(place.function, place.item, back)

    def beyond(self, state: State) -> State:
        """Behind the instruction there."""
        name, i = state.function, state.item
        while i < len(self._items[name]) and isinstance(self._items[name][i], Label):
            i += 1
        return State(name, i + 1, state.back)

    @staticmethod
    def _returned(back: tuple[State, ...]) -> State:
        return back[-1] if back else State("")

    def _with_target(self, item: Instruction) -> Instruction:
        return Instruction("call", target=self._called(item.target)) if item.operation == "call" else item

    def _called(self, target: str | None) -> str | None:
        """The function or the sequence that a call goes to in the end, where it calls a jump."""
        for _ in range(1000):
            jump = self._first(target)
            function = target in self._items and target not in self._shared
            if function or jump is None or jump.operation != "jmp":
                break
            target = jump.target
        return target

    def _first(self, target: str | None) -> Instruction | None:
        """The instruction at a name, or none where something else is there, or code that is not known."""
        place = self._names.get(target or "")
        if place is None:
            return None
        items, i = self._items[place.function], place.item
        while i < len(items) and isinstance(items[i], Label):
            i += 1
        item, _ = self._item(place.function, i)
        return item if isinstance(item, Instruction) else None

    def taken(self, branch: Instruction, back: tuple[State, ...]) -> State:
        """Where a branch goes that is taken: what it meets on the way that branches on the same condition is taken as well."""
        target = branch.target or ""
        for _ in range(1000):
            met = self._first(target)
            if met is None or not met.target or met.operation not in ("jmp", branch.operation):
                break
            if met.operation == "jmp" and met.target not in self._labels:
                break
            target = met.target
        return self.at(target, back)


def prove(before: list[Function], after: list[Function], shared: set[str]) -> None:
    """Raises Difference unless all functions of the first program do in the second, which has ``shared`` sequences, what they do there."""
    old, new = Walk(before, set(), laid=False), Walk(after, shared, laid=True)
    seen: set[tuple[State, State]] = set()
    for function in before:
        waiting = [(State(function.name), State(function.name))]
        while waiting:
            pair = waiting.pop()
            if pair not in seen:
                seen.add(pair)
                waiting += _step(old, new, pair, function.name)


def _step(old: Walk, new: Walk, pair: tuple[State, State], function: str) -> list[tuple[State, State]]:
    """What follows one instruction on both sides."""
    a, was = old.next(pair[0])
    b, now = new.next(pair[1])
    if a == _NEVER:
        return []
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        if a != b:
            raise Difference(f"{function}: assembly of the source has changed")
        return [(was, now)]
    branches = a.conditional and a.operation == b.operation and a.target and b.target
    if not branches and a != b:
        raise Difference(f"{function}: {a} has become {b}")
    if now.back and _at_stack(b):
        raise Difference(f"{function}: {b} is called, so that the stack is not as it was")
    if a.ends or a in (_END, Instruction("rjmp", ".")):
        return []
    following = [(was, now)]
    if branches and a.target and b.target:
        following.append((old.taken(a, was.back), new.taken(b, now.back)))
    if a.skips:
        following.append((old.beyond(was), new.beyond(now)))
    return following


def _at_stack(instruction: Instruction) -> bool:
    """Whether it matters to it what is on top of the stack."""
    prologue = (instruction.target or "").startswith(PROLOGUE)
    return prologue or instruction.operation in ("push", "pop") or "__SP_" in instruction.operands
