"""Pages and charts from results: what stands between a page's markers is made here, the rest is written by hand.

``<!-- figures -->`` to ``<!-- end -->`` holds the first page's figures; ``<!-- result network/lab_yield -->`` to ``<!-- end -->`` all of
one result.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.runner.catalog import AREAS, BENCH, FIGURES, RESULTS, entries
from bench.runner.markdown import markdown, result_text
from bench.runner.result import Figure, Result, ResultError, stored

#: Of an SVG file a name that is made of what it names, and a number.
_NAME = re.compile(rb"\b[mp][0-9a-f]{10}\b")
_NUMBER = re.compile(rb"-?\d+\.\d+")
#: Points by which two drawings of the same may differ: the last digits depend on the processor.
NEAR = 0.01
_MARKED = re.compile(r"(<!-- (figures|result (\S+)) -->\n).*?(<!-- end -->)", re.DOTALL)


def report(*, check: bool = False) -> int:
    """Fill all pages and draw all charts, or with ``check`` tell which are not what the results say: then 1. Raises ResultError."""
    results = {result.key: result for result in stored(RESULTS)}
    stale = 0
    for path, content in (*_pages(results), *_charts(results)):
        if path.exists() and is_same(path.read_bytes(), content):
            continue
        stale += 1
        name = path.relative_to(BENCH.parent)
        if check:
            print(f"bench: {name} is not what the results say: bench report makes it anew", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(f"made anew: {name}")
    return 1 if check and stale else 0


def is_same(one: bytes, other: bytes) -> bool:
    """Whether a page or a chart is the same as another one, of a chart but for what no eye can see."""
    if one == other:
        return True
    if not other.startswith(b"<?xml"):
        return False
    one, other = map(_named, (one, other))
    if _NUMBER.sub(b"#", one) != _NUMBER.sub(b"#", other):
        return False
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= NEAR for a, b in numbers)


def _named(svg: bytes) -> bytes:
    """With names by the order in which they come."""
    known: dict[bytes, bytes] = {}
    return _NAME.sub(lambda found: known.setdefault(found[0], b"n%d" % len(known)), svg)


def _pages(results: dict[str, Result]) -> Iterator[tuple[Path, bytes]]:
    paths = [BENCH / "README.md", *(BENCH / area / "README.md" for area in AREAS)]
    told: set[str] = set()
    for path in paths:
        text = path.read_text(encoding="utf-8")
        told |= {found[3] for found in _MARKED.finditer(text) if found[3]}
        yield path, filled(text, results, str(path.relative_to(BENCH.parent))).encode()
    if untold := sorted(results.keys() - told):
        raise ResultError(
            f"no page tells of {', '.join(untold)}: add <!-- result {untold[0]} --> <!-- end -->"
        )


def filled(text: str, results: dict[str, Result], name: str) -> str:
    """A page with what its markers ask for; ``name`` is the page's, for messages. Raises ResultError."""

    def content(found: re.Match[str]) -> str:
        key = found[3]
        if key is not None and key not in results:
            raise ResultError(f"{name}: there is no result {key}")
        made = _first_page(results) if key is None else result_text(results[key])
        return f"{found[1]}\n{made}\n\n{found[4]}"

    return _MARKED.sub(content, text)


def _first_page(results: dict[str, Result]) -> str:
    """A table for each area: main figures, and when and how they were measured."""
    parts = []
    for area, what in AREAS.items():
        rows = []
        for result in (one for one in results.values() if one.area == area):
            when = f"{result.date}, {result.commit}{'+' if result.changed else ''}"
            command = f"`{result.command.partition(' -m ')[2]}`"
            for figure in (one for one in result.figures if one.main):
                rows.append([*_figure(figure), when, command])
                # Said once for all figures of a result.
                when = command = ""
        head = ["what", "measured", "goal", "when, commit", "command"]
        parts.append(f"### [{area.capitalize()}]({area}/README.md): {what}\n\n{markdown(head, rows)}")
    return "\n\n".join(parts)


def _figure(figure: Figure) -> tuple[str, str, str]:
    return figure.what, f"**{figure.text}**" if figure.missed else figure.text, figure.goal_text


def _charts(results: dict[str, Result]) -> Iterator[tuple[Path, bytes]]:
    """An SVG file for each benchmark that draws one, of its usual form."""
    for entry in entries():
        if (result := results.get(entry.key)) is None or (draw := entry.load().chart) is None:
            continue
        import matplotlib  # noqa: PLC0415 (all else does without)

        # The same file from the same figures.
        matplotlib.rcParams["svg.hashsalt"] = "skerry"
        buffer = io.BytesIO()
        draw(result).savefig(buffer, format="svg", metadata={"Date": None})
        yield FIGURES / f"{entry.name}.svg", buffer.getvalue()
