"""Retired words are found where they are identifiers or file names, and nowhere else; the tree has none but those that are listed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parents[2]
GLOSSARY = """# Glossary

| word | means |
| --- | --- |
| mote | a node |

## Retired words

| retired | instead |
| --- | --- |
| `greeted`, `greeting` | JOIN |

| retired | instead |
| --- | --- |
| `slots` | slot table |

| retired | instead |
| --- | --- |
| `beside` | what stands there |
"""


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("retired_words", PROJECT / "tools" / "retired_words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = _module()


def found(
    folder: Path, name: str, text: str, exceptions: frozenset[tuple[str, str]] = frozenset()
) -> list[str]:
    for path, content in (("docs/glossary.md", GLOSSARY), (name, text)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return list(tool.check(folder, exceptions))


@pytest.mark.parametrize(
    ("name", "text", "identifiers"),
    [
        ("firmware/a.c", "int tree_greeted;\nint GREETING;", ["tree_greeted", "GREETING"]),
        ("firmware/a.c", "struct wire_slots_entry slots;", ["slots"]),
        ("firmware/net/slots.h", "int x;", ["slots.h"]),
        ("testbed/greeting.toml", "", ["greeting.toml"]),
        ("protocol/a.py", "class HasGreeted:\n    slots = 1\n", ["HasGreeted"]),
        ("firmware/a.c", '/* greeted */ const char *a = "greeted"; // greeting\n#include "greeted.h"', []),
        ("testbed/a.py", '# greeted\n"""greeting"""\n', []),
        ("firmware/a.c", "int meeting, segreeted;", []),
        ("gateway/a.py", "greeted = 1\nbeside = 2", []),
        (
            "gateway/skerry/a.py",
            "def runs_beside():\n    pass\nclass Beside:\n    pass\n",
            ["runs_beside", "Beside"],
        ),
        ("gateway/tests/a.py", "def test_what_stands_beside():\n    pass\n", []),
        ("gateway/beside.py", "", ["beside"]),
        ("firmware/include/wire.h", "int greeted;", []),
    ],
)
def test_what_is_found(tmp_path: Path, name: str, text: str, identifiers: list[str]) -> None:
    told = found(tmp_path, name, text)
    assert [line.split("'")[1] for line in told] == identifiers
    assert all("is retired (docs/glossary.md); instead: " in line for line in told)


def test_a_line_names_place_and_what_to_say_instead(tmp_path: Path) -> None:
    assert found(tmp_path, "firmware/a.c", "\n/* a\nb */ int greeted;") == [
        "firmware/a.c:3: 'greeted': 'greeted' is retired (docs/glossary.md); instead: JOIN"
    ]


def test_exceptions_are_of_a_folder_and_only_shrink(tmp_path: Path) -> None:
    exception = frozenset({("greeted", "firmware/net")})
    assert found(tmp_path, "firmware/net/a.c", "int greeted;", exception) == []
    assert len(found(tmp_path, "firmware/query/a.c", "int greeted;", exception)) == 1
    assert found(tmp_path, "firmware/net/a.c", "int joined;", exception)[-1].endswith(
        "nothing in firmware/net is called 'greeted' any more: remove it"
    )


def test_a_glossary_without_its_tables_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a section 'Retired words' with three tables"):
        tool.retired(GLOSSARY.replace("Retired words", "Other words"))


def test_the_tree_has_none_but_those_that_are_listed() -> None:
    words = tool.retired((PROJECT / "docs" / "glossary.md").read_text())
    assert len(words.words) > 10
    assert tool.check(PROJECT) == []
