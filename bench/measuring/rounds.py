"""Several ways of doing something, measured in turn: what else runs on the machine meets them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from bench.runner.recorder import Recorder
from bench.runner.result import Spread

K = TypeVar("K")
V = TypeVar("V")


def alternated(
    ways: Mapping[K, Callable[[], V]], rounds: int, recorder: Recorder, name: Callable[[K], str] = str
) -> dict[K, list[V]]:
    """What each way came to, a value for each round: all ways once, one after the other, then all of them again."""
    found: dict[K, list[V]] = {way: [] for way in ways}
    for number in range(1, rounds + 1):
        for way, measured in ways.items():
            recorder.progress(f"{name(way)}, round {number} of {rounds}")
            found[way].append(measured())
    return found


def in_turn(ways: Iterable[K], rounds: int) -> Iterator[tuple[int, K]]:
    """Each round's number, from 1 on, with each way: for what is measured asynchronously."""
    names = list(ways)
    for number in range(1, rounds + 1):
        for way in names:
            yield number, way


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """By how much one way exceeds the other, reckoned within each round."""
    return Spread.of(one / other for one, other in zip(over, under, strict=True))
