"""What an index is declared to be: attributes with ranges, and which of them are stored together; and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.index.code import ATTRIBUTES, Box, Histogram, IndexCode, Range

#: Attributes of each part.
Groups = tuple[tuple[int, ...], ...]


class DeclarationError(ValueError):
    """An index that cannot be; the message names what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Ranged:
    """An attribute and the values that it is spread over, in its own fixed-point unit, both included."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Declaration:
    """``groups``: the JOINT ones, and each other attribute alone; by the attributes' numbers, each once."""

    attributes: tuple[Ranged, ...]
    groups: Groups

    @classmethod
    def of(cls, attributes: Sequence[Ranged], joint: Iterable[Sequence[str]] = ()) -> Declaration:
        """Attributes that no JOINT names are parts of their own. Raises DeclarationError."""
        names = [attribute.name for attribute in attributes]
        if not 1 <= len(names) <= ATTRIBUTES:
            raise DeclarationError(f"an index of {len(names)} attributes: it has 1 to {ATTRIBUTES}")
        for attribute in attributes:
            if names.count(attribute.name) > 1:
                raise DeclarationError(f"{attribute.name} is in the index twice: name it once")
            if attribute.low >= attribute.high:
                raise DeclarationError(
                    f"{attribute.name} FROM {attribute.low} TO {attribute.high} is no range: it begins below its end"
                )
        groups = []
        for group in joint:
            unknown = [name for name in group if name not in names]
            if unknown:
                raise DeclarationError(
                    f"JOINT names {unknown[0]}, which is not in the index: it has {', '.join(names)}"
                )
            groups.append(tuple(names.index(name) for name in group))
        used = [attribute for group in groups for attribute in group]
        for number in used:
            if used.count(number) > 1:
                raise DeclarationError(f"{names[number]} is in JOINT twice: it is stored in one part")
        groups += [(number,) for number in range(len(names)) if number not in used]
        return cls(tuple(attributes), tuple(sorted(groups)))

    @property
    def organisations(self) -> dict[str, Groups]:
        """How its tuples may be stored, by name: ``joint`` as declared, where that is neither of the others."""
        every = range(len(self.attributes))
        found = {"single": (tuple(every),), "decomposed": tuple((attribute,) for attribute in every)}
        if self.groups not in found.values():
            found["joint"] = self.groups
        return found if len(self.attributes) > 1 else {"single": found["single"]}

    def points(self, code: IndexCode, values: Sequence[int | None]) -> tuple[int, ...]:
        """A tuple's."""
        return tuple(
            code.point(Range(attribute.low, attribute.high), value)
            for attribute, value in zip(self.attributes, values, strict=True)
        )

    def question(
        self, code: IndexCode, ranges: Mapping[str, tuple[int, int]], measured: Iterable[str]
    ) -> Question:
        """What asks for values of some attributes, both ends included. Raises DeclarationError for attributes that it does not have."""
        numbers = {attribute.name: number for number, attribute in enumerate(self.attributes)}
        for name in (*ranges, *(measured := list(measured))):
            if name not in numbers:
                raise DeclarationError(f"{name} is not in the index: it has {', '.join(numbers)}")
        limits = {}
        for name, (low, high) in ranges.items():
            range_ = Range(self.attributes[numbers[name]].low, self.attributes[numbers[name]].high)
            limits[numbers[name]] = code.point(range_, low), code.point(range_, high)
        return Question(limits, frozenset(numbers[name] for name in measured))


@dataclass(frozen=True)
class Question:
    """Of each attribute in ``limits`` the points from one to another; the answer needs values of ``measured``."""

    limits: Mapping[int, tuple[int, int]]
    measured: frozenset[int]

    def box(self, code: IndexCode, attributes: int) -> Box:
        """The same as motes have it."""
        return code.box(attributes, self.limits)


def learned(code: IndexCode, tuples: Iterable[Sequence[int]], attributes: int, bins: int) -> Histogram:
    """Counts of tuples by their points."""
    counts = [0] * bins**attributes
    for points in tuples:
        place = 0
        for point in points:
            place = place * bins + code.bin(bins, point)
        counts[place] += 1
    return Histogram(attributes, bins, bytes(map(code.coded, counts)))


def evenly(code: IndexCode, tuples: int, attributes: int) -> Histogram:
    """So many tuples over all of the ranges: what is declared where nothing is known."""
    return Histogram(attributes, 1, bytes([code.coded(tuples)]))
