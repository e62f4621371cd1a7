"""Jumps to jumps, calls before a return, and what nothing reaches any more."""

from __future__ import annotations

from collections import Counter

from .assembly import Function, Instruction, Item, Label

_RETURN = Instruction("ret")


def straighten(function: Function, named: Counter[str]) -> None:
    """Shorten a function; ``named``: how often each name is mentioned in the program, kept true."""
    while _end_by_jump(function.items) or _thread(function.items, named) or _sweep(function.items, named):
        pass


def _skipped(items: list[Item], i: int) -> bool:
    """Whether the instruction there may be left out by the one before, labels aside."""
    i -= 1
    while i >= 0 and isinstance(items[i], Label):
        i -= 1
    return i >= 0 and isinstance(before := items[i], Instruction) and before.skips


def _end_by_jump(items: list[Item]) -> bool:
    """A call with nothing but a return behind it becomes a jump: the callee returns to the caller's caller."""
    for i in range(1, len(items)):
        call = items[i - 1]
        if (
            items[i] == _RETURN
            and isinstance(call, Instruction)
            and call.operation == "call"
            and not _skipped(items, i - 1)
        ):
            items[i - 1 : i + 1] = [Instruction("jmp", target=call.target)]
            return True
    return False


def _thread(items: list[Item], named: Counter[str]) -> bool:
    """What jumps to a jump goes where that goes."""
    ends: dict[str, Instruction] = {}
    following: Item | None = None
    for item in reversed(items):
        if isinstance(item, Label):
            if isinstance(following, Instruction) and (following == _RETURN or following.operation == "jmp"):
                ends[item.name] = following
        else:
            following = item
    found = False
    for i, item in enumerate(items):
        if (
            isinstance(item, Instruction)
            and item.operation == "jmp"
            and (end := ends.get(item.target or ""))
            and end.target != item.target
        ):
            items[i], found = end, True
            named[item.target or ""] -= 1
            if end.target:
                named[end.target] += 1
            if end.target in ends and ends[end.target].target == item.target:
                return False  # two that jump to each other
    return found


def _sweep(items: list[Item], named: Counter[str]) -> bool:
    """Without what stands behind an end and has no name that is used, and jumps to what follows anyway."""
    kept: list[Item] = []
    reached = True
    for i, item in enumerate(items):
        if isinstance(item, Label) and named[item.name] > 0:
            reached = True
        if not reached or (isinstance(item, Label) and named[item.name] == 0):
            if isinstance(item, Instruction) and item.target:
                named[item.target] -= 1
            continue
        onward = {label.name for label in _labels(items, i + 1)}
        if (
            isinstance(item, Instruction)
            and item.operation == "jmp"
            and item.target in onward
            and not _skipped(items, i)
        ):
            named[item.target] -= 1
            continue
        kept.append(item)
        if isinstance(item, Instruction) and item.ends and not _skipped(items, i):
            reached = False
    changed = len(kept) != len(items)
    items[:] = kept
    return changed


def _labels(items: list[Item], i: int) -> list[Label]:
    found = []
    while i < len(items) and isinstance(label := items[i], Label):
        found.append(label)
        i += 1
    return found
