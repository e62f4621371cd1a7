"""The deepest that the stack can get: the deepest path of calls from the start, and the deepest interrupt handler on top of it (handlers
do not interrupt each other)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from footprint.calls import Calls, Function
from footprint.image import Image, Unbounded
from footprint.pointers import Pointers

_AVR_HANDLER = re.compile(r"__vector_\d+")


@dataclass(frozen=True)
class Stack:
    """Bytes at most, and the functions on the paths that need them."""

    bytes: int
    path: list[str]
    interrupt: list[str]


class _Search:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._on_path: list[int] = []

    def deepest(self, function: Function) -> tuple[int, tuple[str, ...]]:
        """Bytes that a call of a function takes, and the path. Raises Unbounded for recursion."""
        address = function.address
        if address in self._known:
            return self._known[address]
        if address in self._on_path:
            cycle = [*self._on_path[self._on_path.index(address) :], address]
            raise Unbounded("recursion: " + " -> ".join(self._calls.functions[step].name for step in cycle))
        self._on_path.append(address)
        own = function.frame
        worst: tuple[int, tuple[str, ...]] = (own, ())
        for target in sorted(function.calls | function.jumps):
            depth, path = self.deepest(self._calls.functions[target])
            # Before the compiler jumps to another function it takes the frame down; what libraries do is not known.
            called = target in function.calls or not function.compiled
            worst = max(worst, (depth + own if called else depth, path))
        self._on_path.pop()
        self._known[address] = worst[0], (function.name, *worst[1])
        return self._known[address]

    def missed(self, taken: dict[int, Function]) -> list[Function]:
        """Of functions those that no search has come to."""
        return [function for address, function in taken.items() if address not in self._known]


def stack(image: Image) -> Stack:
    """Raises Unbounded where there is no bound, or none that can be told."""
    calls = Calls(image)
    pointers = Pointers(image, calls)
    pointers.connect()
    search = _Search(calls)
    vectors = pointers.vectors()
    start = calls.functions[vectors[0]] if vectors else calls.named("main")
    handlers = [calls.functions[address] for address in dict.fromkeys(vectors[1:])] or [
        function for function in calls.functions.values() if _AVR_HANDLER.fullmatch(function.name)
    ]
    depth, path = search.deepest(start)
    interrupt = max(search.deepest(handler) for handler in handlers)
    for function in search.missed(pointers.taken()):
        raise Unbounded(
            f"{function.module}: the address of {function.name} is taken, and no way from {start.name} or an interrupt leads to it"
        )
    return Stack(depth + calls.arch.exception_frame + interrupt[0], list(path), list(interrupt[1]))
