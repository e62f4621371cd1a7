"""Commands and aggregates from outside this tree: what their C files declare with COMMAND and AGGREGATE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skerry_protocol.commands import ACTIONS_OUTSIDE
from skerry_protocol.limits import FIELDS_MAXIMUM

#: Numbers of aggregates from outside.
AGGREGATES_OUTSIDE = range(16, 32)

_DECLARATION = re.compile(
    r"^(COMMAND|AGGREGATE)\(\s*(\w+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*(?:,\s*([\w\s|]+?)\s*)?\)",
    re.MULTILINE,
)
#: What is meant for one, and how it is written.
_MEANT = re.compile(r"^(COMMAND|AGGREGATE)\s*\(.*", re.MULTILINE)
_WRITTEN = {
    "COMMAND": "COMMAND(name, number, low, high)",
    "AGGREGATE": "AGGREGATE(name, number, cells, digits, properties)",
}
#: What an aggregate may say of itself (TinyDB 2005, table I): a sample of the readings or a summary of them; never smaller,
#: or never larger, for more readings.
PROPERTIES = ("EXEMPLARY", "SUMMARY", "MONOTONIC")
_COMMENT = re.compile(r"\A\s*/\*\s*(.*?)[.;]?\s*\*/", re.DOTALL)


class ExtensionError(ValueError):
    """A C file declares something impossible; the message names it."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration. Of a COMMAND ``low`` and ``high`` bound the argument; of an AGGREGATE they are the cells of its state and the
    digits that its value has beyond its argument's."""

    kind: str
    name: str
    number: int
    low: int
    high: int
    description: str
    path: Path
    properties: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "path": self.path.name}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Declared:
        """The inverse."""
        return cls(**{**data, "path": Path(data["path"]), "properties": tuple(data["properties"])})


def declarations(paths: Iterable[Path]) -> list[Declared]:
    """What C files declare. Raises ExtensionError for names or numbers that occur twice."""
    found: list[Declared] = []
    for path in paths:
        text = path.read_text()
        comment = _COMMENT.match(text)
        about = re.sub(r"\s*\n \* ?", " ", comment[1]) if comment else ""
        for meant in _MEANT.finditer(text):
            if not _DECLARATION.match(text, meant.start()):
                form = f"expected {_WRITTEN[meant[1]]} with its numbers in digits"
                raise ExtensionError(f"{path}: {meant[0].rstrip()}: {form}")
        for kind, name, number, low, high, words in _DECLARATION.findall(text):
            properties = tuple(word.strip() for word in words.split("|")) if words else ()
            wrong = [word for word in properties if word not in PROPERTIES]
            if wrong:
                raise ExtensionError(f"{path}: property {wrong[0]}: there are {', '.join(PROPERTIES)}")
            found.append(Declared(kind, name, int(number), int(low), int(high), about, path, properties))
    for i, one in enumerate(found):
        for other in found[:i]:
            if one.kind == other.kind and (one.name == other.name or one.number == other.number):
                what = f"{one.kind}({one.name}, {one.number})"
                raise ExtensionError(
                    f"{one.path}: {what} and {other.kind}({other.name}, {other.number}) of {other.path} cannot be told apart: "
                    "give it a name and a number of its own"
                )
    return found


def outside(folder: Path) -> list[Declared]:
    """What the C files of a folder of extensions declare. Raises ExtensionError, OSError."""
    if not folder.is_dir():
        raise ExtensionError(f"{folder} is no folder: extensions are C files in a folder")
    found = declarations(sorted(folder.glob("*.c")))
    if not found:
        raise ExtensionError(f"{folder} has no C file with an AGGREGATE or a COMMAND")
    for one in found:
        if one.kind == "COMMAND" and not ACTIONS_OUTSIDE <= one.number <= 255:
            raise ExtensionError(
                f"{one.path}: command number {one.number}: from outside they are {ACTIONS_OUTSIDE}..255"
            )
        if one.kind == "COMMAND" and one.low > one.high:
            raise ExtensionError(f"{one.path}: bounds {one.low}, {one.high}: the lower one stands first")
        if one.kind == "AGGREGATE" and not 1 <= one.low <= FIELDS_MAXIMUM:
            raise ExtensionError(f"{one.path}: {one.low} cells: a state has 1..{FIELDS_MAXIMUM}")
        if one.kind == "AGGREGATE" and one.number not in AGGREGATES_OUTSIDE:
            last = AGGREGATES_OUTSIDE[-1]
            raise ExtensionError(
                f"{one.path}: aggregate number {one.number}: from outside they are {AGGREGATES_OUTSIDE[0]}..{last}"
            )
    return found
