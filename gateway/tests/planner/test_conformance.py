"""docs/conformance.md: each query that the page calls accepted is, and each that it calls refused is, with that message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skerry.planner.model.joined_tables import ColumnKind, TableColumn, TableSchema
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query, plan_srt
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry.sql.errors import QueryError

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "conformance.md").read_text()
_INTRODUCTION, *_SECTIONS = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
CLAUSES = dict(zip(_SECTIONS[::2], _SECTIONS[1::2], strict=True))


def _points() -> dict[str, Point]:
    points: dict[str, Point] = {}
    for number, text in enumerate(re.findall(r"^    (CREATE .*)$", _INTRODUCTION, re.MULTILINE), 1):
        statement = plan_query(text, points)
        assert isinstance(statement, CreatePoint)
        point, _ = plan_point(statement, number, points)
        points[point.name.lower()] = point
    return points


POINTS = _points()


TABLES = {
    "plants": TableSchema(
        "plants",
        (
            TableColumn("node", 0), TableColumn("order", 0), TableColumn("plot", 0, ColumnKind.TEXT),
            TableColumn("since", 3, ColumnKind.TIME),
        ),
    )
}  # fmt: skip


def _examples() -> tuple[list[str], list[tuple[str, str]]]:
    accepted, refused = [], []
    for text in CLAUSES.values():
        good, _, bad = text.partition("Refused:")
        accepted += re.findall(r"^    (.*)$", good, re.MULTILINE)
        refused += re.findall(r"^    (.*)\n    → (.*)$", bad, re.MULTILINE)
    return accepted, refused


ACCEPTED, REFUSED = _examples()


def _plan(query: str) -> None:
    statement = plan_query(query, POINTS, TABLES)
    if isinstance(statement, CreatePoint):
        plan_point(statement, len(POINTS) + 1, POINTS)
    if isinstance(statement, CreateSrt):
        plan_srt(statement, 1, root=0)


@pytest.mark.parametrize("query", ACCEPTED)
def test_accepted(query: str) -> None:
    _plan(query)


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_refused(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        _plan(query)
    assert raised.value.summary == message


def test_every_clause_of_the_grammar_is_on_the_page() -> None:
    """The rules of the clauses in query.lark, by the words that begin them."""
    grammar = (Path(__file__).resolve().parents[2] / "skerry" / "sql" / "query.lark").read_text()
    words = set(re.findall(r"^%declare (.*)$", grammar, re.MULTILINE)[0].split()) - {
        "QUERY",
        "AS",
        "BY",
    }
    said = " ".join(query.upper() for query in ACCEPTED)
    assert [word for word in sorted(words) if not re.search(rf"\b{word}\b", said)] == []


def test_every_clause_is_accepted_and_refused_somewhere() -> None:
    """But the paper's own queries, which are all right."""
    without = [clause for clause, text in CLAUSES.items() if "Refused:" not in text]
    assert without == ["The paper's queries"]
