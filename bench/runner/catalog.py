"""Which benchmarks there are: every file of an area's folder that defines ``BENCHMARK``. A new one is a new file, and nothing else."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.runner.benchmark import Benchmark, hint

BENCH = Path(__file__).resolve().parent.parent
RESULTS, FIGURES = BENCH / "results", BENCH / "figures"
#: In the order in which pages have them.
AREAS = {
    "network": "what arrives over the radio, how late, and how many frames it takes",
    "gateway": "from the serial line to many users, coming, going and starting again",
    "testbed": "the emulator's speed, and the images that run on it",
    "query": "how queries are planned and executed, on motes and for users",
    "energy": "what motes take, and how long their batteries last",
    "storage": "what an index costs in a network that keeps its own readings: a model, and emulated motes",
    "joins": "what it costs to join pairs of motes, by strategy: a model, and emulated motes",
}


class UnknownError(ValueError):
    """There is no such area or benchmark; the message tells what may have been meant."""


@dataclass(frozen=True)
class Entry:
    """A benchmark as its file has it; nothing is imported until it is loaded."""

    area: str
    name: str
    #: First sentence of the file's docstring.
    summary: str

    @property
    def key(self) -> str:
        """Area and name, as in a command and as its results are called."""
        return f"{self.area}/{self.name}"

    def load(self) -> Benchmark[Any]:
        """Import it."""
        module = importlib.import_module(f"bench.{self.area}.{self.name}")
        found = module.BENCHMARK
        assert isinstance(found, Benchmark), f"{self.key}: BENCHMARK is a {type(found).__name__}"
        return found


def entries(areas: Iterable[str] = AREAS) -> list[Entry]:
    """All benchmarks of some areas, by name."""
    return [
        entry for area in areas for path in sorted((BENCH / area).glob("*.py")) if (entry := _entry(path))
    ]


def find_area(word: str) -> str:
    """An area by its name. Raises UnknownError."""
    if word in AREAS:
        return word
    for entry in entries():
        if entry.name == _name(word):
            raise UnknownError(f"area {word!r} is unknown: did you mean bench run {entry.area} {entry.name}?")
    raise UnknownError(f"area {word!r} is unknown{hint(word, AREAS)}")


def find(area: str, word: str) -> Entry:
    """A benchmark by its name. Raises UnknownError."""
    own = {entry.name: entry for entry in entries([find_area(area)])}
    name = _name(word)
    if name in own:
        return own[name]
    for entry in entries():
        if entry.name == name:
            raise UnknownError(
                f"{area} has no benchmark {word!r}: did you mean bench run {entry.area} {entry.name}?"
            )
    raise UnknownError(f"{area} has no benchmark {word!r}{hint(name, own)}")


def _name(word: str) -> str:
    return word.replace("-", "_").removesuffix(".py")


def _entry(path: Path) -> Entry | None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    if not any(isinstance(target, ast.Name) and target.id == "BENCHMARK" for target in targets):
        return None
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    return Entry(path.parent.name, path.stem, summary)
