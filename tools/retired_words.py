"""Words that the glossary has retired, in identifiers and file names. `make lint` runs it; it exits with 1 where it finds any.

The words are those of docs/glossary.md, so that nobody has to keep two lists. What is still called so is in EXCEPTIONS, by folder, which
only shrinks: one that is not needed any more is an error as well.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
FOLDERS = ("firmware", "protocol", "testbed")
#: Of it, only what it defines: whoever reads a name there has met it where it is defined.
GATEWAY = "gateway"
#: Generated from what is looked at anyway, or not of this project.
PASSED_OVER = ("firmware/include/wire.h", "__pycache__", "build")
GLOSSARY = "docs/glossary.md"

#: (word, folder): it is still used there. Remove what has been renamed; add nothing.
EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Retired:
    """``words`` stand nowhere in an identifier; ``names``: no C identifier is just that; ``gateway``: in no name that is defined there.
    Each with what to say instead."""

    words: dict[str, str]
    names: dict[str, str]
    gateway: dict[str, str]


@dataclass(frozen=True, order=True)
class Use:
    """An identifier or a file name with a retired word."""

    where: str
    identifier: str
    word: str
    instead: str


def retired(glossary: str) -> Retired:
    """The three tables of its section "Retired words". Raises ValueError where they are missing."""
    _, found, section = glossary.partition("\n## Retired words\n")
    tables = re.findall(r"^\| retired \| instead \|\n\|[ |-]+\n((?:\|.*\n?)+)", section, re.MULTILINE)
    if not found or len(tables) != 3:
        raise ValueError(
            f"{GLOSSARY}: expected a section 'Retired words' with three tables | retired | instead |"
        )
    return Retired(*(_table(table) for table in tables))


def _table(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        words, instead = (cell.strip() for cell in line.strip("|").split("|", 1))
        found |= dict.fromkeys(re.findall(r"`(\w+)`", words), instead)
    return found


def c_identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Line and identifier, comments and strings left out."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    code = re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^\s*#include[^\n]*',
        blank,
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    for number, line in enumerate(code.splitlines(), 1):
        for word in re.findall(r"\b[A-Za-z_]\w*", line):
            yield number, word


def python_identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Line and identifier."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def python_definitions(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each function and class, those of tests left out: they say in words what holds."""
    for node in ast.walk(ast.parse(text)):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named and not node.name.startswith("test_"):
            yield node.lineno, node.name


def parts(identifier: str) -> set[str]:
    """The words of an identifier, in lower case, of snake_case, CAPITALS and CamelCase."""
    return {part.lower() for part in re.split(r"_|\W|(?<=[a-z0-9])(?=[A-Z])", identifier) if part}


def uses(project: Path, words: Retired) -> Iterator[tuple[str, Use]]:
    """All that are found, each with its path."""
    for folder in FOLDERS:
        for path in sorted((project / folder).rglob("*")):
            name = path.relative_to(project).as_posix()
            if not path.is_file() or any(part in name for part in PASSED_OVER):
                continue
            stem, in_c = path.stem, path.suffix in (".c", ".h")
            found = [*_retired_in(stem, words, exactly=in_c)]
            yield from ((name, Use(name, path.name, *each)) for each in found)
            if in_c:
                identifiers = c_identifiers(path.read_text())
            elif path.suffix == ".py":
                identifiers = python_identifiers(path.read_text())
            else:
                continue
            for line, identifier in identifiers:
                for each in _retired_in(identifier, words, exactly=in_c):
                    yield name, Use(f"{name}:{line}", identifier, *each)
    yield from _uses_of_gateway(project, words.gateway)


def _uses_of_gateway(project: Path, words: dict[str, str]) -> Iterator[tuple[str, Use]]:
    for path in sorted((project / GATEWAY).rglob("*.py")):
        name = path.relative_to(project).as_posix()
        defined = [(name, path.stem)]
        defined += [(f"{name}:{line}", found) for line, found in python_definitions(path.read_text())]
        for where, identifier in defined:
            for word in parts(identifier) & words.keys():
                yield name, Use(where, identifier, word, words[word])


def _retired_in(identifier: str, words: Retired, *, exactly: bool) -> Iterator[tuple[str, str]]:
    for word in parts(identifier) & words.words.keys():
        yield word, words.words[word]
    if exactly and identifier in words.names:
        yield identifier, words.names[identifier]


def check(project: Path, exceptions: frozenset[tuple[str, str]] = EXCEPTIONS) -> list[str]:
    """What is wrong, a line each."""
    found, needed = [], set()
    for path, use in uses(project, retired((project / GLOSSARY).read_text())):
        excepted = {
            (word, folder) for word, folder in exceptions if word == use.word and path.startswith(folder)
        }
        needed |= excepted
        if not excepted:
            found.append(
                f"{use.where}: {use.identifier!r}: {use.word!r} is retired ({GLOSSARY}); instead: {use.instead}"
            )
    found += [
        f"tools/retired_words.py: EXCEPTIONS: nothing in {folder} is called {word!r} any more: remove it"
        for word, folder in sorted(exceptions - needed)
    ]
    return found


def main() -> int:
    """Command line: 1 where something is found."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    found = check(PROJECT)
    for line in found[:20]:
        print(line, file=sys.stderr)
    if len(found) > 20:
        print(f"… and {len(found) - 20} more", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
