"""Statements about indexes: CREATE INDEX name ON sensors (attribute, JOINT (attribute, …), …) SAMPLE PERIOD 30 s KEEP 1 day,
CREATE INDEX name ON EVENT hot(temp) (temp, light) KEEP 1 day, DROP INDEX name. Names are not looked up yet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.quoting import unquoted
from skerry.sql.units import TIME_NAMES, time_of

_BEGINS = re.compile(r"(?:\s|--[^\n]*(?:\n|$))*(?:create|drop)\s+index\b", re.IGNORECASE)
_WORDS = re.compile(
    r"""\s+|--[^\n]*|(?P<word>"(?:[^"]|"")+"|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[\w°%]+|\S)""",
    re.IGNORECASE,
)
#: A whole statement, for what is said where one goes wrong.
_EXAMPLES = {
    "create": "CREATE INDEX climate ON sensors (light FROM 0 TO 2000, JOINT (temp, humidity)) SAMPLE PERIOD 30 s KEEP 1 day",
    "event": "CREATE INDEX heats ON EVENT hot(temp) (temp, light) KEEP 1 day",
    "drop": "DROP INDEX climate",
}
#: A part's weight at most.
WEIGHT_MAXIMUM = 100
#: How long tuples are kept where it is not said, in ms.
KEPT_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Indexed:
    """An attribute, and the range of its values that are told apart; None: that of the catalog."""

    name: ast.Name
    low: Decimal | None = None
    high: Decimal | None = None
    range: Span | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE INDEX name ON table (attribute [FROM low TO high] [WEIGHT n], JOINT (attribute, …) [WEIGHT n], …) SAMPLE PERIOD period [KEEP
    time]``, or ``ON EVENT event [(attribute)] (…) [KEEP time]``; times in ms. ``parts``: how many of the attributes, in order, are stored
    together in each: those of a JOINT, or one; ``weights``: in proportion to which they get motes. ``period_ms``: None of an event."""

    name: ast.Name
    table: ast.Name | ast.Event
    attributes: tuple[Indexed, ...]
    parts: tuple[int, ...]
    weights: tuple[int, ...]
    period_ms: Decimal | None
    period: Span
    keep_ms: Decimal
    keep: Span
    text: str


@dataclass(frozen=True, slots=True)
class DropIndex:
    """``DROP INDEX name``."""

    name: ast.Name
    text: str


IndexStatement = CreateIndex | DropIndex


def is_one(text: str) -> bool:
    """Whether a text is such a statement, or begins like one."""
    return _BEGINS.match(text) is not None


def parse(text: str) -> IndexStatement:
    """The statement of a text that :func:`is_one`. Raises QueryError."""
    return _Words(text).statement()


class _Words:
    """The words of a statement, from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [match for match in _WORDS.finditer(text) if match["word"]]
        if self._words[-1]["word"] == ";":
            self._words.pop()
        self._what = self._words[0]["word"].lower()
        self._next = 2

    def statement(self) -> IndexStatement:
        name = self._name()
        if self._what == "drop":
            self._end()
            return DropIndex(name, self._text)
        self._word("ON")
        table: ast.Name | ast.Event = self._event() if self._is_event() else self._name()
        self._word("(")
        parts = [self._part()]
        while self._has(","):
            parts.append(self._part())
        self._word(")")
        period, period_span = self._period(table)
        keep, keep_span = Decimal(KEPT_MS), period_span
        if self._has("KEEP"):
            keep, keep_span = self._duration()
        self._end()
        attributes = tuple(attribute for part, _ in parts for attribute in part)
        sizes, weights = tuple(len(part) for part, _ in parts), tuple(weight for _, weight in parts)
        times = period, period_span, keep, keep_span
        return CreateIndex(name, table, attributes, sizes, weights, *times, self._text)

    def _period(self, table: ast.Name | ast.Event) -> tuple[Decimal | None, Span]:
        """How often tuples are sampled; None: with each event."""
        if isinstance(table, ast.Name):
            self._word("SAMPLE")
            self._word("PERIOD")
            return self._duration()
        if self._peek().upper() == "SAMPLE":
            hint = "leave it out, or write ON sensors in place of the event"
            message = "an index of events has no SAMPLE PERIOD: each event is a tuple"
            raise QueryError(message, hint, self._span, self._text)
        return None, table.span

    # ---- events ----

    def _is_event(self) -> bool:
        begins = self._peek().upper()
        if begins == "ALIGNED":
            hint = f"write for example {_EXAMPLES['event']}"
            message = "ALIGNED is for queries: each event of an index is a tuple of its own"
            raise QueryError(message, hint, self._span, self._text)
        if begins == "EVENT":
            self._what = "event"
        return self._has("EVENT")

    @property
    def _span(self) -> Span:
        """Of the next word."""
        end = len(self._text)
        return Span(*self._words[self._next].span()) if self._next < len(self._words) else Span(end, end)

    def _event(self) -> ast.Event:
        """``hot``, ``hot(temp)``, ``battery-low``."""
        name = self._name()
        while self._has("-"):
            more = self._name()
            name = ast.Name(f"{name.name}-{more.name}", name.span.to(more.span))
        if name.name.lower() == "every":
            hint = "write ON sensors … SAMPLE PERIOD 1 h"
            raise QueryError("a timer is no event that a mote raises", hint, name.span, self._text)
        parameters = list[ast.Name]()
        if self._has_parameters():
            self._word("(")
            parameters.append(self._name())
            while self._has(","):
                parameters.append(self._name())
            self._word(")")
        more_words = self._peek().upper()
        if more_words in ("AND", "OR", "NO"):
            what = "NO OVERLAP" if more_words == "NO" else more_words
            hint = "each event is a tuple: write one event, and another index for another"
            raise QueryError(f"{what} is for queries that wait for events", hint, self._span, self._text)
        return ast.Event(name, tuple(parameters), None, name.span)

    def _has_parameters(self) -> bool:
        """Whether what stands in parentheses next is the event's, as the index's own stands behind it."""
        depth = 0
        for place, word in enumerate(self._words[self._next :], self._next):
            depth += {"(": 1, ")": -1}.get(word["word"], 0)
            if depth == 0:
                behind = self._words[place + 1]["word"].upper() if place + 1 < len(self._words) else ""
                return word["word"] == ")" and behind in ("(", "AND", "OR", "NO")
        return False

    # ---- words ----

    def _peek(self) -> str:
        return self._words[self._next]["word"] if self._next < len(self._words) else ""

    def _take(self) -> re.Match[str]:
        if self._next == len(self._words):
            end = len(self._text)
            raise self._wrong("the statement ends too early", Span(end, end))
        self._next += 1
        return self._words[self._next - 1]

    def _has(self, word: str) -> bool:
        if self._peek().upper() != word:
            return False
        self._next += 1
        return True

    def _word(self, word: str) -> None:
        found = self._take()
        if found["word"].upper() != word:
            raise self._unexpected(found)

    def _end(self) -> None:
        if self._next < len(self._words):
            raise self._unexpected(self._words[self._next])

    def _name(self) -> ast.Name:
        found = self._take()
        word = found["word"]
        name = unquoted(word) if word[0] == '"' else word
        if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
            raise self._unexpected(found)
        return ast.Name(name, Span(*found.span()))

    def _part(self) -> tuple[list[Indexed], int]:
        found = self._together() if self._has("JOINT") else [self._indexed()]
        return found, self._weight() if self._has("WEIGHT") else len(found)

    def _together(self) -> list[Indexed]:
        self._word("(")
        found = [self._indexed()]
        while self._has(","):
            found.append(self._indexed())
        self._word(")")
        return found

    def _weight(self) -> int:
        found = self._take()
        word = found["word"]
        if not word.isdecimal() or not 1 <= int(word) <= WEIGHT_MAXIMUM:
            hint = f"write a whole number from 1 to {WEIGHT_MAXIMUM}: a part of WEIGHT 2 gets twice the motes of one of WEIGHT 1"
            raise QueryError(f"WEIGHT {word} is out of range", hint, Span(*found.span()), self._text)
        return int(word)

    def _indexed(self) -> Indexed:
        name = self._name()
        begin = self._next
        if not self._has("FROM"):
            return Indexed(name)
        low = self._number()
        self._word("TO")
        high = self._number()
        span = Span(self._words[begin].start(), self._words[self._next - 1].end())
        return Indexed(name, low, high, span)

    def _number(self) -> Decimal:
        found = self._take()
        if re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", found["word"], re.IGNORECASE) is None:
            raise self._unexpected(found)
        return Decimal(found["word"])

    def _duration(self) -> tuple[Decimal, Span]:
        begin = self._next
        number = self._number()
        unit = self._take()
        factor = time_of(unit["word"])
        if factor is None:
            hint = f"times are in {', '.join(TIME_NAMES)}"
            raise QueryError(f"unknown unit '{unit['word']}'", hint, Span(*unit.span()), self._text)
        return number * factor, Span(self._words[begin].start(), unit.end())

    def _unexpected(self, found: re.Match[str]) -> QueryError:
        return self._wrong(f"unexpected '{found['word']}'", Span(*found.span()))

    def _wrong(self, message: str, span: Span) -> QueryError:
        return QueryError(message, f"write for example {_EXAMPLES[self._what]}", span, self._text)
