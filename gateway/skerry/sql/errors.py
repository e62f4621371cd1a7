"""What is wrong with a query, shown under the query."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from skerry.sql.ast import Span

#: Characters shown of the line that is wrong.
_SHOWN = 160


class QueryError(ValueError):
    """A query that is refused: nothing of it reaches the network.

    ``message`` says what is wrong, ``hint`` what would be right. ``column`` and ``line`` count from 1;
    ``span`` are character offsets into ``text``. Without a span the whole query is meant, and no caret shown.
    """

    def __init__(self, message: str, hint: str = "", span: Span | None = None, text: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.span = span
        self.text = text

    def within(self, text: str) -> QueryError:
        """The same error, knowing its query."""
        return QueryError(self.message, self.hint, self.span, text)

    @property
    def line(self) -> int:
        """Line of the query, from 1."""
        return 1 if self.span is None else self.text.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int:
        """Column in that line, from 1."""
        return 1 if self.span is None else self.span.start - self.text.rfind("\n", 0, self.span.start)

    @property
    def summary(self) -> str:
        """One line: what, where, what would be right."""
        where = ""
        if self.span is not None:
            line = "" if self.line == 1 else f"line {self.line}, "
            where = f" at {line}column {self.column}"
        return f"{self.message}{where}" + (f": {self.hint}" if self.hint else "")

    def __str__(self) -> str:
        """The summary, the line of the query and a caret under what is wrong."""
        if self.span is None or not self.text:
            return self.summary
        line = self.text.split("\n")[self.line - 1]
        first = max(0, self.column - 1 - _SHOWN // 2) if len(line) > _SHOWN else 0
        line, column = line[first : first + _SHOWN], self.column - first
        width = max(1, min(self.span.end - self.span.start, len(line) - column + 1))
        pad = "".join("\t" if character == "\t" else " " for character in line[: column - 1])
        return f"{self.summary}\n  {line}\n  {pad}{'^' * width}"

    def to_dict(self) -> dict[str, Any]:
        """For the API."""
        return {
            "message": self.message,
            "hint": self.hint,
            "line": self.line,
            "column": self.column,
            "text": str(self),
        }


def did_you_mean(word: str, known: list[str]) -> str:
    """``did you mean 'temp'? ``, or nothing when no known word is close."""
    close = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'? " if close else ""
