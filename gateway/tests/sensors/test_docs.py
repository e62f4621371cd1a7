"""Every command of docs/streams.md is accepted, one after the other on one gateway, as a reader of that page says them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer

PAGE = Path(__file__).parents[3] / "docs" / "streams.md"


def commands() -> list[list[str]]:
    """Words of those that begin with skerry, from the page's blocks, but for the gateway's start."""
    blocks = re.split(r"^```.*\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1::2]
    parts = [part for block in blocks for part in re.split(r"\n(?=skerry )", block.strip())]
    found = [shlex.split(part) for part in parts if part.startswith("skerry ")]
    return [words for words in found if words[1] != "gateway"]


def test_what_the_page_says_can_be_asked(peer: RootPeer, tmp_path: Path) -> None:
    asked = commands()
    assert {words[1] for words in asked} == {"query", "explain", "stream"}
    with opened(peer, tmp_path) as gateway:
        for _, what, text, *more in asked:
            match what:
                case "query":
                    gateway.queries.ask(text, "ada")
                case "explain":
                    assert gateway.queries.explain(text)
                case _:
                    assert text == "try"
                    assert len(more) == 1
        assert len(gateway.queries.all()) >= 8
